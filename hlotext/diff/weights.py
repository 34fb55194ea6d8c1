"""Costs of the operations of changes, so that the most expensive changes come first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import hlotext as hlo
from hlotext import cost
from hlotext.diff.changes import ADDED, REMOVED, Change
from hlotext.ir.tables.traits import COLLECTIVES

Weight = tuple[float, float]
"""Bytes and flops of one run."""


class Weights:
    """Bytes and flops of the operations of both modules, loops as often as they run."""

    def __init__(self, old: hlo.Module, new: hlo.Module) -> None:
        self._costs: dict[hlo.Instruction, Weight] = {}
        for module in (old, new):
            try:
                shares = cost.analyze(module).shares()
            except (ValueError, KeyError, ArithmeticError):  # then the changes of this side have no weight
                continue
            for share in shares:
                self._costs[share.instruction] = (share.cost.bytes_accessed, share.cost.flops)

    def of(self, change: Change) -> Weight:
        """The cost of the operation, of a changed one on the side where it is larger."""
        nodes = [node for node in (change.old, change.new) if node is not None]
        if change.has_moved:  # its fusions are no changes of their own
            nodes = [_running(node) for node in nodes]
        return max((self._costs.get(node, (0.0, 0.0)) for node in nodes), default=(0.0, 0.0))

    def of_all(self, changes: Iterable[Change]) -> Weight:
        """The sum over changes."""
        each = [self.of(change) for change in changes]
        return sum(one[0] for one in each), sum(one[1] for one in each)

    def ordered(self, groups: Iterable[tuple[str, list[Change]]]) -> list[tuple[str, list[Change]]]:
        """Groups, and the changes in each, with those of most bytes first; without bytes the largest group.

        Before all others those with collectives of which there are more than before: they are small, and change most.
        """
        inner = [(title, sorted(group, key=self.of, reverse=True)) for title, group in groups]
        more: Counter[str] = Counter()
        for _, group in inner:
            for change in group:
                if change.opcode in COLLECTIVES:
                    more[change.opcode] += (change.kind == ADDED) - (change.kind == REMOVED)

        def order(pair: tuple[str, list[Change]]) -> tuple[bool, float, float, int]:
            is_new = any(change.kind == ADDED and more[change.opcode] > 0 for change in pair[1])
            return (is_new, *self.of_all(pair[1]), len(pair[1]))

        return sorted(inner, key=order, reverse=True)


def _running(node: hlo.Instruction) -> hlo.Instruction:
    """The fusion that an operation runs in, or itself."""
    callers = node.computation.callers if node.computation is not None else ()
    return callers[0] if len(callers) == 1 and callers[0].opcode == "fusion" else node
