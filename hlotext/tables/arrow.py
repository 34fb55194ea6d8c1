"""Tables as Arrow's. The only file that imports pyarrow, with `parquet.py`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotext.tables.columns import AnyColumn, Lists, Numbers, Texts, Words
from hlotext.tables.errors import MissingArrow, TableError
from hlotext.tables.schema import SCHEMA_VERSION, TableSchema

if TYPE_CHECKING:
    from hlotext.tables.table import Table

try:
    import pyarrow as pa
except ImportError as error:
    raise MissingArrow from error

_TYPES = {
    "word": pa.dictionary(pa.int32(), pa.string()),
    "text": pa.string(),
    "bool": pa.bool_(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "list<int32>": pa.list_(pa.int32()),
    "list<int64>": pa.list_(pa.int64()),
    "list<text>": pa.list_(pa.string()),
}


@functools.cache
def arrow_schema(schema: TableSchema) -> Any:
    """Arrow's schema of a table; units and meanings are the fields' metadata."""
    fields = [
        pa.field(
            column.name,
            _TYPES[column.type],
            column.is_nullable,
            {"doc": column.doc, **({"unit": column.unit} if column.unit else {})},
        )
        for column in schema.columns
    ]
    return pa.schema(
        fields,
        {"hlotext.table": schema.name, "hlotext.schema_version": str(SCHEMA_VERSION), "doc": schema.doc},
    )


def to_arrow(table: Table) -> Any:
    """See `Table.to_arrow`."""
    schema = arrow_schema(table.schema)
    try:
        arrays = [_array(table.columns[field.name], field.type) for field in schema]
        return pa.Table.from_arrays(arrays, schema=schema)
    except (pa.ArrowException, TypeError) as error:
        raise TableError(f"{table.name} cannot be an Arrow table: {error}") from error


def _array(column: AnyColumn, kind: Any) -> Any:
    if isinstance(column, Words):
        nulls = column.codes < 0
        codes = pa.array(column.codes, pa.int32(), mask=nulls if nulls.any() else None)
        return pa.DictionaryArray.from_arrays(codes, pa.array(column.texts, pa.string()))
    if isinstance(column, Texts):
        return pa.array(column.texts, pa.string())
    if isinstance(column, Lists):
        offsets = pa.array(column.offsets.astype(np.int32), pa.int32())
        mask = None if column.is_null is None else pa.array(column.is_null)
        if column.offsets[-1] > np.iinfo(np.int32).max:
            raise TableError("its lists hold more than 2 ** 31 values")
        return pa.ListArray.from_arrays(offsets, _array(column.values, kind.value_type), mask=mask)
    assert isinstance(column, Numbers)
    array = pa.array(column.values, mask=column.is_null)
    return array if array.type == kind else array.cast(kind)
