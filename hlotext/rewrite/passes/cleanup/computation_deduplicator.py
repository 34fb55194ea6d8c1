"""One computation for all that compute the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from hlotext.edit.calls import OWNERS
from hlotext.ir.nodes.computation import Computation, instruction_post_order, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import COLLECTIVES
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.cleanup.cse import Contents

MAX_INSTRUCTIONS = 128
MAX_ELEMENTS = 1024
"""Computations with more instructions, or with constants of more elements together, are not compared."""


@attrs.frozen
class ComputationDeduplicator(Pass):
    """Makes callers of equal computations share one of them (XLA's `HloComputationDeduplicator`).

    Not merged are the entry, large computations, computations with large constants, and those called by collectives.

    >>> import hlotext as hlo
    >>> m = hlo.parse("f { p = f32[] parameter(0)  ROOT n = f32[] sine(p) }"
    ...     "  g { q = f32[] parameter(0)  ROOT o = f32[] sine(q) }"
    ...     "  ENTRY e { x = f32[] parameter(0)  a = f32[] call(x), to_apply=f  ROOT b = f32[] call(a), to_apply=g }")
    >>> ComputationDeduplicator().run(m).statistics
    {'computations': 1}
    >>> print(m.entry.root)
    ROOT b = f32[] call(a), to_apply=f
    """

    name: ClassVar[str] = "computation-deduplicator"
    summary: ClassVar[str] = "Merges identical computations."

    mark_fusion_duplications: bool = False
    """Keep all computations, and name the first fusion of an equal one in the metadata of those that follow, as on GPU
    after fusion."""

    def run(self, module: Module) -> PassResult:
        contents = Contents()
        first: dict[Any, Computation] = {}
        gone: dict[Computation, Computation] = {}
        for computation in post_order(module.computations):
            callers = computation.callers
            if computation.is_entry or not callers or not _is_small(computation):
                continue
            if any(i.opcode in COLLECTIVES for i in callers):
                continue
            if not self.mark_fusion_duplications and any(i.opcode in OWNERS for i in callers):
                continue
            key = contents.number(computation), _text_key(computation)
            kept = first.setdefault(key, computation)
            if kept is not computation:
                gone[computation] = kept
        if self.mark_fusion_duplications:
            return PassResult.of({"fusions": _mark(gone)})
        for caller in dict.fromkeys(caller for computation in gone for caller in computation.callers):
            changed = {name: _swapped(caller.attributes[name], gone) for name in dict(caller.callees())}
            caller.change(attributes={**caller.attributes, **changed}, typed=False)
        if gone:
            module.remove_all(gone)
        return PassResult.of({"computations": len(gone)})


def _mark(duplicates: Mapping[Computation, Computation]) -> int:
    """Names the first of equal fusions in the metadata of each, and counts those changed (`MarkFusionDuplications`)."""
    marked: dict[Instruction, str] = {}
    for computation, first in duplicates.items():
        one = next((caller for caller in first.callers if caller.opcode == "fusion"), None)
        if one is not None:
            same = [one, *(caller for caller in computation.callers if caller.opcode == "fusion")]
            marked.update(dict.fromkeys(same, one.name))
    count = 0
    for fusion, name in marked.items():
        metadata = fusion.metadata
        if metadata is not None and metadata.deduplicated_name != name:  # a name alone is never printed
            noted = attrs.evolve(metadata, deduplicated_name=name)
            fusion.change(attributes={**fusion.attributes, "metadata": noted}, typed=False)
            count += 1
    return count


def _swapped(value: Any, gone: Mapping[Computation, Computation]) -> Any:
    if isinstance(value, tuple):
        return tuple(gone.get(item, item) for item in value)
    return gone.get(value, value)


def _is_small(computation: Computation) -> bool:
    if len(computation) > MAX_INSTRUCTIONS or computation.is_sugared:
        return False
    total = 0
    for i in computation:
        if i.literal is not None:
            total += i.literal.shape.element_count if i.literal.shape.is_array else MAX_ELEMENTS + 1
    return total <= MAX_ELEMENTS


def _text_key(computation: Computation) -> Any:
    """Key of a computation's text; order and number of instructions count, unused ones included."""
    return tuple((i.opcode, i.shape) for i in instruction_post_order(computation))
