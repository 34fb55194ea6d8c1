"""Limits on the number of instructions that a pass may add to a module."""

from __future__ import annotations

from hlotext.ir.nodes.module import Module

MAX_GROWTH = 20_000
"""Number of instructions that a pass may add to a module, in addition to eight per existing instruction."""


class PassLimitError(ValueError):
    """Raised if a pass would add more instructions than its limit."""


class InstructionBudget:
    """Budget for the instructions that a pass adds. Inlining a chain of calls can make a module exponentially larger."""

    def __init__(self, name: str, module: Module) -> None:
        self.name = name
        self.limit = MAX_GROWTH + 8 * sum(map(len, module.computations))
        self.count = 0

    def add(self, count: int) -> None:
        """Counts more added instructions. Raises PassLimitError if the budget is exceeded."""
        self.count += count
        if self.count > self.limit:
            raise PassLimitError(
                f"{self.name} would add more than {self.limit:,} instructions, since computations are called too often"
            )
