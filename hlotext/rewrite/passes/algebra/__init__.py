"""The rules of `algsimp`: small functions, each after one part of a handler of XLA's `AlgebraicSimplifier`."""

from hlotext.rewrite.passes.algebra import arithmetic, logic, slices, movement, reductions, dots, copies  # isort: skip
from hlotext.rewrite.passes.algebra.engine import RULES, Options, Rule, Simplifier

__all__ = [
    "RULES",
    "Options",
    "Rule",
    "Simplifier",
    "arithmetic",
    "copies",
    "dots",
    "logic",
    "movement",
    "reductions",
    "slices",
]
