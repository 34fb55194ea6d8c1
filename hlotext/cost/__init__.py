"""What modules cost: operations and bytes as XLA counts them, through loops, and how long they take at least."""

from hlotext.cost.analysis import Analysis, Cost, RunCost, analyze

__all__ = ["Analysis", "Cost", "RunCost", "analyze"]
