"""What modules cost: operations and bytes as XLA counts them, through loops, and how long they take at least."""

from hlotext.cost.analysis import KEYS, Analysis, Cost, Key, RunCost, Share, analyze

__all__ = ["KEYS", "Analysis", "Cost", "Key", "RunCost", "Share", "analyze"]
