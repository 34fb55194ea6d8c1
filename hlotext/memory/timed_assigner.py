"""Assigns buffers to allocations on TPU in order of time, as libtpu does since `FAST_MERGE`.

As in `assigner.py`, but that buffers come by their first moment, and that the only memory used again outside of the heap is
that of results whose values are dead (`AssignBuffersForComputations`). Compared with libtpu's files.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

from hlotext.memory.assigner import Assigner, Opened


class TimedAssigner(Assigner):
    """Assigns the buffers of a module in order of their start times."""

    _held: list[tuple[int, int]]
    """Allocations of results that hold something: until when, and their number."""
    _free: dict[int, list[tuple[int, int]]]
    """Those that hold nothing any more by memory space: (bytes, number), ascending."""

    _starts: dict[int, int]
    """The first moment of each buffer."""

    def run_all(self, numbers: Sequence[int]) -> list[int]:
        self._held, self._free, self._starts = [], {}, {}
        return super().run_all(numbers)

    def _sorted(self, numbers: Sequence[int]) -> list[int]:
        sizes, live_out, starts = self._buffers.sizes, self._live_out, self._starts
        for number in numbers:
            starts[number] = min([first for first, _ in self._ranges_of(number)], default=-1)

        def key(number: int) -> tuple[int, int, bool, int]:
            return starts[number], -sizes[number], number not in live_out, number

        return sorted(numbers, key=key)

    def _candidates(self, number: int) -> Iterator[int]:
        members, size = self._buffers.members[number], self._buffers.sizes[number]
        start = self._starts[number]
        while self._held and self._held[0][0] <= start:
            _, freed = heapq.heappop(self._held)
            opened = self._open[freed]
            last = opened.last
            if last > start:  # an operand's result was put there since
                heapq.heappush(self._held, (last, freed))
            else:
                insort(
                    self._free.setdefault(opened.allocation.memory_space, []),
                    (opened.allocation.bytes, freed),
                )
        if any(map(self._platform.cannot_live_out, members)):
            return
        rows = self._free.get(members[0].memory_space, [])
        for place in range(bisect_left(rows, (size, -1)), len(rows)):
            if number in self._live_out and rows[place][0] != size:
                return
            if self._open[rows[place][1]].last <= start:
                yield rows[place][1]

    def _occupied(self, opened: Opened, number: int, *, is_new: bool) -> None:
        allocation = opened.allocation
        if is_new:
            if allocation.is_parameter:
                return  # an aliased parameter is not used again
            heapq.heappush(self._held, (opened.last, allocation.number))
            return
        rows = self._free.get(allocation.memory_space, [])
        place = bisect_left(rows, (allocation.bytes, allocation.number))
        if rows[place : place + 1] == [(allocation.bytes, allocation.number)]:
            del rows[place]
            heapq.heappush(self._held, (opened.last, allocation.number))
