"""Loops written out, a copy of the body for each round."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import attrs

from hlotext.analysis import trip_count
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcode import Family
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.outlining import inline
from hlotext.rewrite.passes.base import Pass, PassResult


@attrs.frozen
class UnrollLoops(Pass):
    """Fully unrolls loops with known trip counts, inner loops first.

    Trip counts come from `hlotext.analysis.trip_count`: XLA's annotation, or the loop's own constants. Loops that send or
    receive are kept, since both ends count, as are longer loops and those that would become too large. Clones of collectives
    get their own channels. Unlike XLA's `while-loop-unroller` it folds nothing; `tuple-simplifier` and `constant-folding` may
    follow.

    >>> import hlotext as hlo
    >>> m = hlo.parse('b { s = (s32[]) parameter(0)  n = s32[] get-tuple-element(s), index=0  m = s32[] multiply(n, n)'
    ...     '  ROOT t = (s32[]) tuple(m) }  c { s = (s32[]) parameter(0)  ROOT p = pred[] constant(true) }  ENTRY e {'
    ...     '  x = (s32[]) parameter(0)  ROOT w = (s32[]) while(x), condition=c, body=b, backend_config='
    ...     '{"known_trip_count":{"n":"3"}} }')
    >>> UnrollLoops().run(m).statistics
    {'loops': 1, 'rounds': 3}
    >>> print(m.entry.root)
    ROOT t.3 = (s32[]) tuple(m.3)
    """

    name: ClassVar[str] = "unroll-loops"
    summary: ClassVar[str] = "Fully unrolls loops with known trip counts."

    max_trips: int = 16
    """Loops that run more often stay."""
    max_instructions: int = 10_000
    """Loops whose copies would be more instructions than this stay, and those beyond what a pass may make in all."""

    def run(self, module: Module) -> PassResult:
        channels = _Channels(module)
        left = InstructionBudget(self.name, module).limit
        loops = rounds = 0
        order = post_order(module.computations)
        barred = _counting_on_both_ends(order)
        for computation in order:
            for loop in computation.instructions:
                if loop.opcode != "while":
                    continue
                count = trip_count(loop)
                if count is None or not self._is_wanted(loop, count) or loop.attributes["body"] in barred:
                    continue
                made = count * len(loop.attributes["body"])
                if made > left:
                    continue
                left -= made
                _unroll(loop, count, channels)
                loops, rounds = loops + 1, rounds + count
        return PassResult.of({"loops": loops, "rounds": rounds})

    def _is_wanted(self, loop: Instruction, count: int) -> bool:
        body: Computation = loop.attributes["body"]
        return count <= self.max_trips and count * len(body) <= self.max_instructions


def _counting_on_both_ends(order: Iterable[Computation]) -> set[Computation]:
    """The computations in which something is sent or received, or that call one; `order` has callees first."""
    found: set[Computation] = set()
    for computation in order:
        if any(_counts_on_both_ends(i) or not found.isdisjoint(i.called_computations) for i in computation):
            found.add(computation)
    return found


def _counts_on_both_ends(i: Instruction) -> bool:
    row = OPCODES.get(i.opcode)
    return row is None or row.family is Family.POINT_TO_POINT


class _Channels:
    """Hands out channels that no instruction of a module has."""

    def __init__(self, module: Module) -> None:
        used = (i.attributes.get("channel_id") for i in module.instructions())
        self.last = max((number for number in used if isinstance(number, int)), default=0)

    def next(self) -> int:
        self.last += 1
        return self.last


def _unroll(loop: Instruction, count: int, channels: _Channels) -> None:
    """Puts copies of the body in the place of a loop."""
    body: Computation = loop.attributes["body"]
    (value,) = loop.operands
    for number in range(count):
        call = Builder(loop.computation, loop).op("call", (value,), to_apply=body)  # type: ignore[arg-type]
        copies = inline(call)
        value = copies.get(body.root, value)
        for copy in copies.values() if number else ():
            if isinstance(copy.attributes.get("channel_id"), int):
                copy.attributes["channel_id"] = channels.next()
    loop.replace_with(value)
