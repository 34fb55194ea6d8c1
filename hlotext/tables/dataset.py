"""A dataset: a folder for each table, in it Parquet files of the same names, one for each part.

A part is what was made of one input, or of many, written together or compacted. Its file in `modules` is written last: a
part without it is not there, so that whoever is killed leaves nothing half. What a compacted part replaces stands in the
metadata of its file in `modules`, so that it takes the place of the others in one step, and they can be removed after it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

import attrs

from hlotext.syntax.source.inputs import InputError
from hlotext.tables.arrow import arrow_schema
from hlotext.tables.parquet import IN_THIS_THREAD, encoded, opened, pa
from hlotext.tables.schema import SCHEMA_VERSION, TABLES
from hlotext.tables.storage import Place, safe_name

MODULES = "modules"
"""The table whose file makes a part."""
COMPACT = "compact-"
"""Prefix of parts that hold several inputs."""
_END = ".parquet"
_REPLACES, _TABLES = b"hlotext.replaces", b"hlotext.tables"
_AT_ONCE, _MANY = 32 << 20, 128
"""Bytes and files that are fetched together."""
OK, UNREADABLE, FAILED = "ok", "unreadable", "failed"
"""State of an input: present; not a module, now and later; failed for another reason, to be retried."""


@attrs.frozen
class Done:
    """Record of one input in a dataset."""

    path: str
    build: str
    version: str
    """Changed with the input's content when it was read."""
    status: str
    error: str
    part: str
    tables: frozenset[str]
    """The tables that were asked for, also those without rows."""
    schema_version: int

    def covers(self, version: str, tables: Iterable[str]) -> bool:
        """True if the record is current: of this version of the input and of the schema, with these tables."""
        return (
            self.version == version
            and self.tables.issuperset(tables)
            and self.schema_version == SCHEMA_VERSION
        )


@attrs.frozen
class State:
    """Contents of a dataset at one time."""

    files: Mapping[str, Mapping[str, int]]
    """By table and part the bytes of each file, also of parts that are not there for readers."""
    parts: Mapping[str, tuple[Done, ...]]
    """The parts that are there, and the inputs of each, in the order of builds and paths."""
    replaced: frozenset[str]
    """Parts in whose place a compacted one stands, of which files are left."""
    done: Mapping[str, Done]
    """The inputs that are there, by key."""

    @property
    def all(self) -> frozenset[str]:
        """All parts with a file."""
        return frozenset(part for table in self.files.values() for part in table)

    def names(self, table: str) -> list[str]:
        """Returns the files of a table that readers see, relative to the dataset."""
        files = self.files.get(table, {})
        return [f"{table}/{part}{_END}" for part in self.parts if part in files]

    def files_of(self, part: str) -> list[str]:
        """Returns all files of a part, relative to the dataset."""
        return [f"{table}/{part}{_END}" for table in self.files if part in self.files[table]]

    def size(self, part: str) -> int:
        """Returns the bytes of a part, over all tables."""
        return sum(files.get(part, 0) for files in self.files.values())


@attrs.frozen
class Dataset:
    """Tables of many inputs at a path or URL."""

    place: Place

    @classmethod
    def of(cls, url: str) -> Dataset:
        """Returns the dataset at a path or URL, which need not exist yet. Raises InputError."""
        return cls(Place.of(url))

    def state(self) -> State:
        """Returns the current contents. Raises InputError if they cannot be read or were not written by hlotext."""
        files: dict[str, dict[str, int]] = {}
        for name, info in self.place.find(2).items():
            table, _, file = name.partition("/")
            if file.endswith(_END):
                files.setdefault(table, {})[file.removesuffix(_END)] = info.get("size") or 0
        found: dict[str, tuple[Done, ...]] = {}
        replaced: set[str] = set()
        names = {f"{MODULES}/{part}{_END}": part for part in files.get(MODULES, ())}
        for name, data in self.place.read_below(names).items():
            try:
                found[names[name]], others = _inputs_of(names[name], data)
            except Exception as error:  # of pyarrow, and of whatever stands in the file
                raise InputError(f"{self.place.url}/{name} is not an hlotext table: {error}") from None
            replaced.update(others)
        parts = {
            part: found[part]
            for part in sorted(found, key=lambda part: [(one.build, one.path) for one in found[part][:1]])
            if part not in replaced
        }
        done = {key_of(one.build, one.path): one for inputs in parts.values() for one in inputs}
        state = State(files, parts, frozenset(), done)
        return attrs.evolve(state, replaced=frozenset(replaced) & state.all)

    def put(self, part: str, tables: Mapping[str, pa.Table], wanted: Iterable[str]) -> int:
        """Writes a part of one input, atomically for readers, and returns its bytes. Empty tables get no file.

        `wanted` are the tables that were requested, including empty ones. Raises InputError.
        """
        size = 0
        for name, table in sorted(tables.items(), key=lambda item: item[0] == MODULES):
            if name == MODULES:
                table = table.replace_schema_metadata(commit_metadata(table.schema, wanted))
            if table.num_rows:
                data = encoded(table)
                self.place.below(f"{name}/{part}{_END}").write(data)
                size += len(data)
        return size

    def file(self, table: str, part: str) -> Place:
        """Returns the location of a part's file of a table."""
        return self.place.below(f"{table}/{part}{_END}")

    def files(self, state: State, table: str, parts: Iterable[str]) -> Iterator[IO[bytes]]:
        """Yields the files of a table, open; small ones are fetched several at a time. Raises InputError."""
        waiting: dict[str, int] = {}
        for part in parts:
            size = state.files[table][part]
            name = f"{table}/{part}{_END}"
            if waiting and (sum(waiting.values()) + size > _AT_ONCE or len(waiting) == _MANY):
                yield from self._fetched(waiting)
                waiting = {}
            if size > _AT_ONCE:
                with self.place.below(name).reading() as file:
                    yield file
            else:
                waiting[name] = size
        yield from self._fetched(waiting)

    def _fetched(self, names: Iterable[str]) -> Iterator[IO[bytes]]:
        found = self.place.read_below(names)
        for name in names:
            yield io.BytesIO(found[name])

    def remove(self, state: State, parts: Iterable[str]) -> None:
        """Removes parts, atomically for readers. Raises InputError."""
        names = [name for part in parts for name in state.files_of(part)]
        is_last = [name.startswith(f"{MODULES}/") for name in names]
        # Without their files in `modules` the parts are gone.
        for wanted in (True, False):
            self.place.remove_below(name for name, last in zip(names, is_last, strict=True) if last is wanted)

    def scan(self, state: State, table: str) -> Any:
        """Returns a `pyarrow.dataset.Dataset` of a table, which is read on demand."""
        import pyarrow.dataset as ds  # it brings pandas, which writing needs not

        names = state.names(table)
        schema = arrow_schema(TABLES[table])
        if not names:
            return ds.dataset(schema.empty_table())
        if self.place.is_local:
            return ds.dataset(
                [os.path.join(self.place.url, name) for name in names], schema, format="parquet"
            )
        paths = [f"{self.place.path}/{name}" for name in names]
        return ds.dataset(paths, schema, format="parquet", filesystem=self.place.system)


def is_dataset(url: str) -> bool:
    """True if a path or URL is a folder with tables. Raises InputError if it cannot be reached."""
    modules = Place.of(url).below(MODULES)
    return modules.is_folder() and any(name.endswith(_END) for name in modules.find(1))


def key_of(build: str, path: str) -> str:
    """Returns the key of one input, determined by build and path."""
    digest = hashlib.sha256(f"{build}\0{path}".encode("utf-8", "surrogateescape")).hexdigest()
    return f"{safe_name(posixpath.basename(path.replace(os.sep, '/')))}-{digest[:16]}"


def commit_metadata(
    schema: pa.Schema, tables: Iterable[str], replaces: Iterable[str] = ()
) -> dict[bytes, bytes]:
    """Returns the metadata of the file that commits a part: its tables, and the parts that it replaces."""
    return {
        **(schema.metadata or {}),
        _TABLES: json.dumps(sorted(tables)).encode(),
        _REPLACES: json.dumps(sorted(replaces)).encode(),
    }


def _inputs_of(part: str, data: bytes) -> tuple[tuple[Done, ...], list[str]]:
    """The inputs of a part, and the parts that it replaces, from its file of `modules`."""
    file = opened(io.BytesIO(data))
    metadata = file.schema_arrow.metadata
    tables = frozenset(json.loads(metadata[_TABLES]))
    columns = ["path", "build", "version", "status", "error", "schema_version"]
    rows = file.read(columns, **IN_THIS_THREAD).to_pylist()
    # An input of several modules has several rows.
    found = {
        (row["build"] or "", row["path"]): Done(
            row["path"],
            row["build"] or "",
            row["version"] or "",
            row["status"],
            row["error"] or "",
            part,
            tables,
            row["schema_version"],
        )
        for row in rows
    }
    return tuple(found.values()), json.loads(metadata[_REPLACES])
