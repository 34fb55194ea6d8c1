"""Passes that put something else in the place of each instruction of a kind (XLA's `OpExpanderPass`)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.computation import instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.passes.algebra.engine import AlgebraicSimplifierOptions, Simplifier
from hlotext.rewrite.passes.base import InstructionBudget, Pass, PassResult, nonfusion_computations


@attrs.frozen
class Expander(Pass):
    """A pass that looks at every instruction outside of fusions once, as they were before it."""

    counted: ClassVar[str] = ""
    """Name of the expanded instructions in `PassResult.statistics`."""
    relays_control: ClassVar[bool] = False
    """True to expand instructions with control dependencies too, and forward these."""

    def matches(self, i: Instruction) -> bool:
        """True if an instruction is to be expanded (`InstructionMatchesPattern`)."""
        raise NotImplementedError

    def expand(self, s: Simplifier, i: Instruction) -> Instruction | None:
        """Replacement (`ExpandInstruction`); None leaves it, the instruction itself means changed in place."""
        raise NotImplementedError

    def options(self, module: Module) -> AlgebraicSimplifierOptions:
        """Simplifier options for `expand`: the age, in a pass whose XLA releases differ."""
        return AlgebraicSimplifierOptions()

    def run(self, module: Module) -> PassResult:
        """Expands what matches; None where control dependencies are in the way."""
        s = Simplifier(module, self.options(module))
        growth = InstructionBudget(self.name, module)
        found = [
            i
            for computation in nonfusion_computations(module)
            for i in instruction_post_order(computation)
            if is_typed(i) and not _is_unbounded(i) and self.matches(i)
        ]
        count = 0
        for i in found:
            if not self.relays_control and (i.control_predecessors or i.control_successors):
                continue
            home = i.computation
            if home is None or any(caller.opcode == "async-start" for caller in home.callers):
                continue  # what runs asynchronously is one operation
            before = len(home)
            s.place = i
            new = self.expand(s, i)
            growth.add(max(0, len(home) - before))
            if new is i or (new is not None and s.replace(i, new, relay_control=self.relays_control)):
                count += 1
        s.place = None
        return PassResult.of({self.counted: count})


def is_typed(i: Instruction) -> bool:
    """True if shapes of an instruction and its operands are known."""
    return i.shape is not None and all(o.shape is not None for o in i.operands)


def _is_unbounded(i: Instruction) -> bool:
    """True if a dimension of an instruction or its operands has no size at all, by which nothing can be expanded.

    Of operands that are tuples, which have many users, the elements that are used say so themselves.
    """
    assert i.shape is not None
    arrays = (o.shape for o in i.operands if o.shape is not None and not o.shape.is_tuple)
    return i.shape.is_unbounded or any(shape.is_unbounded for shape in arrays)
