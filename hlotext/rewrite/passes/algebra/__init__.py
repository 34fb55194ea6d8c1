"""The rules of `algsimp`: small functions, each after one part of a handler of XLA's `AlgebraicSimplifier`."""

from hlotext.rewrite.passes.algebra import (  # noqa: F401 - each adds its rules when it is imported
    broadcasts,
    copies,
    dots,
    functions,
    indexing,
    joins,
    logic,
    products,
    reductions,
    reshapes,
    slices,
    sums,
    transposes,
)  # isort: skip  # fmt: skip
from hlotext.rewrite.passes.algebra.engine import RULES, AlgebraicSimplifierOptions, AlgebraRule, Simplifier

__all__ = ["RULES", "AlgebraRule", "AlgebraicSimplifierOptions", "Simplifier"]
