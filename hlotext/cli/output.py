"""Headings, facts and tables on standard output: as wide as the terminal and in colour there, aligned plain text elsewhere.

Plain text is for pipes: nothing is wrapped, cut or coloured.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import attrs
import click

from hlotext.cli.table_layout import (
    GAP,
    INDENT,
    Kind,
    TerminalColumn,
    cell_width,
    command_lines,
    fit,
    shorter,
    wrapped,
)
from hlotext.cli.table_options import asked, number_of
from hlotext.findings import escape

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = [
    "Kind",
    "Output",
    "ReadingBar",
    "TerminalColumn",
    "TerminalTable",
    "WorkBar",
    "echo",
    "emit",
    "emit_report",
    "output",
    "printable",
    "shortened",
]  # fmt: skip

T = TypeVar("T")

_LONG_WORK = 4_000_000
"""Bytes of input from which on a progress bar is worth it: about a second."""
_NARROWEST = 40
"""Columns that reports take at least: with fewer nothing is left to read."""
_NAMES = 20
"""Columns that names of facts may always take; longer ones than a quarter of the terminal stand above their values."""


@attrs.frozen
class TerminalTable:
    """A table with a title. `left_out` is the number of rows that are not shown."""

    title: str
    columns: Sequence[TerminalColumn]
    rows: Sequence[Sequence[str]]
    left_out: int = 0
    is_arranged: bool = False
    """True if columns and rows are already those that the command line asks for."""


def terminal_width() -> int | None:
    """Returns the width of the terminal in columns; None if standard output is not a terminal."""
    if not sys.stdout.isatty():
        return None
    return max(shutil.get_terminal_size().columns, _NARROWEST)


def is_colourful() -> bool:
    """True if standard output is a terminal that supports color, and NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


printable = escape.line
"""The text on one line, with everything that a terminal might obey replaced."""


def echo(text: str, end: str = "\n") -> None:
    """Prints text, with control characters replaced."""
    emit(escape.lines(f"{text}{end}"))


def emit(text: str, colour: str | None = None) -> None:
    """Prints HLO text unchanged; on terminals with control characters replaced, in a color if given."""
    if sys.stdout.isatty():
        text = escape.lines(text)
    if colour is not None and is_colourful():
        text = styled(text, colour)
    asked().write(text.encode("utf-8", "surrogateescape"))


def emit_report(text: str) -> None:
    """Prints a report that is already escaped, with a line end added if missing."""
    if text and not text.endswith("\n"):
        text += "\n"
    # Bytes, as `emit`: a page says that it is UTF-8, whatever the system's own encoding is.
    click.echo(text.encode("utf-8", "surrogateescape"), nl=False)


def styled(text: str, style: str) -> str:
    """Returns text in a style: a color, `bold` and `dim`, separated by blanks."""
    words = style.split()
    colour = next((word for word in words if word not in ("bold", "dim")), None)
    return click.style(text, fg=colour, bold="bold" in words or None, dim="dim" in words or None)


class Command(str):
    """A command line as a fact's value, wrapped so that it can be copied."""

    __slots__ = ()


class Output:
    """Prints headings, facts, tables and HLO text at a given width, with or without color."""

    def __init__(self, width: int | None, is_coloured: bool) -> None:
        self.width = width
        """Columns that there are; None for any number."""
        self._is_coloured = is_coloured
        self._is_first = True

    def heading(self, text: str) -> None:
        """Prints the heading `PLACE: NAME`; folders are dropped if it is too long."""
        self._blank()
        text = printable(text)
        if self.width is None:
            self._line(text)
            return
        place, mark, name = text.rpartition(": ")
        if cell_width(text) > self.width and " " in (place if mark else text):  # a sentence
            for line in wrapped(text, self.width, " " * INDENT):
                self._line(self._styled(line, "bold"))
            return
        text = (
            f"{shorter(place, self.width - cell_width(mark + name), Kind.PLACE)}{mark}{name}"
            if mark
            else text
        )
        text = shorter(text, self.width, Kind.NAME)
        rule = "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * (self.width - cell_width(text) - 1)
        self._line(f"{self._styled(text, 'bold')} {self._styled(rule, 'dim')}".rstrip())

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Prints names and values, one pair per line; long values are wrapped."""
        rows = [(printable(name), printable(value), isinstance(value, Command)) for name, value in facts]
        longest = max((len(name) for name, *_ in rows), default=0)
        if self.width is not None:
            longest = min(longest, max(_NAMES, self.width // 4))
        for name, value, is_command in rows:
            broken = command_lines if is_command else wrapped
            lines = [value] if self.width is None else broken(value, self.width - INDENT - longest - GAP)
            if len(name) > longest:  # a line of its own, so that all values keep their room
                self._line(f"{' ' * INDENT}{self._styled(name, 'dim')}")
                name = ""
            for number, line in enumerate(lines):
                lead = self._styled(f"{name if not number else '':{longest}}", "dim")
                self._line(f"{' ' * INDENT}{lead}{' ' * GAP}{line}".rstrip())
        self._is_first = False

    def table(self, table: TerminalTable) -> None:
        """Prints a table; nothing if it has no rows."""
        table = table if table.is_arranged else _arranged(table)
        if not table.rows:
            return
        self._blank()
        title = printable(table.title)
        for line in [title] if self.width is None else wrapped(title, self.width, " " * INDENT):
            self._line(self._styled(line, "bold"))
        fitted = fit(table.columns, [[printable(cell) for cell in row] for row in table.rows], self.width)
        columns = [table.columns[number] for number in fitted.columns]
        self._row(columns, fitted.widths, [(column.title,) for column in columns], "dim")
        for row, full in zip(fitted.rows, table.rows, strict=True):
            self._row(columns, fitted.widths, row)
            below = "; ".join(
                f"{table.columns[n].title} {printable(full[n])}" for n in fitted.below if full[n]
            )
            for line in wrapped(below, (self.width or 1 << 30) - 3 * INDENT) if below else ():
                self._line(self._styled(f"{' ' * 3 * INDENT}{line}", "dim"))
        gone = [
            column.title
            for n, column in enumerate(table.columns)
            if n not in (*fitted.columns, *fitted.below) and any(row[n] for row in table.rows)
        ]
        more = [f"... and {table.left_out:,} more"] if table.left_out else []
        if gone:
            more.append(
                f"not shown at this width: {', '.join(filter(None, gone))}; a wider terminal shows them"
            )
        for text in more:
            for line in wrapped(text, (self.width or 1 << 30) - INDENT, " " * INDENT):
                self._line(self._styled(f"{' ' * INDENT}{line}", "dim"))

    def text(self, title: str, text: str) -> None:
        """Prints HLO text unchanged under a title; on terminals long lines are wrapped."""
        self._blank()
        self._line(self._styled(title, "bold"))
        for line in escape.lines(text).split("\n"):
            indent = " " * (len(line) - len(line.lstrip()) + 4)
            for piece in [line] if self.width is None else wrapped(line, self.width, indent):
                self._line(piece)

    def gap(self) -> None:
        """Prints a blank line."""
        self._line("")

    def note(self, text: str) -> None:
        """Prints a sentence."""
        text = printable(text)
        for line in [text] if self.width is None else wrapped(text, self.width, " " * INDENT):
            self._line(line)

    def _row(
        self,
        columns: Sequence[TerminalColumn],
        widths: Sequence[int],
        cells: Sequence[Sequence[str]],
        style: str = "",
    ) -> None:
        for number in range(max(map(len, cells))):
            parts = []
            for column, width, lines in zip(columns, widths, cells, strict=True):
                text = lines[number] if number < len(lines) else ""
                pad = " " * (width - cell_width(text))
                shown = self._styled(text, style or column.style)
                parts.append(f"{pad}{shown}" if column.is_number else f"{shown}{pad}")
            self._line(f"{' ' * INDENT}{(' ' * GAP).join(parts)}".rstrip())

    def _styled(self, text: str, style: str) -> str:
        return styled(text, style) if self._is_coloured and style and text.strip() else text

    def _line(self, text: str) -> None:
        asked().write(f"{text}\n".encode("utf-8", "surrogateescape"))

    def _blank(self) -> None:
        if not self._is_first:
            self._line("")
        self._is_first = False


def _arranged(table: TerminalTable) -> TerminalTable:
    """The table with the columns and in the order that the command line asks for."""
    options = asked()
    names = [(column.title,) for column in table.columns]
    place = options.sort_column(names)
    rows = list(table.rows)
    if place is not None:
        rows = options.in_order(rows, lambda row: number_of(row[place]))
    chosen = options.chosen(names)
    if chosen is None:
        return attrs.evolve(table, rows=rows)
    rows = [[row[n] for n in chosen] for row in rows] if chosen else []
    return attrs.evolve(table, columns=[table.columns[n] for n in chosen], rows=rows)


def output() -> Output:
    """Returns the output of this process: as wide as the terminal and in color unless NO_COLOR is set, else plain text."""
    return Output(terminal_width(), is_colourful())


class ReadingBar:
    """A progress bar on standard error while large files are read; nothing if that is not a terminal."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._bar: Progress | None = None
        if sum(sizes) >= _LONG_WORK and sys.stderr.isatty():
            self._bar = _progress()
            # How far one file is read nobody tells: for a single one the bar only moves to and fro.
            self._task = self._bar.add_task("", total=sum(sizes) if len(sizes) > 1 else None)

    @contextmanager
    def reading(self, name: str, size: int) -> Iterator[None]:
        """Shows the bar while a file is read."""
        if self._bar is None:
            yield
            return
        from hlotext.analysis.sizes import byte_text

        # Shown only meanwhile: what the command then writes must not mix with it.
        self._bar.update(self._task, description=f"{os.path.basename(name)} ({byte_text(size)})")
        with self._bar:
            yield
        self._bar.advance(self._task, size)


class WorkBar:
    """A progress bar on standard error that counts completed items; nothing if that is not a terminal."""

    def __init__(self, what: str, total: int | None = None) -> None:
        self._bar: Progress | None = None
        if sys.stderr.isatty():
            self._bar = _progress(counts=total is not None)
            self._task = self._bar.add_task(what, total=total)

    def __enter__(self) -> WorkBar:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def each(self, things: Iterable[T]) -> Iterator[T]:
        """Yields the items and counts each."""
        for thing in things:
            if self._bar is not None:
                self._bar.advance(self._task)
            yield thing


def _progress(*, counts: bool = False) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *([MofNCompleteColumn()] if counts else []),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def shortened(text: str, width: int = 48) -> str:
    """Returns a text with its middle replaced by dots if it is longer than `width`."""
    if len(text) <= width:
        return text
    half = (width - 3) // 2
    return f"{text[: width - 3 - half]}...{text[-half:]}"
