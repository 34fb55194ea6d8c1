"""Schema of the tables: `schema.toml` has a row for each column, with its type, unit and description.

The version goes up when a column goes, changes its type or its meaning; columns that come do not change it. It stands in the
metadata of every Arrow schema (`hlotext.schema_version`) and in the table `modules`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from hlotext.ir.spelling import did_you_mean
from hlotext.tables.errors import TableError

SCHEMA_VERSION = 1

TYPES = (
    "word", "text", "bool", "int16", "int32", "int64", "float64", "timestamp",
    "list<int32>", "list<int64>", "list<text>",
)  # fmt: skip
"""Arrow's types: `word` is a string that is dictionary-encoded (int32 indices), `text` one that is not, `timestamp` counts
microseconds in UTC."""


@attrs.frozen
class Column:
    """Name, type and unit of a column of a table."""

    name: str
    type: str
    """One of `TYPES`."""
    unit: str
    """`bytes`, `operations`, etc.; empty for columns that are not quantities."""
    doc: str
    is_nullable: bool


@attrs.frozen
class TableSchema:
    """Name and columns of a table."""

    name: str
    doc: str
    """Description of a row."""
    columns: tuple[Column, ...]
    is_basic: bool
    """True if built by default. All basic tables together take about as long as parsing."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)


def _read(name: str, table: dict[str, Any]) -> TableSchema:
    columns = tuple(
        Column(column, kind.removesuffix("?"), unit, doc, kind.endswith("?"))
        for column, kind, unit, doc in table["columns"]
    )
    return TableSchema(name, table["doc"], columns, table.get("basic", False))


TABLES: dict[str, TableSchema] = {
    name: _read(name, table)
    for name, table in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
"""Every table by its name."""

BASIC: tuple[str, ...] = tuple(name for name, table in TABLES.items() if table.is_basic)
"""The tables that are made unless others are asked for."""


def chosen(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Returns names of tables in the schema's order, from a list, text such as `a,b`, `all`, or None for the basic
    ones.

    `basic` stands for all basic ones. Raises TableError for an unknown name.
    """
    given = ("basic",) if names is None else names.split(",") if isinstance(names, str) else names
    wanted: set[str] = set()
    for one in map(str.strip, given):
        if one not in TABLES and one not in ("all", "basic"):
            meant = did_you_mean(one, list(TABLES)) or f"there are {', '.join(TABLES)}; all, basic"
            raise TableError(f"no table {one!r}; {meant}")
        wanted.update(TABLES if one == "all" else BASIC if one == "basic" else (one,))
    return tuple(name for name in TABLES if name in wanted)
