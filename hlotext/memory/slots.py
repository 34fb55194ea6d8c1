"""Placement of slots in the many orders that are tried, by passes over arrays of what is placed."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import late_module

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = late_module("numpy")


MOST = 8_000
"""Maximum number of slots placed so: each asks for passes over all that are placed."""


class Slots:
    """Chunks of fixed sizes and live ranges that are placed repeatedly, in different orders.

    Each is placed by best fit, at the lowest of equal gaps, as in `FreeSpace.best_fit`. Placed chunks are kept sorted
    by offset in arrays, which is faster than `FreeSpace` for repeated placement.
    """

    def __init__(
        self, times: Sequence[Sequence[tuple[int, int]]], sizes: Sequence[int], taken: Sequence[int]
    ) -> None:
        """The moments of each place, first and last; its bytes; and the bytes that are taken for it."""
        self._times, self._sizes, self._taken = times, sizes, taken
        spans = [span for each in times for span in each]
        lives = sum(stop - start + 1 for start, stop in spans)
        moments = max((stop for _, stop in spans), default=0) + 1
        self._width = max(1, 2 * lives // max(1, len(spans)))
        self._lives_few = lives <= _FEW * moments

    def place(self, order: Sequence[int], limit: int | None) -> tuple[int, dict[int, int]] | int:
        """Places the chunks in this order. Returns the total bytes and the offset of each, or the first chunk that
        exceeds the limit.
        """
        return self._place_few(order, limit) if self._lives_few else self._place_many(order, limit)

    def _place_few(self, order: Sequence[int], limit: int | None) -> tuple[int, dict[int, int]] | int:
        """Looks at what is placed at nearby moments alone, where few live at once, as semaphores do."""
        sizes, taken, times, width = self._sizes, self._taken, self._times, self._width
        near: dict[int, list[tuple[int, int, int, int]]] = {}
        offsets: dict[int, int] = {}
        heap = 0
        for number in order:
            size, spans = sizes[number], times[number]
            stretches = [(start // width, stop // width + 1) for start, stop in spans]
            alive = {
                row[:2]
                for (start, stop), (low, high) in zip(spans, stretches, strict=True)
                for place in range(low, high)
                for row in near.get(place, ())
                if row[2] <= stop and row[3] >= start
            }
            offset, room, below = -1, _HUGE, 0
            for begin, end in sorted(alive):
                if size <= begin - below < room:
                    offset, room = below, begin - below
                below = max(below, end)
            if offset < 0:
                offset = below
            heap = max(heap, offset + size)
            if limit is not None and heap >= limit:
                return number
            offsets[number] = offset
            for (start, stop), (low, high) in zip(spans, stretches, strict=True):
                for place in range(low, high):
                    near.setdefault(place, []).append((offset, offset + taken[number], start, stop))
        return heap, offsets

    def _place_many(self, order: Sequence[int], limit: int | None) -> tuple[int, dict[int, int]] | int:
        sizes, taken, times = self._sizes, self._taken, self._times
        # What is placed, by offset, each time of a place for itself: arrays that insert by moving memory.
        begin, end, first, last = array("q"), array("q"), array("q"), array("q")
        offsets: dict[int, int] = {}
        heap = 0
        for number in order:
            size, spans = sizes[number], times[number]
            starts, stops = _view(first), _view(last)
            is_alive = (starts <= spans[0][1]) & (stops >= spans[0][0])
            for start, stop in spans[1:]:
                is_alive |= (starts <= stop) & (stops >= start)
            alive = is_alive.nonzero()[0]
            del starts, stops  # an array that is looked at cannot grow
            offset = 0
            if len(alive) and (length := begin[alive[0]]) != size:
                ends = np.maximum.accumulate(_view(end).take(alive))
                # What is too small becomes huge.
                spare = (_view(begin).take(alive[1:]) - ends[:-1] - size).view(np.uint64)
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
            at = bisect_left(begin, offset)
            for start, stop in spans:
                begin.insert(at, offset)
                end.insert(at, offset + taken[number])
                first.insert(at, start)
                last.insert(at, stop)
        return heap, offsets


def _view(numbers: array[int]) -> NDArray[np.int64]:
    return np.frombuffer(numbers, np.int64) if numbers else np.zeros(0, np.int64)


_HUGE = 1 << 63
_FEW = 8
"""Places that are taken at one moment, on the average, up to which what is near is looked at one by one."""
