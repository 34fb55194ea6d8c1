"""Bytes that a slice of an array touches, as contiguous runs, without visiting single elements.

A slice is a box of index intervals. A tile cuts every interval into at most three (the end of a first tile,
whole tiles, the start of a last one), so the boxes stay few: at most 3 to the power of the number of tile
sizes, whatever the sizes of the array. Only where memory is really broken up does a box become many
intervals, and their number has a limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import numpy.typing as npt

from hlotext.ir.values.shape import Shape
from hlotext.layout.checks import checked_integer
from hlotext.layout.errors import LayoutError
from hlotext.layout.tiling import Placement, TileStep, dimensions_after, placement

Integers = npt.NDArray[np.int64]

MAX_RUNS = 1 << 20
"""Intervals that a question about a slice may come to unless the caller allows more (about 100 MB of work
memory).
"""


@attrs.frozen
class SliceRange:
    """One dimension of a slice, `[start:limit:stride]` in HLO text."""

    start: int
    limit: int
    stride: int = 1

    def __str__(self) -> str:
        return f"[{self.start}:{self.limit}" + (f":{self.stride}]" if self.stride != 1 else "]")


_Interval = tuple[Integers, Integers]
"""Starts and ends (exclusive) of one dimension's intervals, one of each for every box."""
_Boxes = list[_Interval]
"""Disjoint boxes, dimension by dimension, major to minor."""


def byte_ranges(
    shape: Shape, ranges: Sequence[SliceRange | Sequence[int]], *, max_runs: int = MAX_RUNS
) -> Integers:
    """Returns the byte ranges [start, end) of a slice as int64 of shape (n, 2), ascending and never adjacent.

    Ranges do not include padding between elements. Packed elements count with all bytes that they touch. Time and
    memory are proportional to the number of ranges, or of indices along strided dimensions, not to the size of the
    array.

    Args:
        shape: The array shape.
        ranges: A `SliceRange` or (start, limit[, stride]) for each logical dimension.
        max_runs: Maximum number of ranges.

    Raises:
        LayoutError: The shape is invalid, a range is out of bounds, or there are more than `max_runs` ranges.
    """
    place = placement(shape)
    bits = place.element_bits
    runs = _join(_element_runs(place, _checked_ranges(place, ranges), max_runs))
    if bits % 8 == 0:
        return np.column_stack(runs) * (bits // 8)
    # Exact without a product that may pass 2^63: first byte of the first element, last byte of the last one.
    start = runs[0] // 8 * bits + runs[0] % 8 * bits // 8
    end = runs[1] // 8 * bits - (-(runs[1] % 8 * bits) // 8)
    return np.column_stack(_join((start, end)))


def _checked_ranges(place: Placement, ranges: Sequence[SliceRange | Sequence[int]]) -> list[SliceRange]:
    sizes = place.shape.dimensions
    if len(ranges) != len(sizes):
        raise LayoutError("the slice", f"has length {len(ranges)}, not {len(sizes)}", place.shape)
    result = []
    for dimension, (given, size) in enumerate(zip(ranges, sizes, strict=True)):
        part = f"the slice's range of dimension {dimension}"
        numbers = attrs.astuple(given) if isinstance(given, SliceRange) else tuple(given)
        if not 2 <= len(numbers) <= 3:
            raise LayoutError(
                part, f"needs a start, a limit and optionally a stride, not {numbers}", place.shape
            )
        one = SliceRange(*(checked_integer(part, number) for number in numbers))
        if not 0 <= one.start <= one.limit <= size:
            raise LayoutError(part, f"{one} is out of range for dimension size {size}", place.shape)
        if one.stride < 1:
            raise LayoutError(part, f"{one} has a stride of less than 1", place.shape)
        result.append(one)
    return result


def _element_runs(place: Placement, ranges: list[SliceRange], max_runs: int) -> _Interval:
    """Disjoint runs of positions, in no particular order."""
    if any(one.start == one.limit for one in ranges):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    boxes: _Boxes = []
    for dimension in place.major_to_minor:
        intervals = _intervals(ranges[dimension], max_runs)
        count, more = len(boxes[0][0]) if boxes else 1, len(intervals[0])
        _limit(count * more, len(boxes), max_runs)
        if more > 1:
            boxes = _take(boxes, np.repeat(np.arange(count), more))
        boxes.append((np.tile(intervals[0], count), np.tile(intervals[1], count)))
    sizes = place.physical_dimensions
    for step in place.steps:
        boxes = _apply(boxes, step, max_runs)
        sizes = dimensions_after(step, sizes)
    if not boxes:
        return np.zeros(1, np.int64), np.ones(1, np.int64)
    # Memory is row-major in the last dimensions, so its runs are all of them merged into one.
    return _merge(boxes, 0, sizes, max_runs)[0]


def _intervals(one: SliceRange, max_runs: int) -> _Interval:
    """The indices of a range as intervals: one, or each index for itself where there is a stride."""
    if one.stride == 1:
        return np.array([one.start], np.int64), np.array([one.limit], np.int64)
    stride = min(one.stride, one.limit)
    count = -(-(one.limit - one.start) // stride)
    _limit(count, 1, max_runs)
    starts = one.start + stride * np.arange(count, dtype=np.int64)
    return starts, starts + 1


def _limit(boxes: int, dimensions: int, max_runs: int) -> None:
    """Raises LayoutError before an allocation for too many boxes; those of many dimensions count more than
    once.
    """
    if boxes * max(1, dimensions // 16) > max_runs:
        raise LayoutError("the slice", f"covers more than {max_runs} separate runs of memory")


def _take(boxes: _Boxes, rows: Integers) -> _Boxes:
    return [(low[rows], high[rows]) for low, high in boxes]


def _apply(boxes: _Boxes, step: TileStep, max_runs: int) -> _Boxes:
    """The boxes in the dimensions after a tile."""
    zeros = np.zeros(len(boxes[0][0]) if boxes else 1, np.int64)
    boxes = [(zeros, zeros + 1)] * step.added + boxes
    column = step.lead
    for group, tile in zip(step.groups, step.tile, strict=True):
        boxes = _cut(_merge(boxes, column, group, max_runs), column, tile)
        _limit(len(boxes[0][0]), len(boxes), max_runs)
        column += 2
    return boxes[: step.lead] + boxes[step.lead :: 2] + boxes[step.lead + 1 :: 2]


def _merge(boxes: _Boxes, first: int, sizes: tuple[int, ...], max_runs: int) -> _Boxes:
    """The dimensions from `first` on that have these sizes, made one dimension of row-major numbers.

    Where a box does not fill the minor dimension, it falls apart into one box for each number of the major
    one.
    """
    boxes = list(boxes)
    minor_size = sizes[-1]
    for column in range(first + len(sizes) - 2, first - 1, -1):
        (major_low, major_high), (low, high) = boxes[column : column + 2]
        fills = (low == 0) & (high == minor_size)
        pieces = np.where(fills, 1, major_high - major_low)
        _limit(int(np.minimum(pieces, max_runs + 1).sum()), len(boxes), max_runs)
        if pieces.max() > 1:
            rows = np.repeat(np.arange(len(pieces)), pieces)
            piece = np.arange(len(rows)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
            boxes, fills = _take(boxes, rows), fills[rows]
            (major_low, major_high), (low, high) = boxes[column : column + 2]
            major_low = major_low + piece
        high = np.where(fills, major_high * minor_size, major_low * minor_size + high)
        boxes[column : column + 2] = [(major_low * minor_size + low, high)]
        minor_size *= sizes[column - first]
    return boxes


def _cut(boxes: _Boxes, column: int, tile: int) -> _Boxes:
    """One dimension made two, the number of the tile and the place inside: up to three boxes from each."""
    low, high = boxes[column]
    first, last = low // tile, (high - 1) // tile
    start, end = (
        low - first * tile,
        high - last * tile,
    )
    one, several = first == last, first != last
    whole = first + (start > 0), last + (end == tile)
    none, full = np.zeros_like(low), np.full_like(low, tile)
    cases = (
        (one, first, first + 1, start, end),
        (several & (start > 0), first, first + 1, start, full),
        (several & (whole[0] < whole[1]), *whole, none, full),
        (several & (end < tile), last, last + 1, none, end),
    )
    rows = np.concatenate([np.flatnonzero(mask) for mask, *_ in cases])
    parts = [np.concatenate([case[number][case[0]] for case in cases]) for number in range(1, 5)]
    if not np.array_equal(rows, np.arange(len(low))):
        boxes = _take(boxes, rows)
    return [*boxes[:column], (parts[0], parts[1]), (parts[2], parts[3]), *boxes[column + 1 :]]


def _join(runs: _Interval) -> _Interval:
    """The runs in ascending order, those that touch or overlap made one."""
    order = np.argsort(runs[0], kind="stable")
    low, high = runs[0][order], runs[1][order]
    if not len(low):
        return low, high
    opens = np.concatenate([[True], low[1:] > high[:-1]])
    closes = np.concatenate([opens[1:], [True]])
    return low[opens], high[closes]
