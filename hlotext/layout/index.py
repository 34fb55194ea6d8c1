"""Multidimensional and linear indices of an array, tiles ignored, and the orders of visiting indices.

XLA's `IndexUtil`. For positions in a tiled array use `linear_index`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlotext.ir.values.shape import Shape
from hlotext.layout.checks import array_of, checked_index, checked_integer, layout_of, product
from hlotext.layout.errors import LayoutError
from hlotext.layout.tiling import ravel, unravel


def _physical(shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Logical dimension numbers and their sizes, major to minor."""
    order = layout_of(array_of(shape)).minor_to_major[::-1]
    return order, tuple(shape.dimensions[number] for number in order)


def multidimensional_index_to_linear_index(shape: Shape, index: Sequence[int]) -> int:
    """Returns the linear index of an element in layout order, ignoring tiles and padding.

    Raises LayoutError as `linear_index` does.
    """
    order, sizes = _physical(shape)
    numbers = checked_index(shape, index)
    result: int = ravel([numbers[number] for number in order], sizes)
    return result


def linear_index_to_multidimensional_index(shape: Shape, linear: int) -> tuple[int, ...]:
    """Returns the logical index of a linear index in layout order, which ignores tiles and padding.

    This is the inverse of `multidimensional_index_to_linear_index`. Raises LayoutError for an invalid shape, and if the
    linear index is out of bounds.
    """
    order, sizes = _physical(shape)
    linear = checked_integer("the linear index", linear)
    if not 0 <= linear < (count := product("the shape", sizes, shape)):
        raise LayoutError("the linear index", f"{linear} is out of range for {count} elements", shape)
    numbers = dict(zip(order, unravel(linear, sizes), strict=True))
    return tuple(numbers[dimension] for dimension in range(shape.rank))


def dimension_strides(shape: Shape) -> tuple[int, ...]:
    """Returns the strides of all logical dimensions in elements, ignoring tiles.

    Raises LayoutError for an invalid shape.
    """
    strides = [0] * shape.rank
    stride = 1
    for number in layout_of(array_of(shape)).minor_to_major:
        strides[number] = stride
        stride *= shape.dimensions[number]
    return tuple(strides)


def dimension_stride(shape: Shape, dimension: int) -> int:
    """Returns the stride of a logical dimension in elements, ignoring tiles (XLA's `GetDimensionStride`).

    Raises LayoutError for an invalid shape, and if there is no such dimension.
    """
    if not 0 <= dimension < shape.rank:
        raise LayoutError(f"dimension {dimension}", f"does not exist in rank {shape.rank}", shape)
    return dimension_strides(shape)[dimension]


def index_in_bounds(shape: Shape, index: Sequence[int]) -> bool:
    """Returns True if an index has the right length and is in bounds.

    Negative numbers are out of bounds (XLA accepts them).
    """
    try:
        checked_index(array_of(shape), index)
    except LayoutError:
        return False
    return True


def compare_indices(a: Sequence[int], b: Sequence[int]) -> int:
    """Returns -1, 0 or 1 if `a` is lexicographically before, equal to or after `b`.

    Raises LayoutError if the lengths differ.
    """
    if len(a) != len(b):
        raise LayoutError("the index", f"{tuple(a)} and {tuple(b)} have different lengths")
    return (tuple(a) > tuple(b)) - (tuple(a) < tuple(b))


def bump_index(shape: Shape, index: Sequence[int]) -> tuple[int, ...] | None:
    """Returns the next index in logical row-major order (last dimension fastest), or None after the last index.

    Corresponds to XLA's `BumpIndices`, which ignores the layout. Raises LayoutError as `linear_index` does.
    """
    numbers = list(checked_index(array_of(shape), index))
    for dimension in range(shape.rank - 1, -1, -1):
        numbers[dimension] += 1
        if numbers[dimension] < shape.dimensions[dimension]:
            return tuple(numbers)
        numbers[dimension] = 0
    return None


def row_major_indices(shape: Shape) -> Iterator[tuple[int, ...]]:
    """Yields all indices in logical row-major order, regardless of layout. A scalar has a single, empty index.

    Raises LayoutError for an invalid shape.
    """
    layout_of(array_of(shape))
    return _indices(tuple(range(shape.rank)), shape.dimensions)


def layout_order_indices(shape: Shape) -> Iterator[tuple[int, ...]]:
    """Yields all indices in layout order, ignoring tiles, as XLA's `ForEachIndex` does.

    Raises LayoutError for an invalid shape.
    """
    order, sizes = _physical(shape)
    return _indices(order, sizes)


def _indices(order: tuple[int, ...], sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Indices by logical dimension, the last dimension of `order` fastest.

    Holds one index at a time, however many there are.
    """
    if 0 in sizes:
        return
    numbers = [0] * len(order)
    while True:
        yield tuple(numbers)
        for number, size in zip(reversed(order), reversed(sizes), strict=True):
            numbers[number] += 1
            if numbers[number] < size:
                break
            numbers[number] = 0
        else:
            return
