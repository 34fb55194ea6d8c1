"""A module that says nothing of who wrote it, and of what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np

from hlotext.edit.per_argument_attributes import OF_RESULTS, PER_ARGUMENT
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.targets import is_public_target
from hlotext.ir.values.configs import FrontendAttributes
from hlotext.ir.values.literal import Literal
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.cleanup.compiler_notes import SHARDY, AxisNames, is_compilers, says_nothing
from hlotext.rewrite.passes.cleanup.strip import METADATA, CanonicalNames, StripMetadata

_HEADER = ("origin_recovery_table", "debug_attributes")
_COMPOSITE = {"composite.attributes": "{}", "composite.name": "composite", "composite.version": "1"}
"""Attributes that XLA requires of a composite call and that are meaningless here."""
_CONFIGS = ("infeed_config", "outfeed_config")
MAX_KEPT_ELEMENTS = 16
"""Constants of more elements are data; smaller ones are numbers that the program needs."""


@attrs.frozen
class Anonymize(Pass):
    """Removes everything that identifies a module's origin, so that it can be shared.

    Names become opcodes and numbers, mesh axis names become numbers. Metadata (also inside shardings), source files, original
    values, frontend attributes (except those that describe argument layouts, and XLA's own with predefined values), and the
    settings of custom calls, infeeds and outfeeds are removed. Constants of more than 16 elements become zeros, so that
    weights and tables are not disclosed. Shapes, shardings and custom call targets (see `targets`) remain.

    >>> import hlotext as hlo
    >>> m = hlo.parse('ENTRY mine { ROOT x = f32[] parameter(0), metadata={op_name="plan"} }')
    >>> Anonymize().run(m).changed, str(m.entry.root)
    (True, 'ROOT parameter.0 = f32[] parameter(0)')
    """

    name: ClassVar[str] = "anonymize"
    summary: ClassVar[str] = (
        "Removes names, source lines, annotations and data, so that a module can be shared."
    )
    preserves_results: ClassVar[bool] = False

    constants: bool = True
    """Makes large constants zeros."""
    targets: bool = False
    """Numbers the custom call targets that are no compiler's or front end's, too; then these cannot run."""
    module_name: str = "module"

    def run(self, module: Module) -> PassResult:
        is_for_one = says_nothing(module)
        counts = {
            "metadata": StripMetadata().run(module).statistics.get("instructions", 0),
            "notes": sum(_without_notes(i, is_for_one) for i in tuple(module.instructions()))
            + _without_header_notes(module, is_for_one),
            "axes": AxisNames().number(module),
            "constants": sum(map(_zeroed, tuple(module.instructions()))) if self.constants else 0,
            "targets": _numbered_targets(module) if self.targets else 0,
            "names": CanonicalNames().run(module).statistics.get("names", 0),
        }
        if module.name != self.module_name:
            module.name = self.module_name
            counts["names"] += 1
        return PassResult.of(counts)


def _without_notes(i: Instruction, is_for_one: bool) -> int:
    """Takes out notes and configurations that only their author reads; whether there were any."""
    gone = {*METADATA, "frontend_attributes"}
    # XLA insists on the notes of its own calls.
    is_xla_call = str(i.attributes.get("custom_call_target", "")).startswith(SHARDY)
    if i.opcode == "custom-call":
        gone.add("backend_config")
    kept = {k: v for k, v in i.attributes.items() if k not in gone and k not in _CONFIGS}
    notes = _compilers(i.frontend_attributes, is_for_one and not is_xla_call)
    if notes:
        kept["frontend_attributes"] = FrontendAttributes(notes)
    if i.attributes.get("is_composite"):
        kept["frontend_attributes"] = FrontendAttributes(_COMPOSITE)
    sharding = i.sharding
    if sharding is not None:
        kept["sharding"] = sharding.without_metadata()
    if kept == dict(i.attributes):
        return 0
    i.change(attributes=kept)
    return 1


def _compilers(notes: Mapping[str, str], is_for_one: bool) -> dict[str, str]:
    """The compiler's own notes, those of Shardy only where there are devices to speak of."""
    return {
        key: value
        for key, value in notes.items()
        if is_compilers(key, value) and not (is_for_one and key.startswith(SHARDY))
    }


def _without_header_notes(module: Module, is_for_one: bool) -> int:
    count = 0
    for name in _HEADER:
        if name in module.attributes:
            del module.attributes[name]
            count += 1
    notes = module.attributes.get("frontend_attributes")
    if isinstance(notes, FrontendAttributes):
        kept = {k: v for k, v in notes.items() if k in PER_ARGUMENT or k in OF_RESULTS}
        kept.update(_compilers(notes, is_for_one))
        if len(kept) == len(notes):
            return count
        if kept:
            module.attributes["frontend_attributes"] = FrontendAttributes(kept)
        else:
            del module.attributes["frontend_attributes"]
        count += 1
    return count


def _zeroed(i: Instruction) -> int:
    """Makes a large constant zeros; whether it was one."""
    literal = i.literal
    array = literal.known_array if literal is not None else None
    if literal is None or array is None or array.size <= MAX_KEPT_ELEMENTS or not array.any():
        return 0
    i.literal = Literal.from_array(np.zeros_like(array), literal.shape)
    return 1


def _numbered_targets(module: Module) -> int:
    """Names targets by number, in the order of the text; public ones stay. How many calls changed."""
    numbers: dict[str, int] = {}
    count = 0
    for i in tuple(module.instructions()):
        target = i.attributes.get("custom_call_target")
        if isinstance(target, str) and not is_public_target(target):
            name = f"target.{numbers.setdefault(target, len(numbers))}"
            if name != target:
                i.attributes["custom_call_target"] = name
                count += 1
    return count
