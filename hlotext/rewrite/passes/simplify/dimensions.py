"""Correspondence of dimensions between shapes with the same elements, after XLA's `ShapeUtil` and `util`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

Sizes = Sequence[int]


def common_factors(a: Sizes, b: Sizes) -> list[tuple[int, int]]:
    """Returns the positions where both lists of sizes can be split into pieces with equal products (`CommonFactors`).

    >>> common_factors((2, 3, 4), (6, 4))
    [(0, 0), (2, 1), (3, 2)]
    """
    if tuple(a) == tuple(b):
        return [(n, n) for n in range(len(a) + 1)]
    bounds: list[tuple[int, int]] = []
    i = j = 0
    before = (-1, -1)
    while i < len(a) and j < len(b) and a[i] == b[j]:
        before = (i, j)
        bounds.append(before)
        i, j = i + 1, j + 1
    if math.prod(a[i:]) != math.prod(b[j:]):
        return [(0, 0), (len(a), len(b))]
    if not math.prod(a[i:]):
        return [*bounds, (i, j), (len(a), len(b))]
    size_a = size_b = 1
    while True:
        if size_a == size_b and (i > before[0] or j > before[1]):
            before = (i, j)
            bounds.append(before)
            continue
        more_a, more_b = i < len(a), j < len(b)
        if not (more_a or more_b):
            return bounds
        next_a = size_a < size_b or (more_a and (not more_b or (size_a == size_b and a[i] <= b[j])))
        next_b = size_b < size_a or (more_b and (not more_a or (size_b == size_a and b[j] <= a[i])))
        if next_a:
            size_a, i = size_a * a[i], i + 1
        if next_b:
            size_b, j = size_b * b[j], j + 1


def unmodified(a: Sizes, b: Sizes) -> list[tuple[int, int]]:
    """Returns the dimensions that a reshape leaves unmodified, in both numberings (`DimensionsUnmodifiedByReshape`).

    >>> unmodified((2, 3, 4), (6, 4))
    [(2, 1)]
    """
    bounds = common_factors(a, b)
    return [
        start
        for start, end in itertools.pairwise(bounds)
        if end[0] - start[0] == 1 and end[1] - start[1] == 1
    ]


def left_unmodified(a: Sizes, b: Sizes, dimensions: Sizes) -> tuple[int, ...] | None:
    """Returns the new numbers of these dimensions, or None if a reshape modifies any
    (`ReshapeLeavesDimensionsUnmodified`).
    """
    if list(dimensions) != sorted(dimensions):
        return None
    places = dict(unmodified(a, b))
    if any(d not in places for d in dimensions):
        return None
    return tuple(places[d] for d in dimensions)


def is_identity(permutation: Sizes) -> bool:
    """Returns True for the identity permutation (`IsIdentityPermutation`)."""
    return all(place == number for place, number in enumerate(permutation))


def only_ones_moved(a: Sizes, b: Sizes) -> tuple[list[int], list[int]] | None:
    """Returns the dimensions of size 1 that a reshape deletes (numbered as in `a`) and inserts (as in `b`), or None if
    it does more (`InsertedOrDeleted1SizedDimensions`).

    >>> only_ones_moved((4, 1, 3), (4, 3, 1))
    ([1], [2])
    """
    pairs = [(-1, -1), *unmodified(a, b), (len(a), len(b))]
    deleted: list[int] = []
    inserted: list[int] = []
    for (a0, b0), (a1, b1) in itertools.pairwise(pairs):
        gone, new = list(range(a0 + 1, a1)), list(range(b0 + 1, b1))
        if any(a[d] != 1 for d in gone) or any(b[d] != 1 for d in new):
            return None
        deleted += gone
        inserted += new
    return deleted, inserted
