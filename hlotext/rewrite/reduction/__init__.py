"""Delta debugging: reduces a module that triggers a failure."""

from hlotext.rewrite.reduction.reducer import Reduction, reduce

__all__ = ["Reduction", "reduce"]
