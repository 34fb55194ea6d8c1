"""The map from a logical index to a position in memory, through every tile, and its inverse.

The rule is that of XLA's document on tiled layouts. A position counts elements from the start of the array's
memory.

>>> from hlotext.ir.values.shape import Layout, Shape, Tile
>>> from hlotext.ir.values.types import element_type
>>> shape = Shape(element_type("f32"), (3, 5), layout=Layout((1, 0), (Tile((2, 2)),)))
>>> linear_index(shape, (2, 3)), byte_offset(shape, (2, 3)), index_at(shape, 17), index_at(shape, 9)
(17, 68, (2, 3), None)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from hlotext.ir.caches import weighted_cache
from hlotext.ir.values.shape import COMBINE_DIMENSION, Shape, Tile
from hlotext.layout.checks import (
    array_of,
    bytes_for,
    checked_index,
    checked_integer,
    element_bits,
    layout_of,
    product,
)
from hlotext.layout.errors import LayoutError


@attrs.frozen
class TileStep:
    """One tile, applied to the dimensions left by the previous tiles. All sizes are major to minor.

    Splits the last `len(groups)` dimensions: each merged group becomes a grid dimension and a tile dimension, and all
    tile dimensions move to the minor end.
    """

    added: int
    """Leading dimensions of size 1 added because the tile has higher rank."""
    lead: int
    """Number of leading dimensions, including added ones, that the tile does not affect."""
    groups: tuple[tuple[int, ...], ...]
    """Sizes of the dimensions merged by `*` into each tile dimension; groups of one without `*`."""
    merged: tuple[int, ...]
    """Product of each group, before padding."""
    tile: tuple[int, ...]
    """Tile size in each merged dimension."""

    @classmethod
    def of(cls, tile: Tile, dimensions: tuple[int, ...], shape: Shape) -> TileStep:
        """Returns the step that applies a tile to the dimensions left by the previous tiles.

        Args:
            tile: The tile.
            dimensions: Sizes of these dimensions, major to minor.
            shape: The array shape, for error messages.

        Raises:
            LayoutError: A merged size exceeds 2^63 - 1.
        """
        added = max(0, len(tile.dimensions) - len(dimensions))
        dimensions = (1,) * added + dimensions
        lead = len(dimensions) - len(tile.dimensions)
        groups: list[tuple[int, ...]] = []
        merged = []
        sizes = []
        start = lead
        for end, size in enumerate(tile.dimensions, lead + 1):
            if size != COMBINE_DIMENSION:
                group = dimensions[start:end]
                groups.append(group)
                merged.append(product(f"the dimension merged by {tile}", group, shape))
                sizes.append(size)
                start = end
        return cls(added, lead, tuple(groups), tuple(merged), tuple(sizes))

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of tiles along each merged dimension, including a partial last tile."""
        return tuple(-(-size // tile) for size, tile in zip(self.merged, self.tile, strict=True))

    @property
    def pads(self) -> bool:
        """True if any merged dimension is not a multiple of the tile size."""
        return any(size % tile for size, tile in zip(self.merged, self.tile, strict=True))

    @property
    def merges(self) -> bool:
        """True if the tile merges dimensions (`*`)."""
        return any(len(group) > 1 for group in self.groups)

    def apply(self, numbers: list[Any]) -> list[Any]:
        """Maps indices (integers or numpy arrays) of the dimensions before this step to those after it."""
        numbers = [0] * self.added + numbers
        grid, inside = [], []
        position = self.lead
        for group, tile in zip(self.groups, self.tile, strict=True):
            number = ravel(numbers[position : position + len(group)], group)
            position += len(group)
            quotient = number // tile
            grid.append(quotient)
            inside.append(number - quotient * tile)
        return [*numbers[: self.lead], *grid, *inside]

    def undo(self, numbers: list[int]) -> list[int] | None:
        """Maps indices back, as the inverse of `apply`; returns None for padding added by this step."""
        count = len(self.groups)
        grid, inside = numbers[self.lead : self.lead + count], numbers[self.lead + count :]
        out = numbers[: self.lead]
        for quotient, rest, group, size, tile in zip(
            grid, inside, self.groups, self.merged, self.tile, strict=True
        ):
            number = quotient * tile + rest
            if number >= size:
                return None
            out += unravel(number, group)
        return out[self.added :]


def ravel(numbers: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Returns the row-major number of an index (integers or numpy arrays) in dimensions of these sizes; 0 without
    dimensions.
    """
    result: Any = 0
    for number, size in zip(numbers, sizes, strict=True):
        result = result * size + number
    return result


def unravel(number: int, sizes: Sequence[int]) -> list[int]:
    """Returns the index with this row-major number in dimensions of these sizes."""
    out = []
    for size in reversed(sizes):
        number, rest = divmod(number, size)
        out.append(rest)
    return out[::-1]


@attrs.frozen
class Placement:
    """Resolved memory layout of an array: physical dimensions, and the dimensions after all tiles."""

    shape: Shape
    major_to_minor: tuple[int, ...]
    """Logical dimension numbers, slowest varying first."""
    physical_dimensions: tuple[int, ...]
    """Sizes in `major_to_minor` order, to which the first tile is applied."""
    steps: tuple[TileStep, ...]
    tiled_dimensions: tuple[int, ...]
    """Sizes after all tiles; memory is row-major in these."""
    tiled_elements: int
    """Product of `tiled_dimensions`: elements and tile padding."""
    allocated_elements: int
    """`tiled_elements` plus tail padding."""
    element_bits: int
    allocated_bytes: int

    def position(self, index: Sequence[Any]) -> Any:
        """Returns the position in memory, in elements, of a logical index, which is not checked.

        Args:
            index: An integer, or an int64 array for many elements, per logical dimension.
        """
        numbers = [index[dimension] for dimension in self.major_to_minor]
        for step in self.steps:
            numbers = step.apply(numbers)
        return ravel(numbers, self.tiled_dimensions)

    def index(self, position: int) -> tuple[int, ...] | None:
        """Returns the logical index at a position (in elements) inside the allocation, or None for padding."""
        if position >= self.tiled_elements:
            return None
        numbers = unravel(position, self.tiled_dimensions)
        for step in reversed(self.steps):
            undone = step.undo(numbers)
            if undone is None:
                return None
            numbers = undone
        by_dimension = dict(zip(self.major_to_minor, numbers, strict=True))
        return tuple(by_dimension[dimension] for dimension in range(len(self.major_to_minor)))


@weighted_cache(1 << 12)
def placement(shape: Shape) -> Placement:
    """Resolves the memory layout of an array (or of the array in a buffer).

    Dynamic dimensions count with their bounds. Raises LayoutError for a shape that is not an array, an invalid layout,
    and sizes above 2^63 - 1.
    """
    shape = array_of(shape)
    layout = layout_of(shape)
    bits = element_bits(shape)
    major_to_minor = layout.minor_to_major[::-1]
    dimensions = physical = tuple(shape.dimensions[number] for number in major_to_minor)
    product("the shape", dimensions, shape)
    steps = []
    for number, tile in enumerate(layout.tiles, 1):
        step = TileStep.of(tile, dimensions, shape)
        dimensions = dimensions_after(step, dimensions)
        product(f"tile {number}", dimensions, shape)
        steps.append(step)
    tiled = product("the shape", dimensions, shape)
    alignment = layout.tail_padding_alignment_in_elements
    allocated = -(-tiled // alignment) * alignment
    size = bytes_for("the shape", allocated, bits, shape)
    return Placement(shape, major_to_minor, physical, tuple(steps), dimensions, tiled, allocated, bits, size)


def dimensions_after(step: TileStep, dimensions: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the dimension sizes after applying a tile step to these dimensions."""
    return ((1,) * step.added + dimensions)[: step.lead] + step.grid + step.tile


def linear_index(shape: Shape, index: Sequence[int]) -> int:
    """Returns the position in memory, in elements, of the element at a logical index, with all tiles applied.

    XLA's `LayoutUtil::LinearIndex` uses the first tile only: see `xla_linear_index`. Raises LayoutError for an invalid
    shape, and for an index of the wrong length or out of bounds.
    """
    place = placement(shape)
    position: int = place.position(checked_index(place.shape, index))
    return position


def bit_offset(shape: Shape, index: Sequence[int]) -> int:
    """Returns the bit offset of an element from the start of the array. The first element in a byte has the low bits.

    Raises LayoutError as `linear_index` does.
    """
    return linear_index(shape, index) * placement(shape).element_bits


def byte_offset(shape: Shape, index: Sequence[int]) -> int:
    """Returns the byte offset of an element from the start of the array. Raises LayoutError as `linear_index` does.

    A dynamic array with a metadata prefix `M(n)` starts n bytes into its buffer; the prefix is not counted here.
    """
    return bit_offset(shape, index) // 8


def index_at(shape: Shape, position: int) -> tuple[int, ...] | None:
    """Returns the logical index of the element at a position (in elements), or None for padding.

    Raises LayoutError for an invalid shape and a position outside the allocation.
    """
    place = placement(shape)
    position = checked_integer("the position", position)
    if not 0 <= position < place.allocated_elements:
        raise LayoutError(
            "the position", f"{position} is out of range for {place.allocated_elements} elements", place.shape
        )
    return place.index(position)


def indices_at_byte(shape: Shape, offset: int) -> tuple[tuple[int, ...] | None, ...]:
    """Returns the logical index of each element that occupies a byte at this offset, with None for each padding element.

    Elements packed by `E(n)` share a byte, so there may be several; the first has the lowest bits. Raises LayoutError
    for an invalid shape and an offset outside the allocation.
    """
    place = placement(shape)
    offset = checked_integer("the byte offset", offset)
    if not 0 <= offset < place.allocated_bytes:
        raise LayoutError(
            "the byte offset", f"{offset} is out of range for {place.allocated_bytes} bytes", place.shape
        )
    first, last = 8 * offset // place.element_bits, (8 * offset + 7) // place.element_bits
    return tuple(place.index(position) for position in range(first, min(last + 1, place.allocated_elements)))
