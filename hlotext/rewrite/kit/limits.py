"""Bounds of what a pass may add to a module."""

from __future__ import annotations

from hlotext.ir.nodes.module import Module

MAX_GROWTH = 20_000
"""Instructions that a pass may add, beyond eight for every one that the module has."""


class PassLimitError(ValueError):
    """A pass would make a module too large."""


class InstructionBudget:
    """Counts what a pass adds. Chains of calls that double at each step grow exponentially when they are taken apart."""

    def __init__(self, name: str, module: Module) -> None:
        self.name = name
        self.limit = MAX_GROWTH + 8 * sum(map(len, module.computations))
        self.count = 0

    def add(self, count: int) -> None:
        """Raises PassLimitError where these were too many."""
        self.count += count
        if self.count > self.limit:
            raise PassLimitError(
                f"{self.name} would add more than {self.limit:,} instructions, since computations are called too often"
            )
