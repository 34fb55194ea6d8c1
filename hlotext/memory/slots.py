"""Placement of slots in the many orders that are tried, by passes over arrays of what is placed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MOST = 8_000
"""Maximum number of slots placed so: each asks for passes over all that are placed."""


class Slots:
    """Slots of fixed sizes and live ranges that are placed repeatedly, in different orders.

    Each goes into the smallest gap that fits, the lowest of equal ones, as `Occupancy.gap` has it. That structure is for any
    number of places; this one keeps what is placed sorted by offset, so that a place asks for a few passes over short arrays.
    """

    def __init__(
        self, times: Sequence[Sequence[tuple[int, int]]], sizes: Sequence[int], taken: Sequence[int]
    ) -> None:
        """The moments of each place, first and last; its bytes; and the bytes that are taken for it."""
        self._times, self._sizes, self._taken = times, sizes, taken
        self._spans = sum(map(len, times))

    def place(self, order: Sequence[int], limit: int | None) -> tuple[int, dict[int, int]] | int:
        """The bytes needed and the offset of each in this order; or the first one that reaches the limit."""
        sizes, taken, times = self._sizes, self._taken, self._times
        placed = np.zeros((4, self._spans + 1), dtype=np.int64)  # by offset, each time of a place for itself
        begin, end, first, last = placed
        offsets: dict[int, int] = {}
        heap = count = 0
        for number in order:
            size, spans = sizes[number], times[number]
            starts, stops = first[:count], last[:count]
            is_alive = (starts <= spans[0][1]) & (stops >= spans[0][0])
            for start, stop in spans[1:]:
                is_alive |= (starts <= stop) & (stops >= start)
            alive = is_alive.nonzero()[0]
            offset = 0
            if len(alive) and (length := int(begin[alive[0]])) != size:
                ends = np.maximum.accumulate(end.take(alive))
                # What is too small becomes huge.
                spare = (begin.take(alive[1:]) - ends[:-1] - size).view(np.uint64)
                best = int(spare.argmin()) if len(spare) else 0
                room = int(spare[best]) if len(spare) else _HUGE
                if room < _HUGE and (length < size or room < length - size):
                    offset = int(ends[best])
                elif length < size:
                    offset = int(ends[-1])
            heap = max(heap, offset + size)
            if limit is not None and heap >= limit:
                return number
            offsets[number] = offset
            at = int(begin[:count].searchsorted(offset))
            for start, stop in spans:
                placed[:, at + 1 : count + 1] = placed[:, at:count]
                placed[:, at] = offset, offset + taken[number], start, stop
                count += 1
        return heap, offsets


_HUGE = 1 << 63
