"""Slots that are live simultaneously, computed once for the many placement orders that are tried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MOST = 8_000
"""Maximum number of slots with a pairwise overlap table: 64 MB."""


class Overlaps:
    """Slots of fixed sizes and live ranges that are placed repeatedly, in different orders.

    Each goes into the smallest gap that fits, the lowest of equal ones, as `Occupancy.gap` has it. That structure is for one
    order of any number of places; this one knows the pairs, and keeps what is placed sorted by offset, so that a place asks
    for a few passes over short arrays.
    """

    def __init__(
        self, times: Sequence[Sequence[tuple[int, int]]], sizes: Sequence[int], taken: Sequence[int]
    ) -> None:
        """The moments of each place, first and last; its bytes; and the bytes that are taken for it."""
        self._sizes, self._taken = sizes, taken
        flat = np.array([time for each in times for time in each], dtype=np.int64).reshape(-1, 2)
        firsts, lasts = flat[:, 0].copy(), flat[:, 1].copy()
        begins = np.cumsum([0, *map(len, times[:-1])]) if times else np.empty(0, dtype=np.int64)
        first, last = firsts[begins], lasts[begins]
        # Two comparisons by rows: the transpose of one of them would be read by columns, which takes three times as long.
        self._rows = first <= last[:, None]
        self._rows &= first[:, None] <= last
        for number, each in enumerate(times):
            if len(each) > 1:
                alive = np.zeros(len(flat), dtype=bool)
                for start, stop in each:
                    alive |= (firsts <= stop) & (lasts >= start)
                self._rows[number] = self._rows[:, number] = np.logical_or.reduceat(alive, begins)

    def place(self, order: Sequence[int], limit: int | None) -> tuple[int, dict[int, int]] | int:
        """The bytes needed and the offset of each in this order; or the first one that reaches the limit."""
        sizes, taken, rows = self._sizes, self._taken, self._rows
        placed = np.zeros((3, len(order) + 1), dtype=np.int64)  # by offset: begin, end, number
        offsets: dict[int, int] = {}
        heap = 0
        for count, number in enumerate(order):
            size = sizes[number]
            is_alive = rows[number].take(placed[2, :count])
            begins = placed[0, :count].compress(is_alive)
            offset = 0
            if len(begins) and (length := int(begins[0])) != size:
                stops = np.maximum.accumulate(placed[1, :count].compress(is_alive))
                # What is too small becomes huge.
                spare = (begins[1:] - stops[:-1] - size).view(np.uint64)
                best = int(spare.argmin()) if len(spare) else 0
                room = int(spare[best]) if len(spare) else _HUGE
                if room < _HUGE and (length < size or room < length - size):
                    offset = int(stops[best])
                elif length < size:
                    offset = int(stops[-1])
            heap = max(heap, offset + size)
            if limit is not None and heap >= limit:
                return number
            offsets[number] = offset
            at = int(placed[0, :count].searchsorted(offset))
            placed[:, at + 1 : count + 1] = placed[:, at:count]
            placed[:, at] = offset, offset + taken[number], number
        return heap, offsets


_HUGE = 1 << 63
