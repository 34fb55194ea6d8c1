"""Many small parts to a few large ones: queries then open tens of files, where a farm wrote one for each input and table."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from typing import IO, Any

import attrs

from hlotext.tables.arrow import arrow_schema
from hlotext.tables.dataset import COMPACT, FAILED, MODULES, Dataset, State, commit_metadata, key_of
from hlotext.tables.parquet import IN_THIS_THREAD, opened, pa, pc, write_batches
from hlotext.tables.schema import SCHEMA_VERSION, TABLES

_SMALL = 64 << 20
"""Bytes of a compacted part below which it is compacted again with others."""
_LARGE = 512 << 20
"""Bytes of small parts that make one large one, about."""


@attrs.frozen
class Compacted:
    """Result of a compaction."""

    before: int
    """Parts that there were."""
    after: int


def compact(dataset: Dataset, *, least: int = 2) -> Compacted:
    """Merges small parts if there are at least `least` of them, then removes them.

    Readers always see each row once, since a new part replaces the old ones atomically. Only one process at a time may
    compact a dataset. Inputs that failed keep their own parts, since they are tried again. Raises InputError.
    """
    state = dataset.state()
    dataset.remove(state, state.replaced)
    before = len(state.parts)
    small = [part for part in state.parts if _is_small(state, part)]
    after = before
    if len(small) >= least:
        for group in _groups(state, small):
            if len(group) > 1:
                _join(dataset, state, group)
                after -= len(group) - 1
    return Compacted(before, after)


def rewrite(dataset: Dataset, state: State, part: str, without: Collection[str]) -> None:
    """Rewrites a part without the inputs with these keys, and removes the old one. Raises InputError."""
    if all(key_of(one.build, one.path) in without for one in state.parts[part]):
        dataset.remove(state, [part])
    else:
        _join(dataset, state, [part], without)


def _is_small(state: State, part: str) -> bool:
    inputs = state.parts[part]
    if any(one.status == FAILED or one.schema_version != SCHEMA_VERSION for one in inputs):
        return False
    return not part.startswith(COMPACT) or state.size(part) < _SMALL


def _groups(state: State, parts: Iterable[str]) -> Iterator[list[str]]:
    """Parts in their order, about as many together as make a large one, and only parts of the same tables."""
    kinds: dict[frozenset[str], list[str]] = {}
    for part in parts:
        kinds.setdefault(state.parts[part][0].tables, []).append(part)
    for same in kinds.values():
        group: list[str] = []
        size = 0
        for part in same:
            if group and size + state.size(part) > _LARGE:
                yield group
                group, size = [], 0
            group.append(part)
            size += state.size(part)
        yield group


def _join(dataset: Dataset, state: State, parts: list[str], without: Collection[str] = ()) -> None:
    """Writes one part with the rows of several, `modules` last, and removes these."""
    said = "\0".join([*parts, *(str(state.size(part)) for part in parts), *sorted(without)])
    name = COMPACT + hashlib.sha256(said.encode()).hexdigest()[:16]
    wanted = state.parts[parts[0]][0].tables
    left_out = _modules_of(dataset, state, parts, without) if without else frozenset()
    for table in sorted(wanted, key=lambda table: table == MODULES):
        files = [part for part in parts if part in state.files.get(table, {})]
        if not files:
            continue
        schema = arrow_schema(TABLES[table])
        if table == MODULES:
            schema = schema.with_metadata(commit_metadata(schema, wanted, parts))
        with dataset.file(table, name).writing() as sink:
            read = dataset.files(state, table, files)
            write_batches((b for file in read for b in _batches(file, schema, left_out)), schema, sink)
    dataset.remove(state, parts)


def _modules_of(
    dataset: Dataset, state: State, parts: Iterable[str], keys: Collection[str]
) -> frozenset[str]:
    """Values of the column `module` for some inputs."""
    found = set()
    for file in dataset.files(state, MODULES, parts):
        for row in opened(file).read(["module", "build", "path"], **IN_THIS_THREAD).to_pylist():
            if key_of(row["build"] or "", row["path"]) in keys:
                found.add(row["module"])
    return frozenset(found)


def _batches(file: IO[bytes], schema: Any, left_out: frozenset[str]) -> Iterator[Any]:
    """The rows of a file in the schema of today, without those of some modules."""
    source = opened(file)
    given = source.schema_arrow.names
    for batch in source.iter_batches(**IN_THIS_THREAD):
        if left_out:
            kept = pc.invert(pc.is_in(batch["module"].cast(pa.string()), pa.array(sorted(left_out))))
            batch = batch.filter(kept)
        columns = [
            batch[field.name].cast(field.type) if field.name in given else pa.nulls(len(batch), field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
