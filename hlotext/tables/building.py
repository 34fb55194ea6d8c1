"""From modules, files and dump folders to tables."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import hlotext as hlo
from hlotext import dumps
from hlotext.dumps import Compilation, ModuleFile, module_texts
from hlotext.dumps.files import module_name
from hlotext.dumps.storage import is_archive
from hlotext.dumps.texts import Which
from hlotext.ir import gc_control
from hlotext.ir.nodes.module import release
from hlotext.ir.spelling import unknown
from hlotext.proto import TracedModule
from hlotext.syntax.source.inputs import read_data
from hlotext.tables import schema
from hlotext.tables.rows.modules import step_of
from hlotext.tables.rows.passes import rows_of_passes
from hlotext.tables.rows.subject import Subject, Subjects
from hlotext.tables.table import Table, concatenated, from_rows
from hlotext.thunks import with_kernels_named

Place = str | os.PathLike[str]
_BUILDERS = {
    "modules": "modules",
    "instructions": "instructions",
    "operands": "instructions",
    "attributes": "attributes",
    "collectives": "collectives",
    "buffers": "memory",
    "values": "memory",
    "thunks": "thunks",
    "costs": "costs",
    "measured": "measured",
    "times": "times",
    "findings": "findings",
}
"""The file of `tables/rows` that makes each table, by a function of the table's name."""
_TOGETHER = frozenset({"modules", "instructions", "operands", "attributes"})
"""Tables of which the rows of many modules are made together."""
MOST_TOGETHER = 20_000
"""Instructions of modules whose rows are made together, about: a few megabytes of text."""


def tables_of(
    source: hlo.Module | Place | Iterable[hlo.Module | Place],
    tables: str | Sequence[str] | None = None,
    *,
    key: str | None = None,
    which: Which = "last",
) -> dict[str, Table]:
    """Creates the tables of a module, a file, a dump folder, or several of these, by name.

    Args:
        source: The modules, files or folders.
        tables: Table names, or `all`. None (the default) creates the basic tables (`schema.BASIC`), which take about as
            long as parsing.
        key: Value of the column `module`, for a single module. None (the default) uses the module's name. For files, it
            is followed by eight hex digits of a hash of the path (`jit_step@0f3a9c1b`), so that modules from different
            files stay distinct.
        which: Steps to use from a folder, as in `dumps.module_texts`.

    Raises:
        TableError: A table name is unknown.
        InputError: A file cannot be read.
        HloSyntaxError: An input is not valid HLO.
    """
    wanted = schema.chosen(tables if tables is None or isinstance(tables, str) else tuple(tables))
    parts: dict[str, list[Table]] = {name: [] for name in wanted}
    for several in batches(subjects(source, key=key, which=which)):
        for name, table in tables_of_subjects(several, wanted).items():
            parts[name].append(table)
        dispose(several)
    if "passes" in parts:
        parts["passes"] = [passes(one) for one in _compilations(source)]
    return _Tables({name: concatenated(found) if found else empty(name) for name, found in parts.items()})


class _Tables(dict[str, Table]):
    """Tables by name; of a name that is not there similar ones are suggested."""

    def __missing__(self, name: str) -> Table:
        raise unknown("table", name, self.keys)

    def __getattr__(self, name: str) -> NoReturn:
        use = f'; use ["{name}"]' if name in self else ""
        raise AttributeError(f"tables are items, not properties{use}", name=None, obj=None)


def passes(compilation: Compilation) -> Table:
    """Returns the table `passes` of a compilation of a dump folder. Raises InputError if a dumped text cannot be read."""
    steps = compilation.steps
    if not steps:
        return empty("passes")
    last = (compilation.last or steps[-1]).file
    name = module_name(last.text()) or compilation.name
    return rows_of_passes(compilation, key_of(name, ModuleFile(last.path, last).label))


def _compilations(source: hlo.Module | Place | Iterable[hlo.Module | Place]) -> Iterator[Compilation]:
    """The compilations of the dump folders among what is given."""
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if path != "-" and (os.path.isdir(path) or is_archive(path)):
            yield from dumps.open(path).compilations
    elif not isinstance(source, hlo.Module):
        for one in source:
            yield from _compilations(one)


def tables_of_subject(subject: Subject, names: Sequence[str]) -> dict[str, Table]:
    """Creates tables of one module, by name.

    Raises KeyError for an unknown name, and HloSyntaxError if the module is read lazily and is not valid HLO.
    """
    return tables_of_subjects((subject,), names)


def tables_of_subjects(several: Sequence[Subject], names: Sequence[str]) -> dict[str, Table]:
    """Returns the tables of several modules, with their rows concatenated."""
    made: dict[str, Table] = {}
    with gc_control.gc_paused(collect_first=False):  # columns are no cycles
        together = Subjects(several)
        # `modules` last, which says what the others have found out.
        for name in sorted(names, key="modules".__eq__):
            if name in _TOGETHER:
                made[name] = _builder(name)(together)
            elif name in _BUILDERS and several:
                build = _builder(name)
                made[name] = concatenated([build(one) for one in several])
    return {name: made.get(name) or empty(name) for name in names}


def batches(every: Iterable[Subject]) -> Iterator[list[Subject]]:
    """Yields groups of subjects whose rows are built together, each of about `MOST_TOGETHER` instructions."""
    waiting: list[Subject] = []
    weight = 0
    for one in every:
        waiting.append(one)
        weight += one.weight
        if weight >= MOST_TOGETHER:
            yield waiting
            waiting, weight = [], 0
    if waiting:
        yield waiting


def dispose(several: Iterable[Subject]) -> None:
    """Frees the memory of modules that were read only for their tables."""
    for one in several:
        if one.is_ours:
            release(one.module)


def table(name: str, source: hlo.Module | Place | Iterable[hlo.Module | Place]) -> Table:
    """Returns one table of a module, a file or a folder. Raises the same errors as `tables_of`."""
    return tables_of(source, (name,))[name]


def empty(name: str) -> Table:
    """Creates a table without rows, with the schema of the table `name`. Raises KeyError if there is no such table."""
    return from_rows(name, [])


def subjects(
    source: hlo.Module | Place | Iterable[hlo.Module | Place],
    *,
    key: str | None = None,
    which: Which = "last",
) -> Iterator[Subject]:
    """Yields the modules of a source as they are read. Arguments and errors are those of `tables_of`."""
    if isinstance(source, hlo.Module):
        yield Subject(source, key or source.name)
    elif isinstance(source, str | os.PathLike):
        for text in module_texts([source], which):
            yield from of_text(text, key)
    else:
        for one in source:
            yield from subjects(one, which=which)


def of_text(text: ModuleFile, key: str | None = None) -> Iterator[Subject]:
    """Yields the modules of a file. Raises InputError or HloSyntaxError if it cannot be read."""
    path = text.label
    modified = None
    if text.real_path is not None:
        try:
            modified = os.stat(text.real_path).st_mtime
        except OSError:
            modified = None
    step = step_of(text)
    for number, (module, traced) in enumerate(_modules(text)):
        own = key_of(module.name, path, number) if key is None else key
        yield Subject(module, own, path, modified, step=step, traced=traced, is_ours=True)


def _modules(text: ModuleFile) -> Iterable[tuple[hlo.Module, TracedModule | None]]:
    if text.file is not None and text.real_path is None:
        return ((one, None) for one in hlo.parse_all(text.file.read(), name=text.label))
    place = text.path if text.real_path is None else text.real_path
    if not place.endswith(".pb"):
        return ((one, None) for one in hlo.load_all(place))
    data, name = read_data(place)
    return modules_of_proto(data, name)


def modules_of_proto(data: bytes | str, name: str) -> Iterator[tuple[hlo.Module, TracedModule | None]]:
    """Yields the modules of a proto, those of a profiler's trace with their measured times, others with None.

    Raises ProtoError if the proto is invalid, and MissingProtobuf without protobuf.
    """
    if isinstance(data, bytes) and hlo.proto.kind_of(data, name) == hlo.proto.TRACE:
        yield from ((one.module, one) for one in with_kernels_named(hlo.proto.read_trace(data, name)).modules)
    else:
        yield from ((one, None) for one in hlo.proto.read_modules(data, name))


def key_of(name: str, path: str, number: int = 0) -> str:
    """Returns the key of the module at position `number` in a file, such as `jit_step@0f3a9c1b`.

    The digits are a hash of the path and the position.
    """
    place = f"{path}#{number}".encode("utf-8", "surrogateescape")
    return f"{name}@{hashlib.sha256(place).hexdigest()[:8]}"


def _builder(name: str) -> Callable[[Any], Table]:
    found: Callable[[Any], Table] = getattr(
        importlib.import_module(f"hlotext.tables.rows.{_BUILDERS[name]}"), name
    )
    return found
