"""Writes tables as Parquet."""

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

__all__ = ["IN_THIS_THREAD", "OPTIONS", "ROW_GROUP", "encoded", "opened", "pa", "pc", "pq", "write_batches"]

ROW_GROUP = 100_000
"""Rows that readers take or leave together: fewer cost more to open than they spare."""
OPTIONS: dict[str, Any] = {"compression": "zstd", "compression_level": 3}
IN_THIS_THREAD: dict[str, Any] = {"use_threads": False}
"""Read options for `opened`."""


def opened(file: IO[bytes]) -> pq.ParquetFile:
    """Opens a Parquet file from a Python file object, to be read in this thread.

    Without prefetching, since a prefetched buffer that an Arrow thread frees while the interpreter exits aborts the
    process.
    """
    return pq.ParquetFile(file, pre_buffer=False)


def encoded(table: pa.Table) -> memoryview:
    """Returns a table as the bytes of a Parquet file."""
    sink = io.BytesIO()
    held = encodings.options(table.schema)
    pq.write_table(table.unify_dictionaries(), sink, row_group_size=ROW_GROUP, **OPTIONS, **held)
    return sink.getbuffer()


def write_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    """Writes record batches as one Parquet file with full row groups, holding at most one row group in memory."""
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
