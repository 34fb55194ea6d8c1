"""How long tables take: `python -m tests.bench.tables [FILE ...]`. Needs pyarrow.

For each file (without files the three largest of the corpus) the seconds of processor time that reading takes, and, as
multiples of that, each table and what follows: columns, Arrow, Parquet. Then how large Arrow and Parquet are beside the text.
At last many files in one process: what the basic tables take beside reading, module by module; and from files to the tables
of all together, beside both.
"""

from __future__ import annotations

import io
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet

import hlotext as hlo
from hlotext import tables
from hlotext.tables import encodings
from hlotext.tables.rows.subject import Subject
from tests.support import corpus_files, read_text

TABLES = tuple(name for name in tables.TABLES if name != "passes")


def parquet(table: tables.Table) -> int:
    """Bytes of a table as Parquet."""
    sink, arrow = io.BytesIO(), table.to_arrow()
    pyarrow.parquet.write_table(
        arrow, sink, compression="zstd", row_group_size=100_000, **encodings.options(arrow.schema)
    )
    return len(sink.getvalue())


def one(path: Path) -> None:
    """The ratios of one file."""
    text = read_text(path)
    started = time.process_time()
    modules = hlo.parse_all(text)
    reading = time.process_time() - started
    print(f"{path.name}: {len(text) / 1e6:.1f} MB, read in {reading:.2f} s")
    basic, whole = 0.0, 0
    for name in TABLES:
        rows = size = packed = 0
        columns = arrow = written = 0.0
        for module in modules:
            # A subject of its own, so that each table pays for all that it needs, but for facts that modules keep.
            started = time.process_time()
            table = tables.tables_of_subject(Subject(module, module.name), [name])[name]
            columns += time.process_time() - started
            started = time.process_time()
            size += table.to_arrow().nbytes
            arrow += time.process_time() - started
            started = time.process_time()
            packed += parquet(table)
            written += time.process_time() - started
            rows += table.num_rows
        basic += (columns + arrow) if tables.TABLES[name].is_basic else 0
        whole += packed if tables.TABLES[name].is_basic else 0
        print(
            f"  {name:<13}{rows:>9,} rows  columns {columns / reading:5.2f}  arrow {arrow / reading:5.2f}  parquet "
            f"{written / reading:5.2f} of reading; {size / len(text):6.1%} of the text, packed {packed / len(text):6.2%}"
        )
    print(f"  basic tables: {basic / reading:.2f} of reading ({basic:.2f} s), packed {whole / 1e6:.2f} MB")


def many(paths: list[Path]) -> None:
    """All files in one process, the basic tables."""
    spent: Counter[str] = Counter()
    rows = 0
    read: list[Path] = []
    hlo.clear_caches()
    for path in paths:
        text = read_text(path)
        started = time.process_time()
        try:
            modules = hlo.parse_all(text)
        except hlo.HloSyntaxError:
            continue
        spent["reading"] += time.process_time() - started  # type: ignore[assignment]
        read.append(path)
        for module in modules:
            started = time.process_time()
            made = tables.tables_of_subject(Subject(module, module.name), tables.BASIC)
            rows += made["instructions"].num_rows
            for table in made.values():
                table.to_arrow()
            spent["tables"] += time.process_time() - started  # type: ignore[assignment]
    hlo.clear_caches()
    started = time.process_time()
    for table in tables.tables_of(read).values():
        table.to_arrow()
    together = time.process_time() - started
    print(
        f"{len(paths)} files, {rows:,} instructions: the basic tables take {spent['tables'] / spent['reading']:.2f} of "
        f"reading ({spent['reading']:.2f} s and {spent['tables']:.2f} s); files to tables "
        f"together {together / (spent['reading'] + spent['tables']):.2f} of both"
    )


def main(arguments: list[str]) -> None:
    """Files and folders of the command line."""
    every = corpus_files()
    places = [Path(place) for place in arguments]
    files = [place for place in places if place.is_file()]
    for path in files if places else sorted(every, key=lambda path: -len(read_text(path)))[:3]:
        one(path)
    folders = [place for place in places if place.is_dir()]
    inside = [path for place in folders for path in sorted(place.rglob("*.txt*"))]
    if inside or not places:
        many(inside or every)


if __name__ == "__main__":
    main(sys.argv[1:])
