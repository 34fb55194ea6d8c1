"""A shape and its layout in plain words: what each part means, the sizes, the padding, and a better order if
there is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from hlotext.ir.values.shape import Layout, Shape
from hlotext.ir.values.types import TypeKind
from hlotext.layout.checks import array_of, layout_of
from hlotext.layout.errors import LayoutError
from hlotext.layout.formats import Format, better_order, format_of, memory_space_name
from hlotext.layout.shapes import dimension_letters
from hlotext.layout.sizes import (
    HOST_INDEX_TABLE,
    TPU_INDEX_TABLE,
    DimensionPadding,
    allocated_bytes,
    leaf_bytes,
    padding_by_dimension,
    padding_bytes,
    padding_ratio,
    unpadded_bytes,
    xla_array_size,
)
from hlotext.layout.tiling import Placement, TileStep, dimensions_after, placement

# ---- small words


def bytes_text(count: int) -> str:
    """Formats a number of bytes exactly and in the largest unit of at least 1: `335,544,320 bytes (320 MiB)`."""
    text = f"{count:,} byte{'s' if count != 1 else ''}"
    for power, unit in ((6, "EiB"), (5, "PiB"), (4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{text} ({count / 1024**power:.4g} {unit})"
    return text


def _times(sizes: Iterable[int]) -> str:
    return " x ".join(map(str, sizes)) or "1"


def _numbers(word: str, numbers: Sequence[int]) -> str:
    return f"{word}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


@attrs.frozen
class LayoutPart:
    """A part of a shape's text and its meaning."""

    text: str
    meaning: str


# ---- the parts of a shape


def _parts(place: Placement) -> list[LayoutPart]:
    shape, layout = place.shape, layout_of(place.shape)
    parts = [
        LayoutPart(str(shape.element_type), _type_meaning(place)),
        LayoutPart(_dimensions_text(shape), _dimensions_meaning(shape)),
    ]
    if shape.rank:
        order = ",".join(map(str, layout.minor_to_major))
        parts.append(LayoutPart(f"{{{order}}}" if shape.layout else "(no layout)", _order_meaning(place)))
    parts += _tile_parts(place)
    parts += [LayoutPart(text, meaning) for text, meaning in _other_parts(place, layout)]
    return parts


def _type_meaning(place: Placement) -> str:
    type_, bits = place.shape.element_type, place.element_bits
    words = type_.kind.value if type_.kind is TypeKind.PREDICATE else f"{type_.bits}-bit {type_.kind.value}"
    taken = (
        f"{bits // 8} byte{'s' if bits > 8 else ''}"
        if bits % 8 == 0
        else f"{bits} bit{'s' if bits > 1 else ''}"
    )
    return f"{words}; one element takes {taken} in memory"


def _dimensions_text(shape: Shape) -> str:
    return str(shape.without_layout()).removeprefix(str(shape.element_type))


def _dimensions_meaning(shape: Shape) -> str:
    if not shape.rank:
        return "a scalar: one element, index ()"
    letters = dimension_letters(shape.rank)
    named = f" ({', '.join(letters)})" if letters else ""
    count = f"{shape.rank} dimension{'s' if shape.rank > 1 else ''}{named}, {shape.element_count:,} elements"
    dynamic = [number for number, flag in enumerate(shape.dynamic_dimensions) if flag]
    if not dynamic:
        return count
    return f"{count} at most; {_numbers('dimension', dynamic)} dynamic; memory is allocated for the bounds"


def _order_meaning(place: Placement) -> str:
    order = place.major_to_minor
    assumed = "" if place.shape.layout else "default order: "
    if len(order) == 1:
        return f"{assumed}elements are contiguous"
    physical = (
        f"physically, slowest first: {_times(place.physical_dimensions)} ({_numbers('dimension', order)})"
    )
    return (
        f"{assumed}dimension {order[-1]} varies fastest in memory, dimension {order[0]} slowest; {physical}"
    )


def _tile_parts(place: Placement) -> list[LayoutPart]:
    parts = []
    before = place.physical_dimensions
    inside = 0
    for number, (tile, step) in enumerate(zip(layout_of(place.shape).tiles, place.steps, strict=True)):
        rows = padding_by_dimension(place.shape)[step.lead :] if number == 0 else ()
        dimensions = (1,) * step.added + before
        meaning = _cut_meaning(
            step, dimensions[step.lead :], rows, first=number == 0, within=step.lead >= inside
        )
        parts.append(LayoutPart(("T" if number == 0 else "") + str(tile), meaning))
        before = dimensions_after(step, before)
        inside = step.lead + len(step.tile)
    return parts


def _cut_meaning(
    step: TileStep, sizes: tuple[int, ...], rows: Sequence[DimensionPadding], *, first: bool, within: bool
) -> str:
    """Explains one tile's effect on the dimensions before it; `within` if it stays inside the previous tile."""
    what = _times(sizes)
    if first:
        logical = [number for row in rows for number in row.dimensions]
        which = f" ({_numbers('dimension', logical)})" if logical else ""
        added = f", {step.added} of them added for the tile" if step.added else ""
        fastest = "the fastest dimension" if len(sizes) == 1 else f"the {len(sizes)} fastest dimensions"
        subject = f"{fastest}, {what}{which}{added},"
    elif within:
        subject = f"within that, {what} elements"
    else:
        subject = f"the last {len(sizes)} dimensions so far, {what}, including the grid of tiles,"
    verb = "is" if len(sizes) == 1 and first else "are"
    merged = f"merged into {_times(step.merged)} and " if step.merges else ""
    unit, again = ("tile", "") if first else ("piece", " again")
    several = "" if step.grid == (1,) else "s"
    text = f"{subject} {verb} {merged}split{again} into {unit}s of {_times(step.tile)}"
    text += f": {_times(step.grid)} {unit}{several}"
    if step.pads:
        text += f", padded to {_times(g * t for g, t in zip(step.grid, step.tile, strict=True))}"
    if not first and len(step.tile) == 2 and step.tile[1] == 1 and step.tile[0] > 1:
        text += f", interleaving {step.tile[0]} neighboring rows"
    return text


def _other_parts(place: Placement, layout: Layout) -> Iterable[tuple[str, str]]:
    """(text, meaning) of everything behind the tiles, in the order of the text."""
    alignment = layout.tail_padding_alignment_in_elements
    if alignment != 1:
        grown = f"from {place.tiled_elements:,} to {place.allocated_elements:,}"
        yield f"L({alignment})", f"the number of elements is rounded up to a multiple of {alignment}: {grown}"
    for mark, type_ in (("#", layout.index_type), ("*", layout.pointer_type)):
        if type_ is not None:
            yield f"{mark}({type_})", "only for sparse arrays; no effect here"
    if bits := layout.element_size_in_bits:
        shared = f", {8 // bits} to a byte, the first in the low bits" if bits < 8 and 8 % bits == 0 else ""
        yield f"E({bits})", f"each element takes {bits} bit{'s' if bits > 1 else ''}{shared}"
    if layout.memory_space:
        yield f"S({layout.memory_space})", f"in {memory_space_name(layout.memory_space)}"
    for config in layout.split_configs:
        dimension = place.major_to_minor[config.dimension]
        cuts = ", ".join(map(str, config.split_indices))
        yield (
            f"SC{config}",
            f"dimension {dimension} is split at {cuts or 'no index'}; the pieces are in different memories",
        )
    if (prefix := layout.dynamic_shape_metadata_prefix_bytes) > 0:
        effect = (
            "precede the data"
            if not place.shape.is_static
            else "would precede the data if a size were dynamic"
        )
        yield f"M({prefix})", f"{prefix} bytes with run-time sizes {effect}"


# ---- the whole


@attrs.frozen
class ArrayExplanation:
    """Explanation of an array shape's memory layout. `str()` is the readable text."""

    shape: Shape
    parts: tuple[LayoutPart, ...]
    physical_dimensions: tuple[int, ...]
    tiled_dimensions: tuple[int, ...]
    """Sizes after all tiles; memory is row-major in these."""
    element_bits: int
    allocated_elements: int
    allocated_bytes: int
    unpadded_bytes: int
    xla_array_size: int | None
    """Result of `xla_array_size` in bytes, or None for a first tile with `*`, which XLA does not support."""
    padding_by_dimension: tuple[DimensionPadding, ...]
    inner_padding_elements: int
    """Elements of padding that later tiles add inside the first tile."""
    tail_padding_elements: int
    """Elements of padding after all tiles, from `L(n)`."""
    padding_ratio: float
    format: Format | None
    better: Shape | None
    """The array with a dimension order that needs less padding, or None if there is none."""

    @property
    def padding_bytes(self) -> int:
        """Number of bytes of padding."""
        return self.allocated_bytes - self.unpadded_bytes

    def rows(self) -> list[tuple[str, str]]:
        """Returns the lines of `str(self)` after the first, as (label, text); the label is empty on continuation lines."""
        rows = [(part.text, part.meaning) for part in self.parts]
        if self.format is not None:
            rows.append(("format", f"{self.format.name}: {self.format.meaning}"))
        else:
            rows.append(("format", "not in the catalog"))
        if layout_of(self.shape).memory_space == 0:
            rows.append(("memory space", memory_space_name(0)))
        rows.append(("in memory", f"{_times(self.tiled_dimensions)}, row-major"))
        rows.append(("allocated", bytes_text(self.allocated_bytes)))
        rows.append(("values alone", bytes_text(self.unpadded_bytes)))
        if self.xla_array_size not in (None, self.allocated_bytes):
            rows.append(
                ("XLA reports", f"{bytes_text(self.xla_array_size or 0)} ({self._why_xla_differs()})")
            )
        return rows + self._padding_rows()

    def _why_xla_differs(self) -> str:
        layout = layout_of(self.shape)
        if layout.split_configs:
            return "the largest piece of the split, first tile only"
        return "it counts the first tile only" if layout.tiles else "it ignores L without tiles"

    def _padding_rows(self) -> list[tuple[str, str]]:
        if not self.padding_bytes:
            return [("padding", "none")]
        share = f"{self.padding_bytes / self.allocated_bytes:.1%} of the allocation"
        rows = [("padding", f"{bytes_text(self.padding_bytes)}, {share} ({self.padding_ratio:.4g}x)")]
        for row in self.padding_by_dimension:
            if row.padded_size != row.size:
                which = _numbers("dimension", row.dimensions) if row.dimensions else "added dimension"
                rows.append(("", f"{which}: {row.size} padded to {row.padded_size}"))
        if self.inner_padding_elements:
            rows.append(("", f"in the first tile: {self.inner_padding_elements:,} elements of padding"))
        if self.tail_padding_elements:
            rows.append(("", f"at the end: {self.tail_padding_elements:,} elements of padding"))
        if self.better is not None:
            size = allocated_bytes(self.better)
            rows.append(("better order", f"{self.better} takes {bytes_text(size)}"))
        return rows

    def __str__(self) -> str:
        return _table(str(self.shape), self.rows())

    def to_json(self) -> dict[str, Any]:
        """Returns the explanation as JSON-serializable values."""
        layout = layout_of(self.shape)
        return {
            "shape": str(self.shape),
            "element_type": str(self.shape.element_type),
            "element_bits": self.element_bits,
            "dimensions": list(self.shape.dimensions),
            "minor_to_major": list(layout.minor_to_major),
            "physical_dimensions": list(self.physical_dimensions),
            "tiled_dimensions": list(self.tiled_dimensions),
            "elements": self.shape.element_count,
            "allocated_elements": self.allocated_elements,
            "allocated_bytes": self.allocated_bytes,
            "unpadded_bytes": self.unpadded_bytes,
            "xla_array_size": self.xla_array_size,
            "padding_bytes": self.padding_bytes,
            "padding_ratio": self.padding_ratio,
            "padding_by_dimension": [attrs.asdict(row) for row in self.padding_by_dimension],
            "inner_padding_elements": self.inner_padding_elements,
            "tail_padding_elements": self.tail_padding_elements,
            "format": self.format.name if self.format else None,
            "memory_space": layout.memory_space,
            "better": None
            if self.better is None
            else {"shape": str(self.better), "allocated_bytes": allocated_bytes(self.better)},
            "parts": [attrs.asdict(part) for part in self.parts],
        }


@attrs.frozen
class TupleExplanation:
    """Explanation of a tuple's memory: the leaves with their sizes in bytes, and the tables of pointers.

    `str()` is the readable text.
    """

    shape: Shape
    leaves: tuple[tuple[tuple[int, ...], Shape, int], ...]
    """Shape index, shape and allocated bytes of each leaf."""
    allocated_bytes: int
    padding_bytes: int
    padding_ratio: float

    def rows(self) -> list[tuple[str, str]]:
        """Returns the lines of `str(self)` after the first, as (label, text); the label is empty on continuation lines."""
        rows = [(_index_text(index), f"{leaf}: {bytes_text(size)}") for index, leaf, size in self.leaves]
        rows.append(("allocated", f"{bytes_text(self.allocated_bytes)} in {len(self.leaves)} leaves"))
        rows.append(("padding", f"{bytes_text(self.padding_bytes)} ({self.padding_ratio:.4g}x)"))
        for where, table in (("CPU and GPU", HOST_INDEX_TABLE), ("TPU", TPU_INDEX_TABLE)):
            size = bytes_text(table.all_bytes(self.shape))
            rows.append(("", f"and {size} for pointer tables on {where}"))
        return rows

    def __str__(self) -> str:
        return _table(str(self.shape), self.rows())

    def to_json(self) -> dict[str, Any]:
        """Returns the explanation as JSON-serializable values."""
        return {
            "shape": str(self.shape),
            "leaves": [
                {"index": list(index), "shape": str(leaf), "allocated_bytes": size}
                for index, leaf, size in self.leaves
            ],
            "allocated_bytes": self.allocated_bytes,
            "padding_bytes": self.padding_bytes,
            "padding_ratio": self.padding_ratio,
            "index_table_bytes": {
                "host": HOST_INDEX_TABLE.all_bytes(self.shape),
                "tpu": TPU_INDEX_TABLE.all_bytes(self.shape),
            },
        }


def _index_text(index: tuple[int, ...]) -> str:
    return "{" + ",".join(map(str, index)) + "}"


_WIDEST_HEADING = 24


def _table(title: str, rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(heading) for heading, _ in rows if len(heading) <= _WIDEST_HEADING)
    lines = [title]
    for heading, text in rows:
        if len(heading) > width:
            lines.append(f"  {heading}")
            heading = ""
        lines.append(f"  {heading:<{width}}  {text}")
    return "\n".join(lines)


def explain(shape: Shape) -> ArrayExplanation | TupleExplanation:
    """Explains the memory layout of a shape, as text (`str()`) and as values.

    For a buffer shape, explains the array it holds. Raises LayoutError for an invalid, token or opaque shape, and
    TypeError for anything but a Shape.
    """
    if not isinstance(shape, Shape):
        raise TypeError(f"expected a Shape, not {type(shape).__name__}; hlotext.parse_shape reads its text")
    if shape.is_tuple:
        leaves = tuple(leaf_bytes(shape))
        return TupleExplanation(
            shape, leaves, allocated_bytes(shape), padding_bytes(shape), padding_ratio(shape)
        )
    shape = array_of(shape)
    place = placement(shape)
    padding = padding_by_dimension(shape)
    try:
        reported = xla_array_size(shape)
    except LayoutError:
        reported = None  # a `*` in the first tile
    return ArrayExplanation(
        shape=shape,
        parts=tuple(_parts(place)),
        physical_dimensions=place.physical_dimensions,
        tiled_dimensions=place.tiled_dimensions,
        element_bits=place.element_bits,
        allocated_elements=place.allocated_elements,
        allocated_bytes=place.allocated_bytes,
        unpadded_bytes=unpadded_bytes(shape),
        xla_array_size=reported,
        padding_by_dimension=padding,
        inner_padding_elements=place.tiled_elements - math.prod(row.padded_size for row in padding),
        tail_padding_elements=place.allocated_elements - place.tiled_elements,
        padding_ratio=padding_ratio(shape),
        format=format_of(shape),
        better=better_order(shape),
    )
