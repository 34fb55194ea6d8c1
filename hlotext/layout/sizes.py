"""Sizes in bytes: the whole map, XLA's own functions (which see less), tuples, dynamic shapes, padding.

| question | function | XLA's name |
|---|---|---|
| bytes of the map, all tiles | `allocated_bytes` | (none) |
| bytes that XLA and the TPU compiler report | `xla_array_size` | `ShapeUtil::ArraySize` |
| bytes of the values alone | `unpadded_bytes` | `ShapeUtil::ByteSizeOf` |
| bytes from the first to the last element | `xla_array_data_size` | `ShapeUtil::ArrayDataSize` |
| bytes of one value on CPU and GPU | `host_shape_size` | the back ends' `ShapeSizeBytes` |

They agree for arrays whose later tiles divide the first one, as all do that the TPU compiler chooses, and
without padding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Literal

import attrs

from hlotext.ir.values.shape import COMBINE_DIMENSION, Shape
from hlotext.layout.checks import array_of, bytes_for, checked_index, element_bits, layout_of, product
from hlotext.layout.errors import LayoutError
from hlotext.layout.tiling import placement


def allocated_elements(shape: Shape) -> int:
    """Returns the number of elements allocated for an array, including tile padding and tail padding `L(n)`.

    Raises LayoutError as `allocated_bytes` does.
    """
    return placement(shape).allocated_elements


def allocated_bytes(shape: Shape) -> int:
    """Returns the bytes allocated for an array, including tile and tail padding.

    Tail padding is added after all tiles; packed elements are then rounded up to whole bytes. Dynamic dimensions count
    with their bounds. For a tuple, this is the sum over its arrays, without index tables
    (`IndexTable`); for tokens and opaque values, it is 0. Raises LayoutError for an invalid shape, an unbounded
    dimension, and sizes above 2^63 - 1.
    """
    total = sum(size for _, _, size in leaf_bytes(shape))
    return bytes_for("the shape", total, 8, shape)


def leaf_bytes(shape: Shape) -> Iterator[tuple[tuple[int, ...], Shape, int]]:
    """Yields the shape index, shape and allocated bytes of every leaf, left to right.

    Raises LayoutError as `allocated_bytes` does.
    """
    for index, leaf in shape.leaves():
        holds_elements = not (leaf.is_token or leaf.is_opaque)
        yield index, leaf, placement(leaf).allocated_bytes if holds_elements else 0


def unpadded_bytes(shape: Shape, pointer_bytes: int = 8) -> int:
    """Returns the bytes counted by XLA's `ShapeUtil::ByteSizeOf`: without tiles and padding, but with `E(n)`.

    A tuple counts as its table of pointers alone, an opaque value as one pointer, and a token as 0; each pointer has
    `pointer_bytes`. A buffer, which XLA rejects here, counts as the array that it holds. Raises LayoutError as
    `allocated_bytes` does.
    """
    if shape.is_tuple:
        return bytes_for("the tuple", len(shape.tuple_shapes), 8 * pointer_bytes, shape)
    if shape.is_token or shape.is_opaque:
        return pointer_bytes if shape.is_opaque else 0
    shape = array_of(shape)
    bits = element_bits(shape)
    return bytes_for("the shape", product("the shape", shape.dimensions, shape), bits, shape)


# ---- padding


def padding_bytes(shape: Shape) -> int:
    """Returns the bytes of padding in `allocated_bytes`; for a tuple, the sum over its arrays.

    Raises LayoutError as `allocated_bytes` does.
    """
    return sum(size - unpadded_bytes(leaf, 0) for _, leaf, size in leaf_bytes(shape))


def padding_ratio(shape: Shape) -> float:
    """Returns the ratio of allocated to unpadded bytes; 1.0 without padding and for empty arrays.

    Raises LayoutError as `allocated_bytes` does.
    """
    allocated = allocated_bytes(shape)
    return allocated / (allocated - padding_bytes(shape)) if allocated else 1.0


@attrs.frozen
class DimensionPadding:
    """Padding of one physical dimension by the first tile alone."""

    dimensions: tuple[int, ...]
    """Logical dimension numbers: one, several if merged by `*`, or none if added by the tile."""
    size: int
    padded_size: int


def padding_by_dimension(shape: Shape) -> tuple[DimensionPadding, ...]:
    """Returns the padding that the first tile adds to each physical dimension, major to minor.

    Dimensions merged by `*` count as one. Later tiles may pad within the first one; that padding belongs to no
    dimension and is only in `allocated_elements`. Raises LayoutError as `allocated_bytes` does for arrays.
    """
    place = placement(shape)
    numbers: list[tuple[int, ...]] = [(dimension,) for dimension in place.major_to_minor]
    sizes = place.physical_dimensions
    if not place.steps:
        return tuple(map(DimensionPadding, numbers, sizes, sizes))
    step = place.steps[0]
    numbers = [()] * step.added + numbers
    sizes = (1,) * step.added + sizes
    rows = [DimensionPadding(n, s, s) for n, s in zip(numbers[: step.lead], sizes, strict=False)]
    position = step.lead
    for group, size, tile, count in zip(step.groups, step.merged, step.tile, step.grid, strict=True):
        merged = tuple(number for part in numbers[position : position + len(group)] for number in part)
        rows.append(DimensionPadding(merged, size, tile * count))
        position += len(group)
    return tuple(rows)


# ---- what XLA computes


def xla_array_size(shape: Shape) -> int:
    """Returns the bytes counted by XLA's `ShapeUtil::ArraySize`, which applies the first tile only.

    The TPU compiler reports this size. Without tiles it is `unpadded_bytes`, ignoring tail padding. With tiles, each
    dimension of the first tile is rounded up (using its largest piece if a split config divides it) and tail padding is
    added; later tiles are ignored. Raises LayoutError as `allocated_bytes` does, for a tuple, and for a first tile with
    `*`, which XLA's function does not support.
    """
    shape = array_of(shape)
    layout = layout_of(shape)
    if not layout.tiles:
        return unpadded_bytes(shape)
    tile = _first_tile(shape)
    pieces = [_largest_piece(shape, dimension) for dimension in layout.minor_to_major]
    pieces += [1] * (len(tile) - len(pieces))
    sizes = [-(-size // t) * t for size, t in zip(pieces, tile, strict=False)] + pieces[len(tile) :]
    elements = product("the shape", sizes, shape)
    alignment = layout.tail_padding_alignment_in_elements
    return bytes_for("the shape", -(-elements // alignment) * alignment, element_bits(shape), shape)


def _first_tile(shape: Shape) -> tuple[int, ...]:
    """Sizes of the first tile, minor to major; empty without tiles. Raises LayoutError if it has a `*`."""
    tiles = layout_of(shape).tiles
    sizes = tiles[0].dimensions[::-1] if tiles else ()
    if COMBINE_DIMENSION in sizes:
        raise LayoutError(
            f"tile 1, {tiles[0]},", "has a *, which XLA's own size and index functions do not handle", shape
        )
    return sizes


def _largest_piece(shape: Shape, dimension: int) -> int:
    """Size of a logical dimension, or its largest piece where a split config cuts it, as
    `LayoutUtil::MaxSplitSize`.
    """
    layout = layout_of(shape)
    size = shape.dimensions[dimension]
    for config in layout.split_configs:
        if layout.minor_to_major[-1 - config.dimension] == dimension:
            points = (0, *config.split_indices, size)
            return max(second - first for first, second in itertools.pairwise(points))
    return size


def xla_linear_index(shape: Shape, index: Sequence[int]) -> int:
    """Computes XLA's `LayoutUtil::LinearIndex`, which applies the first tile only, and no tile for rank 1.

    This is the position of the element in memory if the layout has at most one tile and, at rank 1, if this tile has one
    dimension; with other tiles it may not be (`linear_index` is). Raises LayoutError as `linear_index` does, and for a
    first tile with `*`.
    """
    shape = array_of(shape)
    numbers = checked_index(shape, index)
    minor_to_major = layout_of(shape).minor_to_major
    placement(shape)
    if shape.rank <= 1:
        return sum(numbers)
    tile = _first_tile(shape)
    result, inside, outside = 0, 1, math.prod(tile)
    for place, dimension in enumerate(minor_to_major):
        number, size = numbers[dimension], shape.dimensions[dimension]
        if place < len(tile):
            result += inside * (number % tile[place])
            inside *= tile[place]
            number, size = number // tile[place], -(-size // tile[place])
        result += outside * number
        outside *= size
    return result


def xla_array_data_size(shape: Shape) -> int:
    """Returns the bytes up to the end of the last element, as counted by XLA's `ShapeUtil::ArrayDataSize`.

    This is 0 for an array without elements. Raises LayoutError as `xla_linear_index` does.
    """
    shape = array_of(shape)
    if 0 in shape.dimensions:
        return 0
    last = xla_linear_index(shape, [size - 1 for size in shape.dimensions])
    return bytes_for("the shape", last + 1, element_bits(shape), shape)


# ---- tuples and dynamic shapes, by back end


@attrs.frozen
class IndexTable:
    """Memory layout of a tuple's table of pointers, by backend."""

    pointer_bytes: int
    alignment: int
    """Alignment of the table's size in bytes."""

    def bytes_of(self, shape: Shape) -> int:
        """Returns the bytes of a tuple's table of pointers, excluding those of nested tuples.

        Raises LayoutError for a non-tuple.
        """
        if not shape.is_tuple:
            raise LayoutError("the shape", "is not a tuple, so it has no table of pointers", shape)
        return -(-self.pointer_bytes * len(shape.tuple_shapes) // self.alignment) * self.alignment

    def all_bytes(self, shape: Shape) -> int:
        """Returns the bytes of the tables of pointers of a tuple and of all nested tuples; 0 for an array."""
        return sum(self.bytes_of(part) for _, part in shape.subshapes() if part.is_tuple)


HOST_INDEX_TABLE = IndexTable(pointer_bytes=8, alignment=1)
"""Tuples on CPU and GPU."""
TPU_INDEX_TABLE = IndexTable(pointer_bytes=4, alignment=512)
"""Tuples on TPU, as measured for outputs of 2 to 513 elements."""

SIZE_BYTES = 4
"""One run-time size of a dynamic shape is an int32."""


def host_shape_size(shape: Shape) -> int:
    """Returns the bytes of a value on CPU and GPU: `unpadded_bytes`, plus an int32 per dimension for dynamic arrays.

    Raises LayoutError as `unpadded_bytes` does.
    """
    size = unpadded_bytes(shape, pointer_bytes=HOST_INDEX_TABLE.pointer_bytes)
    if shape.is_array and not shape.is_static:
        size += SIZE_BYTES * shape.rank
    return size


def device_shape_size(shape: Shape, metadata: Literal["suffix", "prefix"]) -> int:
    """Returns the bytes of an array on a device: `xla_array_size` plus the run-time sizes of a dynamic array.

    Args:
        shape: The array shape.
        metadata: Location of the run-time sizes: `suffix`, an int32 per dimension after the data; `prefix`, the `M(n)`
            bytes of the layout before the data.

    Raises:
        LayoutError: As for `xla_array_size`.
    """
    array = array_of(shape)
    size = xla_array_size(array)
    if array.is_static:
        return size
    prefix = data_start(array)
    return size + (SIZE_BYTES * array.rank if metadata == "suffix" else prefix)


def data_start(shape: Shape) -> int:
    """Returns the bytes before the first element: the prefix `M(n)` of a dynamic array, 0 for a static array.

    Raises LayoutError for an invalid shape, and for one that is not an array.
    """
    array = array_of(shape)
    return 0 if array.is_static else max(0, layout_of(array).dynamic_shape_metadata_prefix_bytes)
