"""Cells of a picture of a layout, their offsets in memory, and the borders between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from hlotext import layout
from hlotext.ir.values.shape import Shape

Numbers = npt.NDArray[np.int64]

GAP = -1
"""Stands in a list of shown rows or columns for those that are left out."""

PIECE, TILE = 1, 2
"""Weights of a border: between pieces of the last tile, and between tiles of the first; 0 for none."""


@attrs.frozen
class Axis:
    """One direction of the picture: a dimension of the array, several that `*` merges, or one that a tile
    adds.
    """

    dimensions: tuple[int, ...]
    """Logical dimension numbers; empty if the array has no dimension in this direction."""
    size: int
    padded_size: int
    tile: int
    """Size of the first tile in this direction: 1 where it does not reach, the whole size where there are no
    tiles.
    """
    shown: tuple[int, ...]
    """Row or column numbers, with `GAP` where some are left out."""

    @property
    def name(self) -> str:
        """Name in captions; empty if the array has no dimension in this direction."""
        if not self.dimensions:
            return ""
        plural = "s" if len(self.dimensions) > 1 else ""
        return f"dimension{plural} {', '.join(map(str, self.dimensions))}{' merged' if plural else ''}"

    def label(self, place: int) -> str:
        """Returns the label of the row or column at an index of `shown`; empty for padding."""
        number = self.shown[place]
        return str(number) if 0 <= number < self.size and self.dimensions else ""


@attrs.frozen(eq=False)
class Grid:
    """Cells of a layout picture, indexed as `rows.shown` and `columns.shown`. Cells at a `GAP` have no meaning."""

    rows: Axis
    columns: Axis
    positions: Numbers
    is_padding: npt.NDArray[np.bool_]
    tiles: Numbers
    """A number for each tile of the first level."""
    below: Numbers
    """Weights of the horizontal borders, one row more than there are cells: `below[i]` runs above row i."""
    beside: Numbers
    """Weights of the vertical borders, one column more than there are cells."""


def grid(shape: Shape, most_rows: int, most_columns: int) -> Grid:
    """Returns the grid of an array's two minor-most dimensions as the first tile orders them; indices of the others are
    0.

    The dimension with the lower number is vertical. Raises LayoutError for an ill-formed shape. The array must have
    elements.
    """
    place = layout.placement(shape)
    levels, tiles = _first_level(place)
    down, across = len(levels) - 2, len(levels) - 1
    if levels[down].dimensions > levels[across].dimensions and len(levels[across].dimensions) == 1:
        down, across = across, down
    rows, columns = (
        Axis(
            levels[number].dimensions,
            levels[number].size,
            levels[number].padded_size,
            tiles[number],
            _shown(
                levels[number].padded_size, tiles[number], most, partial(_along, place, levels, tiles, number)
            ),
        )
        for number, most in ((down, most_rows), (across, most_columns))
    )
    row, column = np.meshgrid(_filled(rows.shown), _filled(columns.shown), indexing="ij")
    numbers: list[Any] = [np.zeros_like(row) for _ in levels]
    numbers[down], numbers[across] = row, column
    positions = _positions(place, numbers, tiles)
    tile_numbers = row // rows.tile * -(-columns.padded_size // columns.tile) + column // columns.tile
    pieces = positions // np.prod(place.steps[-1].tile) if len(place.steps) > 1 else np.zeros_like(positions)
    return Grid(
        rows,
        columns,
        positions,
        (row >= rows.size) | (column >= columns.size),
        tile_numbers,
        _borders(tile_numbers, pieces, 0, open_end=rows.shown[-1] == GAP),
        _borders(tile_numbers, pieces, 1, open_end=columns.shown[-1] == GAP),
    )


def _first_level(place: layout.Placement) -> tuple[list[layout.DimensionPadding], list[int]]:
    """The dimensions as the first tile cuts them, and its size in each; at least two, those that are missing
    of size 1.
    """
    levels = list(layout.padding_by_dimension(place.shape))
    if place.steps:
        tiles = [1] * place.steps[0].lead + list(place.steps[0].tile)
    else:
        tiles = [level.size for level in levels]
    missing = max(0, 2 - len(levels))
    return [layout.DimensionPadding((), 1, 1)] * missing + levels, [1] * missing + tiles


def _positions(place: layout.Placement, numbers: list[Any], tiles: list[int]) -> Numbers:
    """Positions of index numbers by the first level's dimensions; they may lie in the padding of the first
    tile.
    """
    if not place.steps:
        return _ravel(
            numbers[len(numbers) - len(place.tiled_dimensions) :], place.tiled_dimensions, numbers[0]
        )
    step = place.steps[0]
    numbers, tiles = numbers[-step.lead - len(step.tile) :], tiles[-step.lead - len(step.tile) :]
    cut = list(zip(numbers[step.lead :], tiles[step.lead :], strict=True))
    current = numbers[: step.lead] + [n // t for n, t in cut] + [n % t for n, t in cut]
    for later in place.steps[1:]:
        current = later.apply(current)
    return _ravel(current, place.tiled_dimensions, numbers[0])


def _ravel(numbers: Sequence[Any], sizes: Sequence[int], like: Numbers) -> Numbers:
    result = np.zeros_like(like)
    for number, size in zip(numbers, sizes, strict=True):
        result = result * size + number
    return result


_LOOK_AHEAD = 256, 4096
"""Numbers of one direction that are looked at for the border to show: most tiles end soon."""


def _along(
    place: layout.Placement,
    levels: Sequence[layout.DimensionPadding],
    tiles: list[int],
    number: int,
    count: int,
) -> Numbers:
    """Positions of the first numbers of one direction, all other numbers being 0."""
    numbers: list[Any] = [np.zeros(count, np.int64)] * len(levels)
    numbers[number] = np.arange(count, dtype=np.int64)
    return _positions(place, numbers, tiles)


def _shown(size: int, tile: int, most: int, along: Callable[[int], Numbers]) -> tuple[int, ...]:
    """All numbers below `size` if there are at most `most`.

    Else the first ones, as whole tiles where those are small, or fewer of them and the two on each side of
    the first jump in memory that they have not shown yet. `along` gives positions in memory.
    """
    if size <= most:
        return tuple(range(size))
    head = max(1, most - 5)
    for count in _LOOK_AHEAD:
        jumps = np.diff(along(min(size, count)))
        new = np.flatnonzero(~np.isin(jumps[head - 1 :], jumps[: head - 1]))
        if len(new) or size <= count:
            break
    if not len(new):
        return (*range(most // tile * tile or most), GAP)
    border = range(max(head, head + int(new[0]) - 2), min(head + int(new[0]) + 2, size))
    between = [GAP] if border[0] > head else []
    rest = [GAP] if border[-1] < size - 1 else []
    return (*range(head), *between, *border, *rest)


def _filled(shown: tuple[int, ...]) -> Numbers:
    """The numbers with every gap standing for the one before it, so that borders run on through a gap."""
    numbers = np.array(shown, np.int64)
    for place in np.flatnonzero(numbers == GAP):
        numbers[place] = numbers[place - 1]
    return numbers


def _borders(tiles: Numbers, pieces: Numbers, axis: int, open_end: bool) -> Numbers:
    """Weights of the borders across an axis.

    The rim counts as a tile's border, but not where the array goes on.
    """
    weights = np.where(np.diff(tiles, axis=axis), TILE, np.where(np.diff(pieces, axis=axis), PIECE, 0))
    rim = np.full_like(np.take(tiles, [0], axis), TILE)
    return np.concatenate([rim, weights, np.zeros_like(rim) if open_end else rim], axis)
