"""The catalogue of layout formats, the tile that the TPU compiler picks, and what the memory spaces are.

The TPU rules are those observed in libtpu's ahead-of-time compiler, for parameters of programs, not read in
its source.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Literal

import attrs

from hlotext.ir.values.shape import Shape, Tile
from hlotext.ir.values.types import TypeKind
from hlotext.layout.checks import array_of, element_bits, layout_of
from hlotext.layout.errors import LayoutError
from hlotext.layout.shapes import physical_dimensions
from hlotext.layout.sizes import allocated_bytes

# ---- memory spaces

_MEMORY_SPACES = {
    0: "the default device memory: HBM on TPU",
    1: "the device's fast memory: VMEM on TPU",
    5: "host memory",
}


def memory_space_name(number: int) -> str:
    """Returns a description of the memory space `S(number)`; a space without a well-known name is given by number."""
    return _MEMORY_SPACES.get(number, f"memory space {number}, which is device-specific")


# ---- formats


@attrs.frozen
class Format:
    """A well-known tiling: its tiles, and the element widths that use it."""

    name: str
    tiles: tuple[Tile, ...]
    element_bits: tuple[int, ...]
    """Stored bits per element; empty for any."""
    meaning: str


def _tiles(*sizes: tuple[int, ...]) -> tuple[Tile, ...]:
    return tuple(map(Tile, sizes))


@attrs.frozen
class _TpuWidth:
    """Tiling that the TPU compiler chooses for arrays of types of one width."""

    type_bits: tuple[int, ...]
    """Widths of the types, `pred` counted as 8."""
    packing: int
    """Elements of neighbouring rows that share a 32-bit word: the (packing,1) of the last tile."""
    scalar: int
    """Elements of the tile of a scalar."""
    least_vector: int
    """Elements of the smallest tile of a rank-1 array, the largest being 1024; 0 where none was observed."""
    small_rows: tuple[int, ...] = ()
    """Tiles with fewer rows than `rows`, for arrays that have no more rows than these."""
    rows: int = 8
    tall_rows: int = 0
    """Rows of the tile where the array's rows are a multiple of it; 0 for no such rule."""
    element_size: int = 0
    """The `E` that the compiler writes; 0 for none."""

    @property
    def stored_bits(self) -> tuple[int, ...]:
        """Widths of the stored elements."""
        whole = dict.fromkeys(max(8, bits) for bits in self.type_bits)
        return (self.element_size,) if self.element_size else tuple(whole)

    def matrix(self, rows: int) -> tuple[Tile, ...]:
        """Tiles of `rows` x 128 elements."""
        return _tiles((rows, 128), *([(self.packing, 1)] if self.packing > 1 else []))

    def vector(self, elements: int) -> tuple[Tile, ...]:
        """Tiles of a rank-1 array, `elements` in each."""
        return _tiles((elements,), *([(128,), (self.packing, 1)] if self.packing > 1 else []))


_TPU_V4 = (
    _TpuWidth((32, 64, 128), packing=1, scalar=128, least_vector=128, small_rows=(1, 2, 4)),
    _TpuWidth((16,), packing=2, scalar=256, least_vector=256, small_rows=(2, 4)),
    _TpuWidth((8,), packing=4, scalar=512, least_vector=512, small_rows=(4,), tall_rows=32),
    _TpuWidth((4,), packing=8, scalar=1024, least_vector=1024, tall_rows=64, element_size=4),
    _TpuWidth((2,), packing=16, scalar=2048, least_vector=0, rows=16, element_size=2),
)
"""v4, v5e, v5p, v6e and 7x. Some of these refuse 2-bit scalars, vectors and arrays of few rows."""

_TPU_V2 = (
    _TpuWidth((32, 64, 128), packing=1, scalar=256, least_vector=256, small_rows=(2, 4)),
    _TpuWidth((16,), packing=2, scalar=512, least_vector=512, small_rows=(4,)),
    _TpuWidth((4, 8), packing=4, scalar=1024, least_vector=1024),
)
"""v2 and v3, where no tile is smaller than 1024 bytes and 4-bit types take a byte; observed for fewer shapes.
"""

_GENERATIONS = {"v2": _TPU_V2, "v4": _TPU_V4}

_LARGEST_VECTOR = 1024


def _family(width: _TpuWidth) -> str:
    """`TPU` for whole 32-bit words, else with the width: `TPU 16-bit`."""
    return "TPU" if width.packing == 1 else f"TPU {width.stored_bits[0]}-bit"


def _tpu_formats(width: _TpuWidth) -> Iterator[Format]:
    family = _family(width)
    shared = (
        f", {width.packing} neighboring rows interleaved in each 32-bit word" if width.packing > 1 else ""
    )
    for rows in (*width.small_rows, width.rows, width.tall_rows):
        if rows:
            small = "small " if rows < width.rows else ""
            meaning = f"tiles of {rows} rows by 128 columns{shared}"
            yield Format(f"{family} {small}{rows}x128", width.matrix(rows), width.stored_bits, meaning)
    elements = width.least_vector
    while 0 < elements <= _LARGEST_VECTOR:
        meaning = f"pieces of {elements} elements{shared}"
        yield Format(f"{family} vector of {elements}", width.vector(elements), width.stored_bits, meaning)
        elements *= 2


def _scalar_formats(widths: Iterable[_TpuWidth]) -> Iterator[Format]:
    for width in widths:
        yield Format(
            f"{_family(width)} scalar",
            _tiles((width.scalar,)),
            width.stored_bits,
            f"one value and padding to {width.scalar} elements",
        )


RAW = Format("raw", (), (), "no tiles: elements in minor_to_major order without padding")

CATALOGUE: tuple[Format, ...] = (
    RAW,
    *(format_ for width in _TPU_V4 for format_ in _tpu_formats(width)),
    Format(
        "TPU 16-bit 16x128", _tiles((16, 128), (2, 1)), (16,),
        "tiles of 16 rows by 128 columns, 2 neighboring rows per 32-bit word; inside programs only",
    ),
    Format(
        "1-bit 32x128", _tiles((32, 128), (32, 1)), (1,),
        "tiles of 32 rows by 128 columns, 32 rows per word; documented, but TPUs store pred in bytes",
    ),
)  # fmt: skip
"""Every known format of arrays with dimensions; no two have the same tiles for the same width."""

SCALAR_CATALOGUE: tuple[Format, ...] = (RAW, *_scalar_formats((*_TPU_V4, *_TPU_V2)))
"""The formats of scalars, of both families of TPU."""


def format_of(shape: Shape) -> Format | None:
    """Returns the well-known format that matches an array's layout, or None if there is none.

    Raises LayoutError for an invalid layout.
    """
    shape = array_of(shape)
    layout, bits = layout_of(shape), element_bits(shape)
    for format_ in CATALOGUE if shape.rank else SCALAR_CATALOGUE:
        if format_.tiles == layout.tiles and (not format_.element_bits or bits in format_.element_bits):
            return format_
    return None


# ---- what the TPU compiler picks


def tpu_layout(shape: Shape, generation: Literal["v2", "v4"] = "v4") -> Shape:
    """Returns the shape with the tiles (and `E`) that the TPU compiler assigns to a parameter of this type and size.

    The compiler may also choose another order of dimensions; see `better_order`. Arrays without elements get no tiles.

    Args:
        shape: The array shape.
        generation: `v2` for TPU v2 and v3, `v4` for v4 and later.

    Raises:
        LayoutError: `shape` is not an array, or the tiles for its type, rank and generation are not known (1- and 6-bit
            types, 2-bit vectors; on v2 all 2-bit types).
    """
    shape = array_of(shape)
    layout, type_ = layout_of(shape), shape.element_type
    bits = 8 if type_.kind is TypeKind.PREDICATE else type_.bits
    width = next((row for row in _GENERATIONS[generation] if bits in row.type_bits), None)
    if width is None:
        raise LayoutError(
            "element type", f"which tile the TPU compiler picks for {type_} has not been observed", shape
        )
    tiles = () if 0 in shape.dimensions else _tpu_tiles(width, shape)
    return shape.with_layout(attrs.evolve(layout, tiles=tiles, element_size_in_bits=width.element_size))


def _tpu_tiles(width: _TpuWidth, shape: Shape) -> tuple[Tile, ...]:
    physical = physical_dimensions(shape)
    if not physical:
        return _tiles((width.scalar,))
    if len(physical) == 1:
        if not width.least_vector:
            raise LayoutError(
                "the rank", f"no TPU tile of {shape.element_type} vectors has been observed", shape
            )
        power = 1 << (physical[0] - 1).bit_length()
        return width.vector(min(max(power, width.least_vector), _LARGEST_VECTOR))
    rows = physical[-2]
    if width.tall_rows and rows % width.tall_rows == 0:
        return width.matrix(width.tall_rows)
    return width.matrix(next((small for small in width.small_rows if rows <= small), width.rows))


# ---- orders of dimensions that waste less

_MOST_WORK = 250_000
"""Dimensions of all orders that are tried, together; from 63 dimensions on not every order of two is."""


def better_order(shape: Shape) -> Shape | None:
    """Returns the array with the dimension order that needs the least padding, or None if the current order is as good.

    Tries every choice of dimensions for the first tile (of at most three), keeping the order of the others; for ranks
    above 20 or so only the first choices, to bound the time. If the current tiles are those that the TPU compiler would
    choose, each candidate order gets the compiler's tiles for it; otherwise the tiles are kept. Also returns None for an
    array without tiles. Raises LayoutError for an invalid shape.
    """
    shape = array_of(shape)
    layout = layout_of(shape)
    if not layout.tiles or 0 in shape.dimensions:
        return None
    retile = _has_tpu_tiles(shape)
    cut = min(shape.rank, len(layout.tiles[0].dimensions), 3)
    best, least = None, allocated_bytes(shape)
    orders = itertools.permutations(layout.minor_to_major, cut)
    for minor in itertools.islice(orders, _MOST_WORK // max(1, shape.rank)):
        rest = tuple(number for number in layout.minor_to_major if number not in minor)
        candidate = shape.with_layout(attrs.evolve(layout, minor_to_major=minor + rest))
        try:
            candidate = tpu_layout(candidate) if retile else candidate
            size = allocated_bytes(candidate)
        except LayoutError:
            continue  # this order is refused, or too large: no better one
        if size < least:
            best, least = candidate, size
    return best


def _has_tpu_tiles(shape: Shape) -> bool:
    try:
        return layout_of(tpu_layout(shape)).tiles == layout_of(shape).tiles
    except LayoutError:
        return False
