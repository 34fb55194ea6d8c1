"""Costs of the operations of changes, so that what differs most comes first."""

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
    """Bytes and FLOPs of the operations of both modules, scaled by trip counts."""

    def __init__(self, old: hlo.Module, new: hlo.Module) -> None:
        self._costs: dict[hlo.Instruction, Weight] = {}
        self._all: Weight = (0.0, 0.0)
        try:
            shares = [share for module in (old, new) for share in cost.analyze(module).shares()]
        except (ValueError, KeyError, ArithmeticError):  # of one side alone no difference is known
            return
        for share in shares:
            self._costs[share.instruction] = (share.cost.bytes_accessed, share.cost.flops)
        self._all = (
            sum(one[0] for one in self._costs.values()),
            sum(one[1] for one in self._costs.values()),
        )

    def of(self, change: Change) -> Weight:
        """Returns the increase in bytes and FLOPs due to a change."""
        (old_bytes, old_flops), (new_bytes, new_flops) = self._sides(change)
        return new_bytes - old_bytes, new_flops - old_flops

    def of_all(self, changes: Iterable[Change]) -> Weight:
        """Returns the total increase in bytes and FLOPs due to several changes."""
        each = [self.of(change) for change in changes]
        return sum(one[0] for one in each), sum(one[1] for one in each)

    def size(self, change: Change) -> tuple[float, ...]:
        """Returns the sort key of a change: its share of the totals, then the cost of the more expensive side."""
        return (self.part([change]), *max(self._sides(change)))

    def part(self, changes: Iterable[Change]) -> float:
        """Returns the relative size of changes: the larger of their fractions of all bytes and of all FLOPs."""
        weight = self.of_all(changes)
        return max(
            (abs(one) / whole for one, whole in zip(weight, self._all, strict=True) if whole), default=0.0
        )

    def _sides(self, change: Change) -> tuple[Weight, Weight]:
        # What moved runs in a fusion that is no change of its own.
        nodes = [_running(node) if node and change.has_moved else node for node in (change.old, change.new)]
        old, new = ((0.0, 0.0) if node is None else self._costs.get(node, (0.0, 0.0)) for node in nodes)
        return old, new

    def ordered(self, groups: Iterable[tuple[str, list[Change]]]) -> list[tuple[str, list[Change]]]:
        """Sorts groups, and the changes in each, by difference in bytes or FLOPs, then by cost, largest first.

        Groups with more collectives than before come first, since these are small but important.
        """
        inner = [(title, sorted(group, key=self.size, reverse=True)) for title, group in groups]
        more: Counter[str] = Counter()
        for _, group in inner:
            for change in group:
                if change.opcode in COLLECTIVES and not change.is_part:
                    more[change.opcode] += (change.kind == ADDED) - (change.kind == REMOVED)

        def order(pair: tuple[str, list[Change]]) -> tuple[float, ...]:
            changes = pair[1]
            is_new = any(one.kind == ADDED and more[one.opcode] > 0 and not one.is_part for one in changes)
            return (is_new, self.part(changes), *self.size(changes[0]), len(changes))

        return sorted(inner, key=order, reverse=True)


def _running(node: hlo.Instruction) -> hlo.Instruction:
    """The fusion that an operation runs in, or itself."""
    callers = node.computation.callers if node.computation is not None else ()
    return callers[0] if len(callers) == 1 and callers[0].opcode == "fusion" else node
