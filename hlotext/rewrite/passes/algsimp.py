"""Algebraic simplification."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.passes.algebra import RULES
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.rewriter import Rewrite, Rule, apply_rules


@attrs.frozen
class AlgebraicSimplifier(Pass):
    """Applies the rules of `passes/algebra` until none fits: a safe part of XLA's `AlgebraicSimplifier`.

    Each rule's docstring is its example. Where layouts are given, a value takes another's place only with the same layout.
    Bodies of fusions stay as they are.
    """

    name: ClassVar[str] = "algsimp"
    summary: ClassVar[str] = "Simplifies expressions by rules such as add(x, 0) => x."

    max_iterations: int = 0
    """How many rewrites at most for each instruction of the module; 0: as many as it takes."""

    def run(self, module: Module) -> PassResult:
        chosen = nonfusion_computations(module)
        limit = self.max_iterations * sum(map(len, module.computations)) if self.max_iterations else None
        return PassResult.of(apply_rules(module, LAYOUT_KEEPING, computations=chosen, max_rewrites=limit))


def _keeping_layout(rule: Rule) -> Rule:
    """The rule where its result has the very shape of what it replaces."""

    def function(r: Rewrite) -> Instruction | None:
        new = rule.function(r)
        if new is None or str(new.shape) == str(r.instruction.shape):
            return new
        return None

    function.__doc__ = rule.doc
    return attrs.evolve(rule, function=function)


LAYOUT_KEEPING = tuple(map(_keeping_layout, RULES))
"""The rules as they are applied."""
