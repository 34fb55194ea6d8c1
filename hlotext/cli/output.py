"""Headings, facts and tables on standard output: with rich on a terminal, aligned plain text everywhere else.

Plain text is for pipes: nothing is wrapped, cut or coloured, and rich is not even loaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import attrs
import click

from hlotext.findings import escape

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_LONG_WORK = 4_000_000
"""Bytes of input from which on a progress bar is worth it: about a second."""


@attrs.frozen
class Column:
    """One column of a table."""

    title: str
    style: str = ""
    """A style of rich's, for terminals."""
    is_number: bool = False
    """Aligned to the right."""


@attrs.frozen
class Table:
    """Rows of cells under a title. `left_out` says how many more rows there are."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    left_out: int = 0


class Output(Protocol):
    """Where a report goes."""

    def heading(self, text: str) -> None:
        """What follows is about this."""

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Names and values, one pair a line."""

    def table(self, table: Table) -> None:
        """A table; nothing for one without rows."""

    def text(self, title: str, text: str) -> None:
        """HLO text as it stands, under a title."""


def output() -> Output:
    """Where the reports of this process go: rich on a terminal unless NO_COLOR is set, else plain text."""
    return _Terminal() if is_colourful() else _Plain()


def is_colourful() -> bool:
    """Whether standard output is a terminal on which colours are wanted."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


printable = escape.line
"""The text on one line, with everything that a terminal might obey replaced."""


def echo(text: str, end: str = "\n") -> None:
    """Text for people, or for programs that read a report, on standard output. Nothing of it acts there."""
    emit(escape.lines(f"{text}{end}"))


def emit(text: str, colour: str | None = None) -> None:
    """HLO text, the product of a command, byte for byte on standard output; nothing of it acts on a terminal.

    There it may have a colour.
    """
    if sys.stdout.isatty():
        text = escape.lines(text)
    if colour is not None and is_colourful():
        text = click.style(text, fg=colour)
    click.echo(text.encode("utf-8", "surrogateescape"), nl=False)


def emit_report(text: str) -> None:
    """A report whose writer has seen to it that nothing in it acts, on standard output; it ends with a line end."""
    click.echo(text, nl=not text.endswith("\n") and bool(text))


class _Plain:
    """Aligned columns, two blanks between them, nothing at the ends of lines."""

    def __init__(self) -> None:
        self._is_first = True

    def heading(self, text: str) -> None:
        self._blank()
        echo(printable(text))

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        rows = list(facts)
        width = max((len(name) for name, _ in rows), default=0)
        for name, value in rows:
            echo(f"  {name:{width}}  {printable(value)}".rstrip())
        self._is_first = False

    def table(self, table: Table) -> None:
        if not table.rows:
            return
        self._blank()
        echo(table.title)
        cells = [
            [column.title for column in table.columns],
            *([printable(c) for c in row] for row in table.rows),
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            aligned = (
                f"{cell:{'>' if column.is_number else '<'}{width}}"
                for cell, column, width in zip(row, table.columns, widths, strict=True)
            )
            echo(f"  {'  '.join(aligned)}".rstrip())
        if table.left_out:
            echo(f"  ... and {table.left_out:,} more")

    def text(self, title: str, text: str) -> None:
        self._blank()
        echo(title)
        echo(text)

    def _blank(self) -> None:
        if not self._is_first:
            echo("")
        self._is_first = False


class _Terminal:
    """The same with colours, as wide as the terminal; long cells are folded, never cut."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        self._console = console or Console(highlight=False, markup=False, emoji=False)

    def heading(self, text: str) -> None:
        from rich.rule import Rule
        from rich.text import Text

        self._console.print(Rule(Text(printable(text), "bold"), align="left", style="dim"))

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        from rich.table import Table as RichTable
        from rich.text import Text

        grid = RichTable.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in facts:
            grid.add_row(Text(name), Text(printable(value)))
        self._console.print(grid)

    def table(self, table: Table) -> None:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        if not table.rows:
            return
        caption = f"... and {table.left_out:,} more" if table.left_out else None
        rich_table = RichTable(
            title=Text(table.title, "bold"),
            title_justify="left",
            caption=caption,
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            header_style="dim",
        )
        for column in table.columns:
            rich_table.add_column(
                column.title,
                justify="right" if column.is_number else "left",
                style=column.style,
                overflow="fold",
                no_wrap=column.is_number,
            )
        for row in table.rows:
            rich_table.add_row(*(Text(printable(cell)) for cell in row))
        self._console.print()
        self._console.print(rich_table)

    def text(self, title: str, text: str) -> None:
        from rich.text import Text

        self._console.print()
        self._console.print(Text(title, "bold"))
        self._console.print(Text(escape.lines(text)), soft_wrap=True)


class ReadingBar:
    """A bar on standard error while large files are read, where that is a terminal; else nothing."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._bar: Progress | None = None
        if sum(sizes) >= _LONG_WORK and sys.stderr.isatty():
            self._bar = _progress()
            # How far one file is read nobody tells: for a single one the bar only moves to and fro.
            self._task = self._bar.add_task("", total=sum(sizes) if len(sizes) > 1 else None)

    @contextmanager
    def reading(self, name: str, size: int) -> Iterator[None]:
        """Shows the bar while one file is read."""
        if self._bar is None:
            yield
            return
        from hlotext.analysis.sizes import byte_text

        # Shown only meanwhile: what the command then writes must not mix with it.
        self._bar.update(self._task, description=f"{os.path.basename(name)} ({byte_text(size)})")
        with self._bar:
            yield
        self._bar.advance(self._task, size)


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def shortened(text: str, width: int = 48) -> str:
    """The text, its middle left out where it is longer than `width`."""
    if len(text) <= width:
        return text
    half = (width - 3) // 2
    return f"{text[: width - 3 - half]}...{text[-half:]}"
