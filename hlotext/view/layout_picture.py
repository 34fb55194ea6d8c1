"""Pictures of a layout: the cells of an array in their logical places, each with its position in memory.

Figure 1 of XLA's document on tiled layouts. A heavy line is the border of a tile, `·` is padding:

>>> from hlotext.layout import make_shape
>>> print(LayoutPicture(make_shape("f32", (3, 5), tiles=[(2, 2)])))
f32[3,5]{1,0:T(2,2)}
  each cell shows its position in memory, in elements
  down: dimension 0, across: dimension 1
      0  1  2  3  4
    ┏━━━━━┳━━━━━┳━━━━━┓
  0 ┃ 0  1┃ 4  5┃ 8  ·┃
  1 ┃ 2  3┃ 6  7┃10  ·┃
    ┣━━━━━╋━━━━━╋━━━━━┫
  2 ┃12 13┃16 17┃20  ·┃
    ┃ ·  ·┃ ·  ·┃ ·  ·┃
    ┗━━━━━┻━━━━━┻━━━━━┛

Figure 2, where a second tile cuts the first one. A light line is the border of its pieces:

>>> print(LayoutPicture(make_shape("f32", (4, 8), tiles=[(2, 4), (2, 1)])))
f32[4,8]{1,0:T(2,4)(2,1)}
  each cell shows its position in memory, in elements
  down: dimension 0, across: dimension 1
      0  1  2  3  4  5  6  7
    ┏━━━━━━━━━━━┳━━━━━━━━━━━┓
  0 ┃ 0│ 2│ 4│ 6┃ 8│10│12│14┃
  1 ┃ 1│ 3│ 5│ 7┃ 9│11│13│15┃
    ┣━━━━━━━━━━━╋━━━━━━━━━━━┫
  2 ┃16│18│20│22┃24│26│28│30┃
  3 ┃17│19│21│23┃25│27│29│31┃
    ┗━━━━━━━━━━━┻━━━━━━━━━━━┛
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs
import numpy as np

from hlotext import layout
from hlotext.findings import escape
from hlotext.ir.values.shape import Shape
from hlotext.view.layout_grid import GAP, PIECE, TILE, Axis, Grid, Numbers, grid

MOST_ROWS = 16
MOST_COLUMNS = 16


def _array(shape: Shape) -> Shape:
    return layout.placement(shape).shape


@attrs.frozen
class LayoutPicture:
    """A picture of the memory layout of an array shape (or of the array in a buffer).

    `str()` is the text version; notebooks display the SVG. Raises LayoutError for an invalid shape, and for shapes that
    are not arrays.
    """

    shape: Shape = attrs.field(converter=_array)
    most_rows: int = MOST_ROWS
    """Maximum number of rows. Larger arrays are cropped to a corner that shows the border of the first tile."""
    most_columns: int = MOST_COLUMNS

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Draws the picture with box-drawing characters, without a trailing newline."""
        cells = self._grid()
        lines = [str(self.shape), *(f"  {line}" for line in self._caption(cells))]
        if cells is not None:
            lines += [f"  {line}".rstrip() for line in _text_lines(cells)]
        return "\n".join(lines)

    def svg(self) -> str:
        """Draws the picture as SVG, with colored tiles, framed pieces of the last tile, and hatched padding."""
        cells = self._grid()
        return _svg(str(self.shape), self._caption(cells), cells)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _grid(self) -> Grid | None:
        """The cells; None for an array without elements."""
        return grid(self.shape, self.most_rows, self.most_columns) if self.shape.element_count else None

    def _caption(self, cells: Grid | None) -> list[str]:
        if cells is None:
            return ["no elements, so no memory"]
        rows, columns = cells.rows, cells.columns
        caption = ["each cell shows its position in memory, in elements"]
        directions = [
            f"{word}: {axis.name}" for word, axis in (("down", rows), ("across", columns)) if axis.name
        ]
        if directions:
            caption.append(", ".join(directions) + self._others(cells))
        if GAP in rows.shown or GAP in columns.shown:
            tile = f"; a tile is {rows.tile} x {columns.tile}" if layout.layout_of(self.shape).tiles else ""
            caption.append(f"a corner of {rows.padded_size} x {columns.padded_size} cells{tile}")
        padded = math.prod(row.padded_size for row in layout.padding_by_dimension(self.shape))
        hidden = layout.placement(self.shape).allocated_elements - padded
        if hidden:
            caption.append(f"{hidden:,} more elements of padding lie outside the array's dimensions")
        return caption

    def _others(self, cells: Grid) -> str:
        shown = {*cells.rows.dimensions, *cells.columns.dimensions}
        others = [n for n, size in enumerate(self.shape.dimensions) if n not in shown and size > 1]
        if not others:
            return ""
        return f"; dimension{'s' if len(others) > 1 else ''} {', '.join(map(str, others))} at 0"


# ---- text

_PADDING = "·"
_GAP_MARK = "…"
_LIGHT = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"
_HEAVY = " ╹╺┗╻┃┏┣╸┛━┻┓┫┳╋"
"""Box-drawing characters by the arms they have: 1 up, 2 right, 4 down, 8 left."""
_VERTICAL, _HORIZONTAL = 1 + 4, 2 + 8


def _text_lines(cells: Grid) -> Iterator[str]:
    rows, columns = (range(len(axis.shown)) for axis in (cells.rows, cells.columns))
    width = max(len(str(cells.positions.max())), *(len(_label(cells.columns, j)) for j in columns))
    margin = max(len(_label(cells.rows, i)) for i in rows)
    labels = " ".join(f"{_label(cells.columns, j):>{width}}" for j in columns)
    if labels.strip():
        yield f"{'':{margin}}  {labels}"
    for i in range(len(rows) + 1):
        if cells.below[i].any():
            yield f"{'':{margin}} " + _border_line(cells, i, width)
        if i < len(rows):
            yield f"{_label(cells.rows, i):>{margin}} " + _cell_line(cells, i, width)


def _label(axis: Axis, place: int) -> str:
    return _GAP_MARK if axis.shown[place] == GAP else axis.label(place)


def _cell_text(cells: Grid, row: int, column: int) -> str:
    if GAP in (cells.rows.shown[row], cells.columns.shown[column]):
        return _GAP_MARK
    return _PADDING if cells.is_padding[row, column] else str(cells.positions[row, column])


def _cell_line(cells: Grid, row: int, width: int) -> str:
    line = _line_character(cells.beside[row, 0], _VERTICAL)
    for column in range(len(cells.columns.shown)):
        line += f"{_cell_text(cells, row, column):>{width}}"
        line += _line_character(cells.beside[row, column + 1], _VERTICAL)
    return line


def _border_line(cells: Grid, row: int, width: int) -> str:
    """The horizontal borders above a row, and the crossings with the vertical ones."""
    line = _crossing(cells, row, 0)
    for column in range(len(cells.columns.shown)):
        line += _line_character(cells.below[row, column], _HORIZONTAL) * width + _crossing(
            cells, row, column + 1
        )
    return line


def _line_character(weight: int, arms: int) -> str:
    return _HEAVY[arms] if weight == TILE else _LIGHT[arms] if weight == PIECE else " "


def _crossing(cells: Grid, row: int, column: int) -> str:
    """The character where borders meet above a row and left of a column; heavy arms hide light ones."""
    last_row, last_column = len(cells.rows.shown), len(cells.columns.shown)
    arms = (
        cells.beside[row - 1, column] if row > 0 else 0,
        cells.below[row, column] if column < last_column else 0,
        cells.beside[row, column] if row < last_row else 0,
        cells.below[row, column - 1] if column > 0 else 0,
    )
    heaviest = max(arms)
    characters = _HEAVY if heaviest == TILE else _LIGHT
    return characters[sum(1 << bit for bit, weight in enumerate(arms) if weight and weight == heaviest)]


# ---- SVG

_COLOURS = ("#cfe3f7", "#fde2c4", "#d5ecd0", "#f6d3d8", "#e3d8f1", "#fbf1bd", "#cdeceb", "#e9dcd3")
"""Fills of the tiles, in turn; neighbours differ."""
_HEIGHT = 24
_FONT = 'font-family="ui-monospace, Menlo, Consolas, monospace"'
_HATCH = (
    '<pattern id="hlotext-padding" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)">'
    '<rect width="6" height="6" fill="#ffffff" fill-opacity="0.6"/>'
    '<line x1="0" y1="0" x2="0" y2="6" stroke="#a0a0a0" stroke-width="1.2"/></pattern>'
)


def _svg(title: str, caption: list[str], cells: Grid | None) -> str:
    """The document: the shape's text, the caption, the cells."""
    lines = [title, *caption]
    if cells is not None:
        lines += _legend(cells)
    top = 24 + 18 * len(lines)
    cell_width = 0 if cells is None else 14 + 8 * max(2, len(str(cells.positions.max())))
    margin = (
        0 if cells is None else 14 + 8 * max(len(_label(cells.rows, i)) for i in range(len(cells.rows.shown)))
    )
    body = [] if cells is None else list(_svg_cells(cells, margin, top, cell_width))
    columns, rows = (0, 0) if cells is None else (len(cells.columns.shown), len(cells.rows.shown))
    width = 24 + max(margin + columns * cell_width, 8 * max(map(len, lines)))
    height = top + (24 + rows * _HEIGHT if cells is not None else 0) + 12
    texts = [
        f'<text x="12" y="{24 + 18 * number}" font-size="{14 if number == 0 else 12}" '
        f'fill="{"#111111" if number == 0 else "#555555"}">{escape.html(line)}</text>'
        for number, line in enumerate(lines)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" {_FONT} role="img">',
            f"<title>{escape.html(title)}</title>",
            f"<defs>{_HATCH}</defs>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *texts,
            *body,
            "</svg>",
        ]
    )


def _legend(cells: Grid) -> list[str]:
    """Legend of the marks that occur in the drawing."""
    means = []
    if np.ptp(cells.tiles):
        means.append("each colour is a tile")
    if (cells.below == PIECE).any() or (cells.beside == PIECE).any():
        means.append("light frames are sub-tiles of the last tile")
    if cells.is_padding.any():
        means.append("hatched cells are padding")
    return [", ".join(means)] if means else []


def _svg_cells(cells: Grid, margin: int, top: int, width: int) -> Iterator[str]:
    """Labels, cells and borders.

    `margin` is the room for the labels of rows, `top` that above the labels of columns.
    """
    left, upper = 12 + margin, top + 12
    columns = []
    for j, column in enumerate(cells.columns.shown):
        x = left + j * width
        yield _svg_text(f"{x + width / 2:g}", upper - 6, escape.html(_label(cells.columns, j)), "#555555")
        columns.append((x, f"{x + width / 2:g}", column == GAP))
    # Looking single numbers up in arrays takes most of the time otherwise.
    numbers = zip(cells.positions.tolist(), cells.is_padding.tolist(), _colours(cells).tolist(), strict=True)
    for i, (positions, paddings, colours) in enumerate(numbers):
        y = upper + i * _HEIGHT
        yield _svg_text(f"{left - 8}", y + 16, escape.html(_label(cells.rows, i)), "#555555", anchor="end")
        is_gap_row = cells.rows.shown[i] == GAP
        size = f'y="{y}" width="{width}" height="{_HEIGHT}"'
        for (x, middle, is_gap), position, is_padding, colour in zip(
            columns, positions, paddings, colours, strict=True
        ):
            if is_gap or is_gap_row:
                yield f'<rect x="{x}" {size} fill="#ffffff" stroke="#ffffff" stroke-width="0.5"/>'
                yield _svg_text(middle, y + 16, _GAP_MARK, "#666666")
                continue
            yield f'<rect x="{x}" {size} fill="{_COLOURS[colour]}" stroke="#ffffff" stroke-width="0.5"/>'
            if is_padding:
                yield f'<rect x="{x}" {size} fill="url(#hlotext-padding)"/>'
            yield _svg_text(middle, y + 16, str(position), "#666666" if is_padding else "#111111")
    for weight, stroke in (
        (PIECE, 'stroke="#8a8a8a" stroke-width="1"'),
        (TILE, 'stroke="#222222" stroke-width="2"'),
    ):
        path = "".join(_svg_borders(cells, weight, left, upper, width))
        if path:
            yield f'<path d="{path}" {stroke} fill="none" stroke-linecap="square"/>'


def _colours(cells: Grid) -> Numbers:
    """Numbers of `_COLOURS` that differ from those of the tiles beside, above and below."""
    across = -(-cells.columns.padded_size // cells.columns.tile)
    rows, columns = np.divmod(cells.tiles, across)
    found: Numbers = (3 * rows + columns) % len(_COLOURS)
    return found


def _svg_text(x: str, y: int, text: str, fill: str, anchor: str = "middle") -> str:
    return f'<text x="{x}" y="{y}" font-size="12" text-anchor="{anchor}" fill="{fill}">{text}</text>'


def _svg_borders(cells: Grid, weight: int, left: int, upper: int, width: int) -> Iterator[str]:
    """Path commands of every border of one weight."""
    for i, j in np.argwhere(cells.below == weight).tolist():
        yield f"M{left + j * width} {upper + i * _HEIGHT}h{width}"
    for i, j in np.argwhere(cells.beside == weight).tolist():
        yield f"M{left + j * width} {upper + i * _HEIGHT}v{_HEIGHT}"
