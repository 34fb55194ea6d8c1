"""One table of columns: as rows of Python, as an Arrow table, or as an Arrow stream that other libraries take."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.spelling import unknown
from hlotext.tables.columns import AnyColumn, Lists, Numbers, Texts, Words
from hlotext.tables.errors import TableError
from hlotext.tables.schema import TABLES, TableSchema

if TYPE_CHECKING:
    import pyarrow

_JOINED = {"word": Words, "text": Texts, "timestamp": Numbers}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@with_foreign_names
@attrs.frozen(eq=False, repr=False)
class Table:
    """A table stored by column.

    With the extra `tables`, pandas, Polars and DuckDB accept it directly (`pandas.DataFrame.from_arrow(table)`,
    `polars.DataFrame(table)`, `duckdb.sql("select * from table")`).
    """

    schema: TableSchema
    columns: Mapping[str, AnyColumn] = attrs.field()
    """The columns by name, in the schema's order."""

    @columns.validator
    def _fit(self, _: object, columns: Mapping[str, AnyColumn]) -> None:
        if tuple(columns) != self.schema.names:
            raise TableError(f"{self.schema.name} has the columns {', '.join(self.schema.names)}")
        if len({len(column) for column in columns.values()}) > 1:
            raise TableError(f"the columns of {self.schema.name} differ in length")

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.schema.name

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return self.schema.names

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())))

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, name: str) -> list[Any]:
        """Returns the values of a column as a list. Raises KeyError for an unknown column."""
        if name not in self.columns:
            if isinstance(name, int):
                raise TypeError(f"columns are taken by name; to_rows()[{name}] is a row")
            raise unknown("column", name, self.columns.keys)
        values: list[Any] = self.columns[name].to_list()
        kind = self.schema.columns[self.schema.names.index(name)].type
        if kind == "timestamp":
            return [None if one is None else _EPOCH + timedelta(microseconds=one) for one in values]
        return values

    def to_rows(self) -> list[dict[str, Any]]:
        """Converts the table to a list of rows, each a dictionary from column name to a plain Python value."""
        return list(self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = self.schema.names
        for values in zip(*(self[name] for name in names), strict=True):
            yield dict(zip(names, values, strict=True))

    def to_arrow(self) -> pyarrow.Table:
        """Converts to a pyarrow Table, with the unit and description of each column in its metadata.

        Raises MissingArrow (an ImportError) without the extra `tables`, and TableError for more than 2 GiB of text in a
        column.
        """
        # Imported with the first: it brings pyarrow, which is an extra.
        return importlib.import_module("hlotext.tables.arrow").to_arrow(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Exports the table as an Arrow stream (PyCapsule interface). Raises the same errors as `to_arrow`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Table {self.name}: {self.num_rows:,} rows of {len(self.columns)} columns>"


def concatenated(tables: Sequence[Table]) -> Table:
    """Concatenates tables of the same schema. Raises TableError if there are none, or if schemas differ."""
    if not tables or len({id(table.schema) for table in tables}) != 1:
        raise TableError("expected at least one table, all of one schema")
    if len(tables) == 1:
        return tables[0]
    schema = tables[0].schema
    columns: dict[str, AnyColumn] = {}
    for column in schema.columns:
        kind = Lists if column.type.startswith("list") else _JOINED.get(column.type, Numbers)
        columns[column.name] = kind.joined([table.columns[column.name] for table in tables])  # type: ignore[attr-defined]
    return Table(schema, columns)


_NUMPY = {"bool": np.bool_, "int16": np.int16, "int32": np.int32, "float64": np.float64}


def from_rows(name: str, rows: list[dict[str, Any]], build: str | None = None) -> Table:
    """Builds a table from rows as dicts; missing values are null. For small tables."""
    schema = TABLES[name]
    rows = [{"build": build, **row} for row in rows]
    columns: dict[str, AnyColumn] = {}
    for column in schema.columns:
        values = [row.get(column.name) for row in rows]
        if column.type.startswith("list"):
            columns[column.name] = Lists.of(values, None if column.type == "list<text>" else np.int64)
        elif column.type in ("word", "text"):
            columns[column.name] = (Words if column.type == "word" else Texts).of(values)
        else:
            columns[column.name] = Numbers.of(values, _NUMPY.get(column.type, np.int64))
    return Table(schema, columns)
