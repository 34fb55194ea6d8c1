"""Finds the allocation to reuse for a buffer: the most recent one with a free interval for it.

XLA tries all of them in turn (`DefaultBufferAllocationsManagerForComputationsWithoutOrdering`). Here each allocation's gaps
are indexed, so that those without room are skipped; the result is the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import late_module
from hlotext.memory.values import Range

if TYPE_CHECKING:
    import numpy as np
else:
    np = late_module("numpy")

Owners = Collection[int] | None
"""Allocations by number; None: any."""
_FEW = 4
"""Candidates that are looked for one by one: mostly the first one takes the buffer, and sorting all takes longer."""


class ReusableAllocations:
    """Index of allocations by their free time intervals."""

    def __init__(self, moments: int) -> None:
        self._moments = moments
        self._begins = np.empty(16, dtype=np.int64)
        self._ends = np.empty(16, dtype=np.int64)
        self._owners = np.empty(16, dtype=np.int64)
        self._live_out = np.empty(16, dtype=np.bool_)
        self._count = 0
        self._results: set[int] = set()
        # Allocations that hold a result of the module: those whose rows are marked.
        self._gaps: dict[int, list[tuple[int, int, int]]] = {}
        # Begin, end and row of the gaps of each allocation, in time.
        # The latest end of a gap among those that begin by some moment, as a tree of partial maxima: most buffers fit
        # into no gap at all, and this says so at once.
        self._latest = [-1] * (moments + 3)

    def add(self, allocation: int, ranges: list[Range], *, lives_out: bool) -> None:
        """Adds an allocation that is occupied during these ranges; `lives_out` if it holds a result of the module."""
        end = self._moments + 1
        self._gaps[allocation] = [(-1, end, self._new(-1, end, allocation, False))]
        self.occupy(allocation, ranges, lives_out=lives_out)

    def occupy(self, allocation: int, ranges: list[Range], *, lives_out: bool) -> None:
        """Marks further ranges of an allocation as occupied. Does nothing for an allocation that was not added."""
        gaps = self._gaps.get(allocation)
        if gaps is None:
            return
        if lives_out and allocation not in self._results:
            self._results.add(allocation)
            self._live_out[[row for _, _, row in gaps]] = True
        for first, last in ranges:
            # Gaps that are touched end where the range begins, and begin again where it ends.
            low = max(0, bisect_right(gaps, (first, -1, -1)) - 1)
            high = low
            while high < len(gaps) and gaps[high][0] <= last:
                high += 1
            left = []
            for begin, end, row in gaps[low:high]:
                if end < first:
                    left.append((begin, end, row))
                    continue
                self._ends[row] = -1
                if begin <= first:
                    left.append((begin, first, self._new(begin, first, allocation, lives_out)))
                if last <= end:
                    left.append((last, end, self._new(last, end, allocation, lives_out)))
            gaps[low:high] = left

    def _new(self, begin: int, end: int, allocation: int, lives_out: bool) -> int:
        row = self._count
        if row == len(self._begins):
            for name in ("_begins", "_ends", "_owners", "_live_out"):
                setattr(self, name, np.concatenate([getattr(self, name), getattr(self, name)]))
        self._begins[row], self._ends[row], self._owners[row] = begin, end, allocation
        self._live_out[row] = lives_out
        self._count += 1
        place = begin + 2
        latest = self._latest
        while place < len(latest):
            latest[place] = max(latest[place], end)
            place += place & -place
        return row

    def candidates(
        self, first: int, last: int, before: Owners = None, after: Owners = None, *, may_live_out: bool = True
    ) -> Iterator[int]:
        """Yields the allocations that are free from `first` to `last`, most recently added first.

        Of those occupied up to `first`, only those in `before` are included, and of those occupied from `last` on, only
        those in `after`; None includes all. Without `may_live_out`, allocations that hold a result of the module are
        excluded.
        """
        place, latest, longest = first + 2, self._latest, -1
        while place:
            longest = max(longest, latest[place])
            place -= place & -place
        if longest < last:
            return
        count = self._count
        begins, ends = self._begins[:count], self._ends[:count]
        found = (begins <= first) & (ends >= last)
        if before is not None:
            found &= (begins < first) | np.isin(self._owners[:count], list(before))
        if after is not None:
            found &= (ends > last) | np.isin(self._owners[:count], list(after))
        if not may_live_out:
            found &= ~self._live_out[:count]
        owners = self._owners[:count][found]
        for _ in range(_FEW):
            if not len(owners):
                return
            newest = owners.max()
            yield int(newest)
            owners = owners[owners < newest]
        yield from np.unique(owners)[::-1].tolist()


class LiveIntervals:
    """The occupied ranges of an allocation, searchable by overlap."""

    __slots__ = ("_firsts", "_rows", "_span")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._rows: list[tuple[int, int, int]] = []
        self._span = 0

    def add(self, first: int, last: int, number: int) -> None:
        place = bisect_right(self._firsts, first)
        self._firsts.insert(place, first)
        self._rows.insert(place, (first, last, number))
        self._span = max(self._span, last - first)

    def meeting(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Yields the rows (first, last, number) that overlap the times from `first` to `last`."""
        begin = bisect_left(self._firsts, first - self._span)
        end = bisect_right(self._firsts, last)
        for row in self._rows[begin:end]:
            if row[1] >= first:
                yield row
