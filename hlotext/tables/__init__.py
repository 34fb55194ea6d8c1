"""Modules as tables for dataframes and SQL: instructions, operands, attributes, collectives, buffers, findings.

>>> from hlotext import tables
>>> found = tables.tables_of("dump/")                                # doctest: +SKIP
>>> found["instructions"].to_rows()[0]["opcode"]                     # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.tables import asked as asked
    from hlotext.tables import batch as batch
    from hlotext.tables import batch_inputs as batch_inputs
    from hlotext.tables import batch_processes as batch_processes
    from hlotext.tables import compaction as compaction
    from hlotext.tables import dataset as dataset
    from hlotext.tables import dataset_baseline as dataset_baseline
    from hlotext.tables import figures as figures
    from hlotext.tables import history as history
    from hlotext.tables import parquet as parquet
    from hlotext.tables import programs as programs
    from hlotext.tables import queries as queries
    from hlotext.tables import sql as sql
    from hlotext.tables.building import empty, key_of, subjects, tables_of, tables_of_subject
    from hlotext.tables.errors import MissingArrow, TableError
    from hlotext.tables.schema import BASIC, SCHEMA_VERSION, TABLES, Column, TableSchema
    from hlotext.tables.single import (
        attributes,
        buffers,
        collectives,
        costs,
        findings,
        instructions,
        measured,
        modules,
        operands,
        passes,
        thunks,
        times,
        values,
    )
    from hlotext.tables.table import Table, concatenated

__getattr__ = lazy_submodules(
    __name__,
    "asked",
    "compaction",
    "dataset",
    "batch",
    "batch_inputs",
    "batch_processes",
    "figures",
    "history",
    "dataset_baseline",
    "parquet",
    "programs",
    "queries",
    "sql",
    building=("empty", "key_of", "subjects", "tables_of", "tables_of_subject"),
    errors=("MissingArrow", "TableError"),
    schema=("BASIC", "SCHEMA_VERSION", "TABLES", "Column", "TableSchema"),
    single=(
        "attributes",
        "buffers",
        "collectives",
        "costs",
        "findings",
        "instructions",
        "measured",
        "modules",
        "operands",
        "passes",
        "thunks",
        "times",
        "values",
    ),
    table=("Table", "concatenated"),
)


__all__ = [
    "BASIC",
    "SCHEMA_VERSION",
    "TABLES",
    "Column",
    "MissingArrow",
    "Table",
    "TableError",
    "TableSchema",
    "attributes",
    "buffers",
    "collectives",
    "concatenated",
    "costs",
    "empty",
    "findings",
    "instructions",
    "key_of",
    "measured",
    "modules",
    "operands",
    "passes",
    "subjects",
    "tables_of",
    "tables_of_subject",
    "thunks",
    "times",
    "values",
]
