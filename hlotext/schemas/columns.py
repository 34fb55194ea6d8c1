"""The columns of tables: one description for terminals, JSON and pages.

`tables/COMMAND.json` in this folder lists the columns of each table of a command, in order: a key alone is for JSON only,
else `[key, title, kind, options]`, with an empty key where JSON has no such field. A row has one typed, unformatted cell
for each column; `Shown` is a cell with a text that its value alone does not give. Of a table whose rows are objects the
keys are paths of attributes.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

Cell = Any
"""A string, number, truth value, list or None, as JSON has it, or a `Shown`."""


@attrs.frozen
class Shown:
    """A value with its own text for tables."""

    value: Any
    text: str


@attrs.frozen
class Column:
    """A column of a table."""

    key: str
    """Its key in JSON; empty if it is not in JSON."""
    title: str | None
    """Its heading; None if it is in JSON only."""
    kind: str
    """One of `WORDS` or `NUMBERS`; for JSON only, by the unit that its key ends with, or empty."""
    options: Mapping[str, Any]
    """Hints for renderers: `style`, `rank`, `least` of terminals; `order` (later columns), `unknown` (None
    is `?`), `some` (0 is empty), `optional` (left out where every cell is empty)."""

    @property
    def is_number(self) -> bool:
        """True if the column is aligned to the right."""
        return self.kind in NUMBERS

    def of(self, thing: Any) -> Cell:
        """Returns the cell of an object, at the path of attributes that is the column's key."""
        for name in self.key.split("."):
            thing = getattr(thing, name)
        return thing

    def text(self, cell: Cell) -> str:
        """Formats a cell as plain text."""
        if isinstance(cell, Shown):
            return cell.text
        if cell is None or cell == "":
            return "?" if cell is None and self.options.get("unknown") else ""
        if isinstance(cell, str):
            return cell
        if self.kind == "flag":
            return "yes" if cell else ""
        if self.kind == "list":
            return ", ".join(map(str, cell))
        if self.kind == "index":
            return "{" + ",".join(map(str, cell)) + "}"
        if not cell and self.options.get("some"):
            return ""
        return str(NUMBERS.get(self.kind, str)(cell))


WORDS = (
    "name",
    "operation",
    "line",
    "code",
    "shape",
    "place",
    "scope",
    "prose",
    "word",
    "text",
    "flag",
    "list",
    "index",
)
"""Kinds of texts, which say how they get shorter; the last four are as other columns of
their title."""


def _formatted(value: float, kind: str) -> str:
    """Text of a number as `hlotext.analysis` formats it: imported with numpy, which commands about opcodes do without."""
    from hlotext import analysis

    if kind == "bytes":
        return analysis.byte_text(int(value))
    texts = analysis.formatting
    return {"amount": texts.format_count, "seconds": texts.seconds, "times": texts.times}[kind](value)


NUMBERS: Mapping[str, Any] = {
    "number": str,
    "count": lambda value: f"{value:,}",
    "bytes": lambda value: _formatted(value, "bytes"),
    "amount": lambda value: _formatted(value, "amount"),
    "seconds": lambda value: _formatted(value, "seconds"),
    "share": lambda value: f"{100 * value:.1f}%",
    "percent": lambda value: f"{100 * value:.0f}%",
    "factor": lambda value: _formatted(value, "times") if value >= 1.005 else "",
    "milliseconds": lambda value: f"{value:,.1f}",
}
"""Kinds of numbers, with their plain text."""


_UNITS = {"bytes": "bytes", "seconds": "seconds", "flops": "amount"}
"""Kinds of what is shown in tables only where it is asked for, by the unit at the end of its key."""


def columns(table: str) -> tuple[Column, ...]:
    """Returns the columns of a table, which is named by command and name, as `time.transfers`. Raises KeyError if there
    is none.
    """
    command, _, name = table.partition(".")
    return tables(command)[name]


def commands() -> list[str]:
    """Returns the names of the commands that have tables."""
    return sorted(path.stem for path in (Path(__file__).parent / "tables").glob("*.json"))


@functools.cache
def tables(command: str) -> dict[str, tuple[Column, ...]]:
    """All tables of a command, by name."""
    path = Path(__file__).parent / "tables" / f"{command}.json"
    return {name: tuple(map(_column, rows)) for name, rows in json.loads(path.read_text("utf-8")).items()}


def _column(row: str | list[Any]) -> Column:
    if isinstance(row, str):
        return Column(row, None, next((kind for end, kind in _UNITS.items() if row.endswith(end)), ""), {})
    key, title, kind, *options = row
    return Column(key, title, kind, options[0] if options else {})


def record(described: Sequence[Column], row: Sequence[Cell]) -> dict[str, Any]:
    """Returns a row as a JSON object, without columns that are not in JSON."""
    return {
        column.key: cell.value if isinstance(cell, Shown) else cell
        for column, cell in zip(described, row, strict=True)
        if column.key
    }
