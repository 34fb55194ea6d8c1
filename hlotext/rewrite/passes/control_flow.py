"""Control flow made straight: one trip of every loop."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.module import Module
from hlotext.rewrite.builder import Builder
from hlotext.rewrite.outlining import inline
from hlotext.rewrite.passes.base import Pass, PassResult


@attrs.frozen
class WhileToOneTrip(Pass):
    """Replaces every loop by one call of its body (XLA's tools call this control-flow flattening).

    For looking at, or timing, what a step does. Results are those of one trip, also for loops that would not run at all.
    """

    name: ClassVar[str] = "while-to-one-trip"
    summary: ClassVar[str] = "Replaces every loop by one run of its body."
    preserves_results: ClassVar[bool] = False

    inline_body: bool = True
    """Puts the body's instructions in place; else a call stays."""

    def run(self, module: Module) -> PassResult:
        count = 0
        for instruction in tuple(module.instructions()):
            if instruction.opcode != "while":
                continue
            body = instruction.attributes["body"]
            call = Builder.before(instruction).op(
                "call", instruction.operands, shape=instruction.shape, to_apply=body
            )
            instruction.replace_with(call)
            if self.inline_body:
                inline(call)
            count += 1
        return PassResult.of({"loops": count})
