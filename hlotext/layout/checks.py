"""Checks that precede all arithmetic: a shape that passes has one meaning in memory, and its sizes fit
in 64 bits.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence

from hlotext.ir.caches import weighted_cache
from hlotext.ir.values.shape import COMBINE_DIMENSION, UNBOUNDED_SIZE, Layout, Shape, default_layout
from hlotext.layout.errors import LayoutError, shorten

INT64_MAX = 2**63 - 1
"""XLA counts elements, bytes and offsets in signed 64-bit integers; what does not fit is an error there and
here.
"""


def array_of(shape: Shape) -> Shape:
    """Returns the shape itself, or the array inside a buffer.

    Raises LayoutError for a tuple, a token or an opaque value.
    """
    array = shape.tuple_shapes[0] if shape.is_buffer else shape
    if not array.is_array:
        raise LayoutError("the shape", f"is {_kind(shape)}, and only an array has elements in memory", shape)
    return array


def _kind(shape: Shape) -> str:
    return "a tuple" if shape.is_tuple else "a token" if shape.is_token else "an opaque value"


@weighted_cache(1 << 12)
def layout_of(shape: Shape) -> Layout:
    """Validates and returns the layout of an array shape, by default the descending layout.

    Raises LayoutError if XLA's `LayoutUtil::ValidateLayoutForShape` or `ShapeUtil::ValidateShape` would fail, and for
    an unbounded dimension, which has no memory layout.
    """
    _check_dimensions(shape)
    layout = default_layout(shape.rank) if shape.layout is None else shape.layout
    check_permutation("minor_to_major", layout.minor_to_major, shape.rank, shape)
    for number, tile in enumerate(layout.tiles, 1):
        _check_tile(f"tile {number}, {tile},", tile.dimensions, shape)
    if layout.tail_padding_alignment_in_elements < 1:
        raise LayoutError(
            "tail padding", f"L({layout.tail_padding_alignment_in_elements}) is less than 1", shape
        )
    if layout.element_size_in_bits < 0:
        raise LayoutError("element size", f"E({layout.element_size_in_bits}) is negative", shape)
    if layout.physical_shape is not None:
        raise LayoutError("physical shape", "P(...) belongs to a sparse array, which is not supported", shape)
    _check_splits(layout, shape)
    return layout


def _check_dimensions(shape: Shape) -> None:
    for number, size in enumerate(shape.dimensions):
        if size == UNBOUNDED_SIZE:
            raise LayoutError(f"dimension {number}", "has no bound, so offsets after it are undefined", shape)
        if size < 0:
            raise LayoutError(f"dimension {number}", f"has the negative size {size}", shape)


def check_permutation(part: str, numbers: Sequence[int], rank: int, shape: Shape | None = None) -> None:
    """Raises LayoutError unless `numbers` is a permutation of 0 to rank-1. `part` names it in the message."""
    text = shorten("{" + ",".join(map(str, numbers)) + "}")
    if len(numbers) != rank:
        raise LayoutError(part, f"{text} has length {len(numbers)}, not {rank}", shape)
    seen: set[int] = set()
    for number in numbers:
        if not 0 <= number < rank:
            raise LayoutError(part, f"{text} refers to dimension {number}, which does not exist", shape)
        if number in seen:
            raise LayoutError(part, f"{text} lists dimension {number} twice", shape)
        seen.add(number)


def _check_tile(part: str, sizes: tuple[int, ...], shape: Shape) -> None:
    if not sizes:
        raise LayoutError(part, "is empty", shape)
    for size in sizes:
        if size <= 0 and size != COMBINE_DIMENSION:
            raise LayoutError(part, f"has size {size}, but only positive sizes and * are allowed", shape)
    if sizes[-1] == COMBINE_DIMENSION:
        raise LayoutError(part, "ends in *, but there is no more minor dimension to merge into", shape)


def _check_splits(layout: Layout, shape: Shape) -> None:
    for config in layout.split_configs:
        part = f"split config {config}"
        if not 0 <= config.dimension < shape.rank:
            raise LayoutError(
                part, f"refers to physical dimension {config.dimension}, which does not exist", shape
            )
        size = shape.dimensions[layout.minor_to_major[-1 - config.dimension]]
        points = (0, *config.split_indices, size)
        if any(first > second for first, second in itertools.pairwise(points)):
            raise LayoutError(part, f"its indices must ascend from 0 to the dimension's size {size}", shape)


def element_bits(shape: Shape) -> int:
    """Returns the bits per element of an array in memory: the layout's `E(n)`, or else the type's size in whole bytes.

    Raises LayoutError for an element type of unknown width.
    """
    bits = layout_of(shape).element_size_in_bits or 8 * shape.element_type.byte_width
    if not bits:
        raise LayoutError("element type", f"{shape.element_type} is not a known element type", shape)
    return bits


def product(part: str, sizes: Iterable[int], shape: Shape) -> int:
    """Returns the product of sizes; 0 if any is 0, however large the others. Raises LayoutError above 2^63 - 1."""
    sizes = tuple(sizes)
    if 0 in sizes:
        return 0
    total = 1
    for size in sizes:
        total *= size
        if total > INT64_MAX:
            raise LayoutError(part, "has more than 2^63 - 1 elements", shape)
    return total


def bytes_for(part: str, elements: int, bits: int, shape: Shape) -> int:
    """Returns the bytes of `elements` elements of `bits` bits each, rounded up once. Raises LayoutError above 2^63 - 1."""
    total = -(-elements * bits // 8)
    if max(total, elements) > INT64_MAX:
        raise LayoutError(part, f"takes {total} bytes, more than 2^63 - 1", shape)
    return total


def checked_integer(part: str, value: int) -> int:
    """Returns a value as a Python integer. Raises LayoutError if it is not an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise LayoutError(part, f"{shorten(repr(value))} is not an integer") from None


def checked_index(shape: Shape, index: Sequence[int]) -> tuple[int, ...]:
    """Returns a logical index as Python integers.

    Raises LayoutError unless it has one number per dimension, each in bounds.
    """
    text = shorten(str(tuple(index)))
    if len(index) != shape.rank:
        raise LayoutError("the index", f"{text} has length {len(index)}, not {shape.rank}", shape)
    numbers = tuple(checked_integer("the index", number) for number in index)
    for dimension, (number, size) in enumerate(zip(numbers, shape.dimensions, strict=True)):
        if not 0 <= number < size:
            raise LayoutError(
                "the index",
                f"{text} is out of range: dimension {dimension} has size {size}",
                shape,
            )
    return numbers
