"""Vectorized positions and byte offsets of indices, and the indices of positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from hlotext.ir.values.shape import Shape
from hlotext.layout.checks import INT64_MAX
from hlotext.layout.errors import LayoutError
from hlotext.layout.tiling import Placement, placement

Integers = npt.NDArray[np.int64]

_CHUNK = 1 << 14
"""Indices handled at a time, so that the numbers in between stay in the processor's cache."""
_TABLE = 1 << 16
"""Most entries of a table of offsets (512 KiB: it has to stay in the cache to be quick)."""


def linear_indices(shape: Shape, indices: npt.ArrayLike) -> Integers:
    """Converts logical indices to positions in memory, in elements.

    Args:
        shape: The array shape.
        indices: Integers of shape (..., rank).

    Returns:
        int64 positions of shape (...).

    Raises:
        LayoutError: The shape is invalid, indices are not integers or have the wrong length, or an index is out of
            bounds.
    """
    place = placement(shape)
    return _evaluate(place, _checked_indices(place, indices), scale=1)


def byte_offsets(shape: Shape, indices: npt.ArrayLike) -> Integers:
    """Returns the byte offset of each element from the start of the array.

    See `linear_indices` for shapes and errors.
    """
    place = placement(shape)
    bits = place.element_bits
    table = _checked_indices(place, indices)
    if bits % 8 == 0:
        return _evaluate(place, table, scale=bits // 8)
    positions = _evaluate(place, table, scale=1)
    # position * bits // 8 without a product that may pass 2^63.
    return positions // 8 * bits + positions % 8 * bits // 8


def bit_offsets(shape: Shape, indices: npt.ArrayLike) -> Integers:
    """Returns the bit offset of each element from the start of the array.

    See `linear_indices` for shapes and errors. Also raises LayoutError if the allocation has more than 2^63 - 1 bits.
    """
    place = placement(shape)
    if place.allocated_elements * place.element_bits > INT64_MAX:
        raise LayoutError("the shape", "has more than 2^63 - 1 bits", place.shape)
    return _evaluate(place, _checked_indices(place, indices), scale=place.element_bits)


def indices_at(shape: Shape, positions: npt.ArrayLike) -> Integers:
    """Converts positions (in elements) to logical indices: int64 of shape (..., rank), all -1 for padding.

    Rank 0 cannot represent padding; use `index_at`. Raises LayoutError for an invalid shape and for positions
    outside the allocation.
    """
    place = placement(shape)
    flat = _integers("the positions", positions)
    outside = (flat < 0) | (flat >= place.allocated_elements)
    if outside.any():
        problem = f"{flat[outside][0]} is out of range for {place.allocated_elements} elements"
        raise LayoutError("the position", problem, place.shape)
    # The tail padding is mapped to position 0 and marked at the end.
    padding = flat >= place.tiled_elements
    rest = np.where(padding, 0, flat)
    numbers = _unravel(rest, place.tiled_dimensions)
    for step in reversed(place.steps):
        count = len(step.groups)
        inside = numbers[step.lead + count :]
        merged = [
            a * t + b
            for a, t, b in zip(numbers[step.lead : step.lead + count], step.tile, inside, strict=True)
        ]
        numbers = numbers[: step.lead]
        for number, size, group in zip(merged, step.merged, step.groups, strict=True):
            padding |= number >= size
            numbers += _unravel(np.where(number < size, number, 0), group)
        numbers = numbers[step.added :]
    result = np.empty((*flat.shape, len(place.major_to_minor)), np.int64)
    for dimension, number in zip(place.major_to_minor, numbers, strict=True):
        result[..., dimension] = np.where(padding, -1, number)
    return result


def _unravel(numbers: Integers, sizes: tuple[int, ...]) -> list[Integers]:
    out = []
    for size in reversed(sizes):
        quotient = numbers // size
        out.append(numbers - quotient * size)
        numbers = quotient
    return out[::-1]


def _integers(part: str, values: npt.ArrayLike) -> Integers:
    """The values as an array of integers of whatever width. Raises LayoutError for other types."""
    array: npt.NDArray[Any] = np.asarray(values)
    if not array.size:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise LayoutError(part, f"must be integers of at most 64 bits, not {array.dtype}")
    return array


def _checked_indices(place: Placement, indices: npt.ArrayLike) -> Integers:
    array = _integers("the indices", indices)
    rank = place.shape.rank
    if not array.ndim or array.shape[-1] != rank:
        raise LayoutError("the indices", f"need the shape (..., {rank}), not {array.shape}", place.shape)
    return array


# ---- evaluation


@attrs.frozen
class _Term:
    """Contribution of one logical dimension to the offset:

    `stride * (number // period) + table[number % period]`.
    """

    dimension: int
    size: int
    period: int
    stride: int
    table: Integers

    def of(self, numbers: Integers) -> Integers:
        if self.size <= self.period:
            return self.table[numbers]
        quotient = numbers // self.period
        result: Integers = self.table[numbers - quotient * self.period]
        result += quotient * self.stride
        return result


def _evaluate(place: Placement, indices: Integers, scale: int) -> Integers:
    """`scale` times the position of every index; the caller sees to it that this fits in 64 bits.

    Without `*` every dimension adds its own part to the offset, and that part is periodic, so it is looked up
    in a table: 10 million indices of `bf16[8192,8192]{1,0:T(8,128)(2,1)}` take 27 ms by tables and 95 ms by
    divisions.
    """
    rank = place.shape.rank
    rows = indices.reshape(-1, rank) if rank else indices
    if not rank:
        return np.zeros(indices.shape[:-1], np.int64)
    result = np.empty(len(rows), np.int64)
    offsets = _tables(place, scale, len(rows)) or _divisions(place, scale)
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        columns = [_column(place, chunk, dimension) for dimension in range(rank)]
        result[start : start + _CHUNK] = offsets(columns)
    return result.reshape(indices.shape[:-1])


def _column(place: Placement, rows: Integers, dimension: int) -> Integers:
    """The numbers of one dimension as contiguous int64.

    Raises LayoutError for the first one that is out of bounds.
    """
    column = rows[:, dimension].astype(np.int64)
    # Seen as unsigned, negative numbers are too large as well, so that one pass finds both.
    if column.view(np.uint64).max() >= place.shape.dimensions[dimension]:
        row = int(np.argmax(column.view(np.uint64) >= place.shape.dimensions[dimension]))
        size = place.shape.dimensions[dimension]
        problem = f"{tuple(rows[row].tolist())} is out of range: dimension {dimension} has size {size}"
        raise LayoutError("the index", problem, place.shape)
    return column


def _divisions(place: Placement, scale: int) -> Callable[[list[Integers]], Integers]:
    """The map as arithmetic, right for every layout."""

    def offsets(columns: list[Integers]) -> Integers:
        result: Integers = place.position(columns)
        return result if scale == 1 else result * scale

    return offsets


def _tables(place: Placement, scale: int, count: int) -> Callable[[list[Integers]], Integers] | None:
    """The map as a sum of looked-up terms; None if a `*` mixes dimensions or the tables would cost more
    than they save.
    """
    periods = _periods(place)
    if periods is None:
        return None
    sizes = place.shape.dimensions
    entries = [
        min(size, period * max(1, _TABLE // period)) for size, period in zip(sizes, periods, strict=True)
    ]
    if max(entries) > _TABLE or sum(entries) > count:
        return None
    terms = [
        _term(place, dimension, entries[dimension], scale)
        for dimension in range(len(sizes))
        if sizes[dimension] > 1
    ]

    def offsets(columns: list[Integers]) -> Integers:
        result = np.zeros(len(columns[0]), np.int64)
        for term in terms:
            result += term.of(columns[term.dimension])
        return result

    return offsets


def _term(place: Placement, dimension: int, period: int, scale: int) -> _Term:
    size = place.shape.dimensions[dimension]
    numbers: list[Any] = [0] * place.shape.rank
    numbers[dimension] = np.arange(period, dtype=np.int64)
    table = np.asarray(place.position(numbers), np.int64) * scale
    numbers[dimension] = period
    # The element at `period` exists only where the dimension is longer; else the stride is never used.
    stride = place.position(numbers) * scale if size > period else 0
    return _Term(dimension, size, period, stride, table)


def _periods(place: Placement) -> list[int] | None:
    """For each logical dimension the elements after which its part of the offset repeats, but for a stride.

    The product of the tile sizes that cut the dimension; None if a tile merges dimensions.
    """
    periods = [1] * place.shape.rank
    owners: list[int | None] = list(place.major_to_minor)
    for step in place.steps:
        if step.merges:
            return None
        owners = [*[None] * step.added, *owners]
        touched = owners[step.lead :]
        for owner, tile in zip(touched, step.tile, strict=True):
            if owner is not None:
                periods[owner] *= tile
        owners = owners[: step.lead] + touched + touched
    return periods
