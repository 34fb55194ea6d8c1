"""Tables as Arrow's. The only file that imports pyarrow, with `parquet.py`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotext.tables.columns import AnyColumn, Array, Lists, Numbers, Texts, Words, offsets_of
from hlotext.tables.errors import MissingArrow, TableError
from hlotext.tables.schema import SCHEMA_VERSION, TABLES, TableSchema

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

_INT32, _BOOL, _STRING = _TYPES["int32"], _TYPES["bool"], _TYPES["text"]


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


@functools.cache
def _named(name: str) -> tuple[Any, tuple[tuple[str, Any], ...]]:
    """Arrow's schema of the table of a name, and the name and type of each column."""
    schema = arrow_schema(TABLES[name])
    return schema, tuple((field.name, field.type) for field in schema)


def to_arrow(table: Table) -> Any:
    """Implements `Table.to_arrow`."""
    schema, kinds = _named(table.name)
    try:
        arrays = [_array(table.columns[name], kind) for name, kind in kinds]
        return pa.Table.from_arrays(arrays, schema=schema)
    except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
        raise TableError(f"{table.name} cannot be an Arrow table: {error}") from error


def _array(column: AnyColumn, kind: Any) -> Any:
    """A column as Arrow's. From buffers: `pyarrow.array` imports pandas first, to know whether it is given some of its."""
    if isinstance(column, Words):
        nulls = column.codes < 0
        codes = _numbers(_fitting(column.codes, _INT32), nulls if nulls.any() else None)
        return pa.DictionaryArray.from_arrays(codes, _texts(column.texts))
    if isinstance(column, Texts):
        return _texts(column.texts)
    if isinstance(column, Lists):
        if column.offsets[-1] > _MOST:
            raise TableError("its lists have more than 2 ** 31 values")
        mask = None if column.is_null is None else _numbers(column.is_null, None, _BOOL)
        offsets = _numbers(column.offsets.astype(np.int32))
        return pa.ListArray.from_arrays(offsets, _array(column.values, kind.value_type), mask=mask)
    assert isinstance(column, Numbers)
    return _numbers(_fitting(column.values, kind), column.is_null, kind)


_MOST = np.iinfo(np.int32).max


def _fitting(values: Array, kind: Any) -> Array:
    """Numbers in as many bytes as a type of Arrow's has. Raises TableError if they do not fit."""
    dtype = _DTYPES[kind]
    if values.dtype == dtype:
        return values
    fitting = values.astype(dtype)
    if (fitting != values).any():
        raise TableError(f"its numbers are not {kind}")
    return fitting


_DTYPES = {
    kind: np.dtype(np.int64 if name == "timestamp" else name)
    for name, kind in _TYPES.items()
    if name in ("bool", "int16", "int32", "int64", "float64", "timestamp")
}


def _numbers(values: Array, is_null: Array | None = None, kind: Any = _INT32) -> Any:
    """Numbers or booleans of that type."""
    held = _bits(values) if values.dtype == np.bool_ else pa.py_buffer(np.ascontiguousarray(values))
    valid = None if is_null is None else _bits(~is_null)
    return pa.Array.from_buffers(kind, len(values), [valid, held])


def _bits(values: Array) -> Any:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def _texts(texts: Sequence[str | None]) -> Any:
    is_null = np.fromiter((one is None for one in texts), bool, len(texts)) if None in texts else None
    found: Sequence[str] = texts if is_null is None else [one or "" for one in texts]  # type: ignore[assignment]
    whole = "".join(found)
    data = whole.encode()
    sizes = map(len, found) if len(data) == len(whole) else (len(one.encode()) for one in found)
    offsets = offsets_of(np.fromiter(sizes, np.int64, len(found)))
    if len(data) > _MOST:
        raise TableError("its strings take more than 2 GiB")
    valid = None if is_null is None else _bits(~is_null)
    buffers = [valid, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(_STRING, len(found), buffers)
