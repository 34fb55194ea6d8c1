"""Taking out what does not change the result: metadata, shardings; and naming instructions by number."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.edit.graph_checks import same_shape
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.naming import NameUniquer, sanitized
from hlotext.ir.values.frames import StackFrameIndex
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.properties import NO_SHARDINGS

METADATA = ("metadata", "origin", "statistics")
_SHARDING_CALLS = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})
_SHARDING_NOTES = "xla.sdy."


@attrs.frozen
class StripMetadata(Pass):
    """Removes debug information: metadata, original values and statistics of instructions, and stack-frame tables.

    Metadata inside shardings is kept.

    >>> import hlotext as hlo
    >>> m = hlo.parse('ENTRY e { ROOT x = f32[] parameter(0), metadata={op_name="x"} }')
    >>> StripMetadata().run(m).changed, str(m.entry.root)
    (True, 'ROOT x = f32[] parameter(0)')
    """

    name: ClassVar[str] = "strip-metadata"
    summary: ClassVar[str] = "Removes metadata, original values and stack frames."

    def run(self, module: Module) -> PassResult:
        count = sum(_drop(instruction, METADATA) for instruction in module.instructions())
        if not module.stack_frames.is_empty:
            module.stack_frames = StackFrameIndex()
            count += 1
        return PassResult.of({"instructions": count})


@attrs.frozen
class RemoveShardings(Pass):
    """Removes shardings, Shardy's attributes, and custom calls that only carry shardings, as for a single device.

    Calls that convert between a whole array and its shards are kept if the shapes differ, since they then compute something.
    """

    name: ClassVar[str] = "remove-shardings"
    summary: ClassVar[str] = "Removes shardings and sharding custom calls."
    ensures = (NO_SHARDINGS,)

    def run(self, module: Module) -> PassResult:
        calls = 0
        for instruction in tuple(module.instructions()):
            target = str(instruction.attributes.get("custom_call_target", ""))
            if target not in _SHARDING_CALLS and not target.startswith(_SHARDING_NOTES):
                continue
            value = instruction.operands[0] if len(instruction.operands) == 1 else None
            if value is not None and (
                str(value.shape) == str(instruction.shape)
                or (not module.is_scheduled and same_shape(value.shape, instruction.shape))
            ):
                instruction.replace_with(value)
                calls += 1
        count = 0
        for instruction in module.instructions():
            count += _drop(instruction, ("sharding",))
            if str(instruction.attributes.get("custom_call_target", "")).startswith(_SHARDING_NOTES):
                continue  # XLA insists on the notes of its own calls
            notes = instruction.frontend_attributes
            kept = {key: value for key, value in notes.items() if not key.startswith(_SHARDING_NOTES)}
            if len(kept) < len(notes):
                if kept:
                    instruction.attributes["frontend_attributes"] = type(notes)(kept)  # type: ignore[call-arg]
                else:
                    del instruction.attributes["frontend_attributes"]
                count += 1
        return PassResult.of({"instructions": count, "custom calls": calls})


@attrs.frozen
class CanonicalNames(Pass):
    """Names every instruction and computation by its opcode and a number, in text order.

    Modules that differ only in names become equal. Bodies behind the short spelling of asynchronous operations keep their
    names, which the text does not show, and so do computations that Shardy refers to by name (`xla.sdy...`).

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY main { p = f32[] parameter(0)  ROOT abc = f32[] sine(p) }")
    >>> CanonicalNames().run(m).changed, str(m.entry.root)
    (True, 'ROOT sine.1 = f32[] sine(parameter.0)')
    """

    name: ClassVar[str] = "canonical-names"
    summary: ClassVar[str] = "Renames instructions to opcode and number."

    def run(self, module: Module) -> PassResult:
        count = 0
        bad = {i.name for i in module.instructions() if isinstance(i, BadInstruction)}
        for step in ("renaming", ""):  # two steps, so that no new name is taken by an old one
            number = 0
            for computation in module.computations:
                for instruction in computation.instructions if not computation.is_sugared else ():
                    if isinstance(instruction, BadInstruction):
                        continue  # a line that could not be read stays as it stands
                    name = f"{sanitized(instruction.opcode)}.{number}"
                    number += 1
                    if name in bad or f"{step}.{number}" in bad:
                        continue
                    if step and instruction.name != name:
                        count += 1
                        instruction.name = f"{step}.{number}"
                    elif not step:
                        instruction.name = name
            for place, computation in enumerate(module.computations):
                if not computation.is_printed_inline and not computation.name.startswith(_SHARDING_NOTES):
                    computation.name = f"{step or 'computation'}.{place}"
        module._instruction_names = NameUniquer(i.name for i in module.instructions())
        module._computation_names = NameUniquer(c.name for c in module.computations)
        return PassResult.of({"names": count})


def _drop(instruction: Instruction, names: tuple[str, ...]) -> int:
    """Takes attributes away; whether there were any."""
    if not any(name in instruction._attributes for name in names):
        return 0
    instruction.change(attributes={k: v for k, v in instruction._attributes.items() if k not in names})
    return 1
