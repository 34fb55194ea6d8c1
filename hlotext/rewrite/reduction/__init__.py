"""Delta debugging: the smallest module that still fails."""

from hlotext.rewrite.reduction.reducer import Reduction, reduce

__all__ = ["Reduction", "reduce"]
