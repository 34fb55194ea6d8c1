"""How tables are written as Parquet."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import IO, Any

from hlotext.tables import encodings
from hlotext.tables.errors import MissingArrow

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingArrow from error

__all__ = ["IN_THIS_THREAD", "OPTIONS", "ROW_GROUP", "encoded", "pa", "pc", "pq", "write_batches"]

ROW_GROUP = 100_000
"""Rows that readers take or leave together: fewer cost more to open than they spare."""
OPTIONS: dict[str, Any] = {"compression": "zstd", "compression_level": 3}
IN_THIS_THREAD: dict[str, Any] = {"use_threads": False}
"""How small parts are read. A thread of Arrow's that still lets go of what Python gave it when the process ends aborts it."""


def encoded(table: pa.Table) -> memoryview:
    """A table as the bytes of a Parquet file."""
    sink = io.BytesIO()
    held = encodings.options(table.schema)
    pq.write_table(table.unify_dictionaries(), sink, row_group_size=ROW_GROUP, **OPTIONS, **held)
    return sink.getbuffer()


def write_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    """Writes rows as one Parquet file, in row groups that are full, without holding more than one of them."""
    with pq.ParquetWriter(sink, schema, **OPTIONS, **encodings.options(schema)) as writer:
        for group in _groups(batches):
            whole = pa.Table.from_batches(group).unify_dictionaries()
            writer.write_table(whole.replace_schema_metadata(schema.metadata), ROW_GROUP)


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        while batch.num_rows:
            taken = batch.slice(0, ROW_GROUP - count)
            waiting.append(taken)
            count += taken.num_rows
            batch = batch.slice(taken.num_rows)
            if count == ROW_GROUP:
                yield waiting
                waiting, count = [], 0
    if waiting:
        yield waiting
