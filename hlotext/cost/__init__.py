"""What modules cost: operations and bytes as XLA counts them, through loops, and how long they take at least."""

from hlotext.cost.analysis import KEYS, Analysis, Cost, Key, RunCost, Share, analyze
from hlotext.cost.estimate import Estimate, InstructionTime, PathStep, TransferTime, estimate
from hlotext.cost.roofline import Bound, Least

__all__ = [
    "KEYS",
    "Analysis",
    "Bound",
    "Cost",
    "Estimate",
    "InstructionTime",
    "Key",
    "Least",
    "PathStep",
    "RunCost",
    "Share",
    "TransferTime",
    "analyze",
    "estimate",
]
