"""What is taken of an address space, and when: the smallest gap that is free for some time.

Time is cut into at most `_BLOCKS` blocks. Each keeps what is taken during all of it as the sorted ends of disjoint
stretches (chunks side by side are one stretch), and by itself what begins or ends in it. Of what lies wholly inside a long
time a tree over the blocks knows the union. So a short-lived chunk, as most are, asks one block. Placing the 26,000
temporaries of a training step on CPU takes a tenth of the time that walking over all chunks takes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

import numpy as np

_BLOCKS_SHIFT = 8
_LEAST_SHIFT = 4
_FEW = 24
"""Stretches that are joined one by one rather than sorted."""


class Occupancy:
    """Chunks of bytes over moments of time; they begin and end at aligned offsets."""

    def __init__(self, moments: int) -> None:
        self._shift = max(_LEAST_SHIFT, (max(1, moments) - 1).bit_length() - _BLOCKS_SHIFT)
        self._blocks = (max(1, moments) >> self._shift) + 1
        self._whole = [array("q") for _ in range(self._blocks)]
        self._parts: list[list[tuple[int, int, int, int]]] = [[] for _ in range(self._blocks)]
        self._union: dict[int, array[int]] = {}

    def take(self, first: int, last: int, begin: int, end: int) -> None:
        """Takes the bytes from `begin` to before `end` from the moment `first` to `last`."""
        low, high = first >> self._shift, last >> self._shift
        inner_low, inner_high = self._inside(first, last)
        for block in range(inner_low, inner_high + 1):
            _add(self._whole[block], begin, end)
        row = first, last, begin, end
        if low < inner_low:
            self._parts[low].append(row)
        if high > inner_high and (high != low or low >= inner_low):
            self._parts[high].append(row)
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

    def gap(self, times: list[tuple[int, int]], size: int) -> int:
        """Where the smallest gap begins that has so many bytes at all these times; the lowest of equal ones.

        Behind all that is taken where no gap is large enough.
        """
        flats: dict[int, array[int]] = {}
        rows: list[tuple[int, int, int, int]] = []
        for first, last in times:
            inner_low, inner_high = self._inside(first, last)
            for block in {first >> self._shift, last >> self._shift}:
                if not inner_low <= block <= inner_high:
                    whole = self._whole[block]
                    flats[id(whole)] = whole
                    rows += [row for row in self._parts[block] if row[0] <= last and row[1] >= first]
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
        if not filled:
            merged = array("q")
        elif len(filled) == 1:
            merged = array("q", filled[0])
        else:
            merged = _merged(filled)
        for _, _, begin, end in rows:
            _add(merged, begin, end)
        return _smallest(merged, size)

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


def _merged(flats: list[array[int]]) -> array[int]:
    """The union of several sets of stretches."""
    flats.sort(key=len)
    largest = flats.pop()
    if sum(map(len, flats)) <= 2 * _FEW:
        merged = array("q", largest)
        for flat in flats:
            for place in range(0, len(flat), 2):
                _add(merged, flat[place], flat[place + 1])
        return merged
    flats.append(largest)
    ends = np.concatenate([np.frombuffer(flat, dtype=np.int64) for flat in flats])
    begins, stops = ends[::2], ends[1::2]
    order = np.argsort(begins, kind="stable")
    begins, stops = begins[order], np.maximum.accumulate(stops[order])
    # A stretch goes on where the next begins no later than all before it end.
    new = np.empty(len(begins), dtype=bool)
    new[0] = True
    np.greater(begins[1:], stops[:-1], out=new[1:])
    result = np.empty(2 * int(new.sum()), dtype=np.int64)
    result[::2] = begins[new]
    result[1::2] = stops[np.append(new[1:], True)]
    return array("q", result.tobytes())


def _smallest(flat: array[int], size: int) -> int:
    """The begin of the smallest gap between stretches that has so many bytes; the end of all where there is none."""
    if not flat:
        return 0
    ends = np.frombuffer(flat, dtype=np.int64)
    gaps = ends[2::2] - ends[1:-1:2]
    best, length = -1, -1
    if flat[0] >= size:
        best, length = 0, flat[0]
    if len(gaps):
        fitting = np.where(gaps >= size, gaps, np.iinfo(np.int64).max)
        place = int(fitting.argmin())
        found = int(gaps[place])
        if found >= size and (best < 0 or found < length):
            best = flat[2 * place + 1]
    return best if best >= 0 else flat[-1]
