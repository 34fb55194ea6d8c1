"""Occupied address space over time; finds the smallest gap that is free for some time.

Time is cut into at most `_BLOCKS` blocks. Each keeps what is taken during all of it as the sorted ends of disjoint
stretches (chunks side by side are one stretch), and by itself what begins or ends in it. Of what lies wholly inside a long
time a tree over the blocks knows the union. So a short-lived chunk, as most are, asks one block. Placing the 26,000
temporaries of a training step on CPU takes a tenth of the time that walking over all chunks takes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import late_module

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = late_module("numpy")


_BLOCKS_SHIFT = 6
_LEAST_SHIFT = 4
_FEW = 12
"""Stretches that are joined one by one rather than sorted."""


class FreeSpace:
    """Occupied bytes over time, for finding free space. Chunks begin and end at aligned offsets."""

    def __init__(self, moments: int) -> None:
        self._shift = max(_LEAST_SHIFT, (max(1, moments) - 1).bit_length() - _BLOCKS_SHIFT)
        self._blocks = (max(1, moments) >> self._shift) + 1
        self._whole = [array("q") for _ in range(self._blocks)]
        self._parts = [array("q") for _ in range(self._blocks)]
        self._union: dict[int, array[int]] = {}

    def reserve(self, first: int, last: int, begin: int, end: int) -> None:
        """Reserves the bytes from `begin` (inclusive) to `end` (exclusive) at the times `first` to `last` (inclusive)."""
        low, high = first >> self._shift, last >> self._shift
        inner_low, inner_high = self._inside(first, last)
        for block in range(inner_low, inner_high + 1):
            _add(self._whole[block], begin, end)
        row = array("q", (first, last, begin, end))
        if low < inner_low:
            self._parts[low].extend(row)
        if high > inner_high and (high != low or low >= inner_low):
            self._parts[high].extend(row)
        for node in self._nodes(low, high, inner_low, inner_high):
            _add(self._union.setdefault(node, array("q")), begin, end)

    def _nodes(self, low: int, high: int, inner_low: int, inner_high: int) -> set[int]:
        """The nodes of the tree that must know a chunk: those whose blocks it covers wholly, and all above these.

        A block that it covers in part is a node by itself.
        """
        blocks = self._blocks
        found: set[int] = set()
        left, right = inner_low + blocks, inner_high + blocks + 1
        while left < right:
            if left & 1:
                found.add(left)
                left += 1
            if right & 1:
                right -= 1
                found.add(right)
            left >>= 1
            right >>= 1
        if low < inner_low:
            found.add(low + blocks)
        if high > inner_high:
            found.add(high + blocks)
        for node in tuple(found):
            node >>= 1
            while node and node not in found:
                found.add(node)
                node >>= 1
        return found

    def _inside(self, first: int, last: int) -> tuple[int, int]:
        """The first and the last block that a time covers wholly."""
        shift = self._shift
        size = 1 << shift
        return (first + size - 1) >> shift, ((last + 1) >> shift) - 1

    def best_fit(self, times: list[tuple[int, int]], size: int) -> int:
        """Returns the offset of the smallest gap of at least `size` bytes at all these times; the lowest of equal gaps.

        Returns the end of the occupied space if no gap is large enough.
        """
        return _smallest(self._taken(times), size)

    def stair(self, steps: Iterable[tuple[list[tuple[int, int]], int, int]]) -> int:
        """Returns the lowest offset for a chunk whose parts are live at different times: (times, offset in the chunk,
        size).
        """
        refused: list[tuple[int, int]] = []
        for times, offset, size in steps:
            ends = self._taken(times).tolist()
            # From here to there it would lie on something.
            refused.extend(
                (begin - offset - size + 1, end - offset)
                for begin, end in zip(ends[::2], ends[1::2], strict=True)
            )
        place = 0
        for first, end in sorted(refused):
            if first > place:
                break
            place = max(place, end)
        return place

    def _taken(self, times: list[tuple[int, int]]) -> NDArray[np.int64]:
        """The ends of the stretches that are taken at some of these times."""
        flats: dict[int, array[int]] = {}
        loose: list[NDArray[np.int64]] = []
        for first, last in times:
            inner_low, inner_high = self._inside(first, last)
            for block in {first >> self._shift, last >> self._shift}:
                if not inner_low <= block <= inner_high:
                    whole, parts = self._whole[block], self._parts[block]
                    flats[id(whole)] = whole
                    if parts:
                        rows = np.frombuffer(parts, dtype=np.int64).reshape(-1, 4)
                        found = rows.compress((rows[:, 0] <= last) & (rows[:, 1] >= first), axis=0)
                        if len(found):
                            loose.append(found[:, 2:])
            left, right = inner_low + self._blocks, inner_high + self._blocks + 1
            while left < right:
                if left & 1:
                    self._under(left, flats)
                    left += 1
                if right & 1:
                    right -= 1
                    self._under(right, flats)
                left >>= 1
                right >>= 1
        filled = [flat for flat in flats.values() if flat]
        return _merged(filled, loose)

    def _under(self, node: int, flats: dict[int, array[int]]) -> None:
        """All that is taken at some time in the blocks under a node of the tree."""
        union = self._union.get(node)
        if union is not None:
            flats[id(union)] = union
        block = node
        while block < self._blocks:
            block <<= 1
        # What covers the node and more stands with each block under it.
        whole = self._whole[block - self._blocks]
        flats[id(whole)] = whole


def _add(flat: array[int], begin: int, end: int) -> None:
    """Joins a stretch with others."""
    low, high = bisect_left(flat, begin), bisect_right(flat, end)
    if low & 1:
        flat[low:high] = array("q") if high & 1 else array("q", (end,))
    else:
        flat[low:high] = array("q", (begin,)) if high & 1 else array("q", (begin, end))


def _merged(flats: list[array[int]], loose: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The union of several sets of stretches, and of stretches in no order, as sorted ends."""
    if len(flats) == 1 and sum(map(len, loose)) <= _FEW:
        merged = array("q", flats[0])
        for rows in loose:
            for begin, end in rows.tolist():
                _add(merged, begin, end)
        return np.frombuffer(merged, dtype=np.int64)
    ordered = [np.frombuffer(flat, dtype=np.int64).reshape(-1, 2) for flat in flats]
    if not ordered and not loose:
        return np.empty(0, dtype=np.int64)
    if len(ordered) == 1 and not loose:
        return ordered[0].reshape(-1)
    rows = np.concatenate([*ordered, *loose])
    order = rows[:, 0].argsort(kind="stable")
    rows = rows.take(order, axis=0)
    begins, stops = rows[:, 0], np.maximum.accumulate(rows[:, 1])
    # A stretch goes on where the next begins no later than all before it end.
    last = np.empty(len(begins), dtype=bool)
    last[-1] = True
    np.greater(begins[1:], stops[:-1], out=last[:-1])
    result = np.empty(2 * int(last.sum()), dtype=np.int64)
    result[1::2] = stops[last]
    result[0] = begins[0]
    result[2::2] = begins[1:][last[:-1]]
    return result


def _smallest(ends: NDArray[np.int64], size: int) -> int:
    """The begin of the smallest gap between stretches that has so many bytes; the end of all where there is none."""
    if not len(ends):
        return 0
    best, length = -1, int(ends[0])
    if length >= size:
        best = 0
    gaps = ends[2::2] - ends[1:-1:2]
    if len(gaps):
        fitting = np.where(gaps >= size, gaps, _NONE)
        place = int(fitting.argmin())
        found = int(fitting[place])
        if found < _NONE and (best < 0 or found < length):
            best = int(ends[2 * place + 1])
    return best if best >= 0 else int(ends[-1])


_NONE = (1 << 63) - 1
