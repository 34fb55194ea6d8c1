"""A computation of its own for every caller."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import attrs

from hlotext.edit.calls import OWNERS
from hlotext.edit.cloning import give_copies
from hlotext.ir.nodes import async_ops
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.properties import FLAT_CALL_GRAPH


@attrs.frozen
class FlattenCallGraph(Pass):
    """Clones computations so that each is called in one place (XLA's `FlattenCallGraph`).

    This covers every kind of call: branches, loop bodies, and the computations of reduces and sorts. Callees come first;
    second and later callers, in text order, get clones, together with clones of everything called below.

    >>> import hlotext as hlo
    >>> m = hlo.parse("f { p = f32[] parameter(0)  ROOT n = f32[] sine(p) }  ENTRY e { x = f32[] parameter(0)"
    ...     "  a = f32[] call(x), to_apply=f  ROOT b = f32[] call(a), to_apply=f }")
    >>> FlattenCallGraph().run(m).statistics
    {'copies': 1}
    >>> print(m.entry.root)
    ROOT b = f32[] call(a), to_apply=f.clone
    """

    name: ClassVar[str] = "flatten-call-graph"
    summary: ClassVar[str] = "Clones shared computations so that each has one caller."
    ensures = (FLAT_CALL_GRAPH,)

    def run(self, module: Module) -> PassResult:
        growth = InstructionBudget(self.name, module)
        count = 0
        uses: dict[Instruction, Counter[Computation]] = {}
        places = {c: number for number, c in enumerate(module.computations)}
        for computation in post_order(module.computations):
            callers = sorted(
                filter(_counts, computation.callers),
                key=lambda i: places.get(i.computation, len(places)) if i.computation else 0,
            )
            for number, caller in enumerate(callers):
                if caller not in uses:  # a conditional may call thousands
                    uses[caller] = Counter(caller.called_computations)
                if number or uses[caller][computation] > 1:
                    count += _give_own(caller, computation, growth)
        return PassResult.of({"copies": count})


def _counts(caller: Instruction) -> bool:
    """True if XLA knows an instruction as a caller: updates and ends only repeat what their start runs."""
    return async_ops.ROLES.get(caller.opcode) in (None, "start")


def _give_own(caller: Instruction, wanted: Computation, growth: InstructionBudget) -> int:
    """Gives a caller copies of one computation, one for each time that it names it, and of what those call; how many."""
    count = 0
    pending = _replace_callees(caller, wanted, growth)
    while pending:
        computation = pending.pop()
        count += 1
        for i in computation.instructions:
            if i.opcode not in OWNERS and i.called_computations:
                pending += _replace_callees(i, None, growth)
            elif i.opcode in OWNERS:  # copied with the computation around it
                pending += i.called_computations
                count -= len(i.called_computations)
    return count


def _replace_callees(
    caller: Instruction, wanted: Computation | None, growth: InstructionBudget
) -> list[Computation]:
    """Makes a caller call copies of one computation, or of all; the copies."""
    for _, callee in caller.callees():
        if wanted is None or callee is wanted:
            growth.add(len(callee))
    # What they repeat of it is read and forgotten.
    for follower in caller.async_chain if caller.opcode == "async-start" else ():
        if follower is not caller and "calls" in follower.attributes:
            follower.change(attributes={k: v for k, v in follower.attributes.items() if k != "calls"})
    return give_copies(caller, wanted)
