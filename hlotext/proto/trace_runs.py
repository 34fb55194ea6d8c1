"""Runs of a program on the CPU as a trace records them, and which of them its beginning or end cut off."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping

import attrs


@attrs.define(eq=False)
class RecordedRun:
    """Operations recorded for one run of a program on one device."""

    events: list[tuple[int, int, str]] = attrs.field(factory=list)
    """First and last moment, in picoseconds, and the name of the operation."""
    is_open: bool = False
    """True if the trace has the start of an operation and not its end."""

    def bound(self, users: Mapping[str, Collection[str]]) -> None:
        """Shortens each operation so that it ends before its users begin and before it runs again.

        The CPU runtime records the end of an operation after whatever else the thread does then, often after the rest
        of a loop iteration.
        """
        starts: dict[str, list[int]] = defaultdict(list)
        for first, _, name in self.events:
            starts[name].append(first)
        for moments in starts.values():
            moments.sort()
        for place, (first, last, name) in enumerate(self.events):
            for other in (name, *users.get(name, ())):
                moments = starts.get(other, [])
                after = bisect_right(moments, first)
                if after < len(moments):
                    last = min(last, moments[after])
            self.events[place] = (first, last, name)

    def has_overlaps(self) -> bool:
        """True if an operation begins during another one and ends after it."""
        end = -1
        for first, last, _ in sorted(self.events, key=lambda event: (event[0], -event[1])):
            if first < end < last:
                return True
            end = max(end, last)
        return False

    @property
    def first(self) -> int:
        return min(first for first, _, _ in self.events)

    @property
    def last(self) -> int:
        return max(last for _, last, _ in self.events)

    def names(self) -> set[str]:
        """Returns the names of the operations that ran."""
        return {name for _, _, name in self.events}

    def outermost(self) -> set[str]:
        """Returns the names of operations that ran within no other one; every complete run has them, whichever branches
        it takes.
        """
        found: set[str] = set()
        end = -1
        for _, last, name in sorted(self.events, key=lambda event: (event[0], -event[1])):
            if last > end:
                found.add(name)
                end = last
        return found


def cut_runs(runs: Mapping[int, RecordedRun]) -> set[int]:
    """Returns the numbers of the runs that the trace contains only in part.

    The profiler records an operation when it ends: of a loop that is cut off, its body's operations are recorded, but
    not the loop. So the first and last run are compared with the others.
    """
    found = {number for number, one in runs.items() if one.is_open}
    order = sorted(runs, key=lambda number: runs[number].first)
    if len(order) < 2:
        return found
    inner = [runs[number].outermost() for number in order[1:-1] if number not in found]
    for number, other in ((order[0], order[-1]), (order[-1], order[0])):
        whole = set.intersection(*inner) if inner else runs[other].outermost()
        if not whole <= runs[number].names():
            found.add(number)
    return found
