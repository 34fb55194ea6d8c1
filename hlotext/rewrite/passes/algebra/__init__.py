"""The rules of algebraic simplification, by what they are about."""

from __future__ import annotations

from hlotext.rewrite.passes.algebra import arithmetic, logic, movement, splats
from hlotext.rewrite.rewriter import Rule

RULES: tuple[Rule, ...] = (*arithmetic.RULES, *logic.RULES, *movement.RULES, *splats.RULES)
"""Every rule, in the order in which they are tried."""
