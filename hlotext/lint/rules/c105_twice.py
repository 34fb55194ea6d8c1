"""C105: the same operation on the same operands, more than once."""

from __future__ import annotations

from hlotext.lint.merged import MergedRule
from hlotext.lint.parts.duplicate_collective import DuplicateCollective
from hlotext.lint.parts.parameter_cast import ParameterCast
from hlotext.lint.parts.recomputed_products import RecomputedProducts
from hlotext.lint.parts.repeated_loop import RepeatedLoop


class Twice(MergedRule):
    code = "C105"
    name = "twice"
    title = "the same operation on the same operands, more than once"
    waste = "again"
    former = ("D106", "G115")
    needs_optimized = True
    yields_to = frozenset({"C101", "M105", "M107"})
    parts = (
        DuplicateCollective,
        RepeatedLoop,
        RecomputedProducts,
        ParameterCast,
    )
