"""`--columns` and `--sort`: the columns of tables that are shown, and their order of rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from textwrap import shorten
from typing import Any, TypeVar

import attrs
import click

from hlotext.ir.spelling import did_you_mean, slip_of
from hlotext.schemas import columns
from hlotext.schemas.command_table import current

F = TypeVar("F", bound=Callable[..., Any])
_KEY = __name__
_NUMBER = re.compile(r"[+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?")
_SCALES = {
    "n": 1e-9,
    "u": 1e-6,
    "µ": 1e-6,
    "m": 1e-3,
    "K": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
}


@attrs.define
class TableOptions:
    """Columns and order requested on the command line."""

    columns: tuple[str, ...] = ()
    sort: str = ""
    """The column to sort by; with a leading `-` in the opposite order."""
    known: dict[str, str] = attrs.field(factory=dict)
    """All names of columns of tables so far, with their titles."""
    held: list[bytes] = attrs.field(factory=list)
    """Output that waits until all tables have been seen."""
    command: click.Context | None = None
    """The command that was given the options."""

    def write(self, data: bytes) -> None:
        """Prints output immediately, or in `finish` if columns are requested."""
        if self.columns or self.sort:
            self.held.append(data)
        else:
            click.echo(data, nl=False)

    def chosen(self, titles: Sequence[Sequence[str]]) -> list[int] | None:
        """Returns the indices of the columns to show, given the names of each; None if no columns are requested.

        A table that lacks one of the requested columns keeps its first column, the name of each row.
        """
        self.known.update((name, names[0]) for names in titles for name in names)
        if not self.columns:
            return None
        found = [n for wanted in self.columns if (n := _place(wanted, titles)) is not None]
        return found if len(found) in (0, len(self.columns)) or 0 in found else [0, *found]

    def sort_column(self, titles: Sequence[Sequence[str]]) -> int | None:
        """Returns the index of the column to sort by; None if there is none."""
        return _place(self.sort.removeprefix("-"), titles)

    def in_order(self, things: Sequence[Any], value: Callable[[Any], Any]) -> list[Any]:
        """Sorts items by value: largest numbers first, texts alphabetically, unknown ones last."""
        numbers: list[tuple[float, Any]] = []
        texts: list[tuple[str, Any]] = []
        rest: list[Any] = []
        for thing in things:
            found = value(thing)
            if isinstance(found, int | float):
                numbers.append((found, thing))
            elif isinstance(found, str) and found:
                texts.append((found, thing))
            else:
                rest.append(thing)
        is_reversed = self.sort.startswith("-")
        numbers.sort(key=itemgetter(0), reverse=not is_reversed)
        texts.sort(key=itemgetter(0), reverse=is_reversed)
        return [*(thing for _, thing in numbers), *(thing for _, thing in texts), *rest]

    def finish(self, is_complete: bool) -> None:
        """Prints buffered output. Raises UsageError for a column that no table had, if all tables were seen."""
        for wanted in (*self.columns, self.sort.removeprefix("-")):
            if is_complete and wanted and wanted not in self.known:
                known = ", ".join(dict.fromkeys(filter(None, self.known.values())))
                if not known:
                    raise click.UsageError(
                        "--columns and --sort apply to text tables, which this output does not have",
                        self.command,
                    )
                parts = wanted.split(",")
                if len(parts) > 1 and wanted == self.sort.removeprefix("-"):
                    raise click.UsageError(f"--sort takes one column, not {wanted}", self.command)
                meant = did_you_mean(wanted, list(self.known)) or _elsewhere(wanted)
                meant = meant or f"columns: {shorten(known, 110, placeholder=' ...')}"
                raise click.UsageError(f"no column {wanted!r}; {meant}", self.command)
        click.echo(b"".join(self.held), nl=False)
        self.held.clear()


def _elsewhere(wanted: str) -> str:
    """The commands whose tables have a column of that name, or nearly; empty if none has."""
    if len(wanted) < _LONG:
        return ""
    having: dict[str, dict[str, None]] = {}
    for name in columns.commands():
        for column in (
            one for table in columns.tables(name).values() for one in table if one.title is not None
        ):
            for word in filter(None, (column.title, column.key)):
                having.setdefault(word, {})[f"`hlotext {' '.join(current([name]))}`"] = None
    near = slip_of(wanted, having)
    return f"{near[0]} is a column of {' and '.join(list(having[near[0]])[:_MOST_COMMANDS])}" if near else ""


_LONG = 5
"""Letters of a word that is near to few others."""
_MOST_COMMANDS = 2


def _place(wanted: str, titles: Sequence[Sequence[str]]) -> int | None:
    """The column of a title, else of a JSON field."""
    for position in range(max(map(len, titles), default=0)):
        for n, names in enumerate(titles):
            if wanted and wanted == names[position]:
                return n
    return None


def number_of(text: str) -> float | str:
    """Returns the number at the start of a text, scaled by its unit's prefix; the text itself if there is none."""
    exact = text.removeprefix("~")
    match = _NUMBER.match(exact)
    if match is None or not match[0].strip(",."):
        return text
    unit = exact[match.end() :].strip()
    scale = _SCALES.get(
        unit[:2] if unit[1:2] == "i" else unit[:1] if len(unit) > 1 or unit in "KMGTP" else "", 1.0
    )
    return float(match[0].replace(",", "")) * scale


def asked() -> TableOptions:
    """Returns the options of the running command."""
    ctx = click.get_current_context(silent=True)
    found: TableOptions = TableOptions() if ctx is None else ctx.meta.setdefault(_KEY, TableOptions())
    return found


def _columns(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value:
        asked().command = ctx
        asked().columns = tuple(part.strip() for part in value.split(",") if part.strip())
        if not asked().columns:
            raise click.UsageError(
                f"--columns takes names of columns, joined with commas, not {value!r}", ctx
            )


def _sort(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value:
        asked().command = ctx
        asked().sort = value.strip()


def columns_option(command: F) -> F:
    """Adds `--columns`, for a command whose rows have a fixed order."""
    return click.option(
        "--columns",
        metavar="NAME,...",
        expose_value=False,
        callback=_columns,
        help="Columns of text tables to show, by title or JSON field.",
    )(command)


def table_options(command: F) -> F:
    """Adds `--columns` and `--sort`."""
    return click.option(
        "--sort",
        "_sort_by",
        metavar="NAME",
        expose_value=False,
        callback=_sort,
        help="Sort text tables by this column; -NAME reverses.",
    )(columns_option(command))
