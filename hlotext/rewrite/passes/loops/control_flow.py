"""Control flow made straight: one trip of every loop."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.outlining import inline
from hlotext.rewrite.passes.base import Pass, PassResult


@attrs.frozen
class WhileToOneTrip(Pass):
    """Replaces every loop with one call of its body (control-flow flattening in XLA's tools).

    For inspecting or timing one step. Results are those of one iteration, also for loops that would not run at all.
    Conditions and inlined bodies are removed unless something else calls them.
    """

    name: ClassVar[str] = "while-to-one-trip"
    summary: ClassVar[str] = "Replaces each loop with one iteration of its body."
    preserves_results: ClassVar[bool] = False

    inline_body: bool = True
    """Puts the body's instructions in place; else a call stays."""

    def run(self, module: Module) -> PassResult:
        growth = InstructionBudget(self.name, module)
        count = 0
        called = frozenset(c for c in module.computations if module.calls_of(c))
        left: dict[Computation, None] = {}
        # Callers first: each body is put in place once, and not again with whatever it was put into.
        for computation in reversed(post_order(module.computations)):
            callers = module.calls_of(computation)
            if self.inline_body and computation in called and all(i.computation in left for i in callers):
                left[computation] = None
                continue
            pending = [i for i in reversed(computation.instructions) if i.opcode == "while"]
            while pending:
                made = self._replace(pending.pop(), growth)
                pending += [i for i in reversed(made) if i.opcode == "while"]
                count += 1
        module.remove_all(left)
        return PassResult.of({"loops": count})

    def _replace(self, loop: Instruction, growth: InstructionBudget) -> list[Instruction]:
        """Puts a call of its body, or the body, in a loop's place; the instructions that were made."""
        body = loop.attributes["body"]
        call = Builder.before(loop).op("call", loop.operands, shape=loop.shape, to_apply=body)
        loop.replace_with(call)
        if not self.inline_body:
            return []
        growth.add(len(body))
        return list(inline(call).values())
