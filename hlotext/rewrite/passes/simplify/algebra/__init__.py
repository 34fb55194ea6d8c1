"""The rules of `algsimp`, each modeled on part of a handler in XLA's `AlgebraicSimplifier`."""

from hlotext.rewrite.kit.rules import RewriteRule
from hlotext.rewrite.passes.simplify.algebra import (
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
)
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraicSimplifierOptions, AlgebraRewrite

RULES: tuple[RewriteRule, ...] = tuple(
    rule
    for module in (
        *(broadcasts, copies, dots, sums, functions, slices, indexing, joins),
        *(logic, products, reductions, reshapes, transposes),
    )
    for rule in vars(module).values()
    if isinstance(rule, RewriteRule)
)
"""Every rule, in the order in which XLA's handlers try them."""

__all__ = ["RULES", "AlgebraRewrite", "AlgebraicSimplifierOptions"]
