"""Parts of a report as plain values: sections of facts, charts, tables, sources and pictures."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import format_change, format_count, format_percent, seconds, times
from hlotext.schemas import columns

Cell = str | float | int | None

MOST_ROWS = 100
"""Rows of a table that a page shows; commands show the rest."""


@attrs.frozen
class PageColumn:
    """A column of a table."""

    key: str
    """Name in the command's JSON."""
    title: str
    kind: str = "text"
    is_bar: bool = False
    """True if a bar is drawn behind the number."""
    hatched: str = ""
    """The key of the column whose number is the hatched part of the bar: padding, or what is waited for."""

    is_second: bool = False
    """True if it stands beside the names, so that narrow windows show it: the column that decides."""
    is_signed: bool = False
    """True for a difference, so that an increase has a plus sign."""

    @property
    def is_number(self) -> bool:
        """True if the column is aligned to the right."""
        return self.kind not in _WORDS

    def text(self, value: Cell) -> str:
        """Formats a cell."""
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        if self.is_signed and self.kind == "share":
            return format_change(value)
        text = str(_TEXTS[self.kind](value)).replace("-", "−")
        return f"+{text}" if self.is_signed and value > 0 and not text.startswith("<") else text


def columns_of(table: str) -> tuple[PageColumn, ...]:
    """Returns the columns of a table of the page, from `hlotext.schemas.columns`."""
    return tuple(_column(one) for one in columns.columns(table))


def _column(one: columns.Column) -> PageColumn:
    title, kind = one.title, one.kind
    assert title is not None
    bar, hatched, second, signed = (one.options.get(name) for name in ("bar", "hatched", "second", "signed"))
    return PageColumn(one.key, title, kind, bool(bar), hatched or "", bool(second), bool(signed))


def signed_bytes(count: float) -> str:
    """Formats a number of bytes that may be negative."""
    return f"−{byte_text(int(-count))}" if count < 0 else byte_text(int(count))


def signed_seconds(time: float) -> str:
    """Formats seconds that may be negative."""
    text = seconds(abs(time))
    return f"{'−' if time < 0 and not text.startswith('<') else ''}{text}"


_WORDS = ("text", "code", "shape", "operation", "line")
"""Kinds of texts; the last two lead to an operation, and to the operations of a line of Python. A shape is shown as
far as one line holds it."""
_TEXTS: Mapping[str, Any] = {
    "text": str,
    "code": str,
    "shape": str,
    "operation": str,
    "line": str,
    "count": lambda value: f"{value:,}",
    "bytes": signed_bytes,
    "amount": format_count,
    "seconds": signed_seconds,
    "share": lambda value: format_percent(value, 1),
    "percent": lambda value: f"{100 * value:.0f}%",
    "factor": lambda value: times(value).replace("x", "×") if value >= 1.005 else "",
    "milliseconds": lambda value: f"{value:,.1f} ms",
}


@attrs.frozen(slots=False, eq=False)
class PageTable:
    """A table; the first cell of each row names it."""

    id: str
    title: str
    columns: Sequence[PageColumn]
    rows: Sequence[Sequence[Cell]]
    total: int | None = None
    """Total number of rows, if not all are present."""
    is_open: bool = True
    """True if it is shown from the start, and not folded."""
    feet: Sequence[Sequence[Cell]] = ()
    """Rows below the others, of what is left out and of all together: neither sorted nor filtered."""
    sides: Sequence[str] = ()
    """The side of each row's operations, for a table of both."""
    links: Mapping[str, str] = attrs.field(factory=dict)
    """Places of the page, by the cells of code that lead there."""

    @functools.cached_property
    def shown(self) -> tuple[int, ...]:
        """Indices of the columns that are not empty, in order; all columns if there are no rows."""
        columns = sorted(range(len(self.columns)), key=lambda n: n and 2 - self.columns[n].is_second)
        filled = tuple(n for n in columns if not n or any(row[n] not in (None, "") for row in self.rows))
        return filled if self.rows else tuple(columns)

    @property
    def left_out(self) -> int:
        """Number of rows that are omitted."""
        return 0 if self.total is None else max(0, self.total - len(self.rows))

    def bar(self, row: Sequence[Cell], number: int) -> tuple[float, float] | None:
        """Returns the length of a cell's bar and of its hatched part, in percent of the column's longest bar. None if
        it has no bar.
        """
        column, value = self.columns[number], row[number]
        if not column.is_bar or not isinstance(value, (int, float)) or value <= 0:
            return None
        most = self._longest[number]
        part = 0.0
        if column.hatched:
            other = row[next(n for n, c in enumerate(self.columns) if c.key == column.hatched)]
            part = float(other) if isinstance(other, (int, float)) else 0.0
        return round(100 * value / most, 2), round(100 * min(part, value) / most, 2)

    @functools.cached_property
    def _longest(self) -> Mapping[int, float]:
        """The largest number of each column of bars."""
        return {
            n: max((float(v) for row in self.rows if isinstance(v := row[n], (int, float))), default=0.0)
            or 1.0
            for n, column in enumerate(self.columns)
            if column.is_bar
        }


@attrs.frozen
class Chart:
    """A chart that a script draws; a table has the same numbers."""

    id: str
    kind: Literal["memory", "lanes", "icicle"]
    title: str
    summary: str
    """Text alternative for screen readers."""
    data: Mapping[str, Any]
    height: int = 400
    scopes: Mapping[str, float] = attrs.field(factory=dict)
    """Scopes that are drawn, repeated layers as one, with how much of the chart is theirs."""


SOURCE_FIGURES = ("minimum time", "bytes", "flops", "findings")
"""Titles of `SourceLine.figures`."""


@attrs.frozen
class SourceLine:
    """A line of the program, with its cost in one run."""

    number: int
    """From 1; 0 for a gap."""
    text: str
    seconds: float | None = None
    """The least time; None if the chip is not known."""
    bytes: int = 0
    flops: float = 0
    findings: int = 0
    operations: int = 0

    @property
    def figures(self) -> tuple[tuple[float, str], ...]:
        """Each metric as a number and as text, which is empty for 0."""
        time = "" if not self.seconds else str(_TEXTS["seconds"](self.seconds))
        return (
            (self.seconds or 0.0, time),
            (self.bytes, byte_text(self.bytes) if self.bytes else ""),
            (self.flops, str(format_count(self.flops)) if self.flops else ""),
            (self.findings, str(self.findings or "")),
        )


@attrs.frozen
class SourceFile:
    """Lines of one source file of the program."""

    name: str
    """As the module names it."""
    lines: Sequence[SourceLine]


@attrs.frozen
class Picture:
    """A picture that needs no script."""

    title: str
    caption: str
    svg: str
    """Markup in which text of modules is escaped."""


@attrs.frozen
class Section:
    """A section of a report."""

    id: str
    title: str
    lead: str = ""
    """Introduction: the subject, and the command with the same numbers."""
    facts: Sequence[tuple[str, str]] = ()
    leading: Sequence[PageTable] = ()
    """Tables above the pictures."""
    charts: Sequence[Chart] = ()
    tables: Sequence[PageTable] = ()
    notes: Sequence[str] = ()
    sources: Sequence[SourceFile] = ()
    pictures: Sequence[Picture] = ()

    @property
    def source_figures(self) -> tuple[int, ...]:
        """Indices into `SOURCE_FIGURES` of the metrics that any source line has."""
        lines = [line.figures for file in self.sources for line in file.lines]
        return tuple(n for n in range(len(SOURCE_FIGURES)) if any(figures[n][1] for figures in lines))


@attrs.frozen
class Missing:
    """A section that cannot be made from the input."""

    id: str
    title: str
    why: str


@attrs.frozen
class Tile:
    """A metric at the top of a report."""

    title: str
    text: str
    detail: str = ""
    value: float | None = None
    """The figure itself, where it is one."""
    change: str = ""
    """Against the side before."""
    worse: bool | None = None
    """True if that is for the worse; None for what is neither better nor worse."""
    is_few: bool = False
    """True for a count whose change is told as a number, not in percent."""


def cut(rows: Sequence[Any], most: int = MOST_ROWS) -> Sequence[Any]:
    """Returns the first rows, at most `most`."""
    return rows[:most]
