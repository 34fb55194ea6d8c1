"""One input to the tables of its modules: what a farm does with each, in whichever process and on whichever machine."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import attrs

import hlotext as hlo
from hlotext import dumps
from hlotext.findings.errors import brief
from hlotext.ir import gc_control
from hlotext.semantics.assumed_entry import missing_entry
from hlotext.syntax.source.inputs import InputError, is_binary, is_foreign, unpack
from hlotext.tables.batch_inputs import Input
from hlotext.tables.building import (
    MOST_TOGETHER,
    dispose,
    empty,
    key_of,
    modules_of_proto,
    tables_of_subjects,
)
from hlotext.tables.dataset import COMPACT, FAILED, MODULES, OK, UNREADABLE, Dataset
from hlotext.tables.parquet import pa
from hlotext.tables.rows.modules import failed
from hlotext.tables.rows.passes import rows_of_passes
from hlotext.tables.rows.subject import Subject
from hlotext.tables.storage import is_url
from hlotext.tables.table import Table, concatenated

PASSES = "passes"
"""The one table that is of a whole folder."""


@attrs.frozen
class Status:
    """Outcome of one input."""

    input: Input
    status: str
    """`ok`, `unreadable` for what is no module that can be read, `failed` for what may succeed another time."""
    error: str = ""
    """One line; empty if all went well."""
    modules: int = 0
    size: int = 0
    """Bytes written; of inputs that were written together the first has those of all."""


@attrs.frozen
class Task:
    """The work on each input, which can be sent to other processes and machines."""

    dataset: str
    """The path or URL of a dataset."""
    tables: tuple[str, ...]
    """Names of the tables, `modules` among them."""

    def __call__(self, input: Input) -> Status:
        return convert(input, self.dataset, self.tables)

    def together(self, inputs: Sequence[Input]) -> list[Status]:
        """Processes several inputs as one part and returns the status of each."""
        return convert_together(inputs, self.dataset, self.tables)


def convert(input: Input, dataset: str, tables: Sequence[str]) -> Status:
    """Writes the tables of one input into a dataset, as a part of its own. Never raises an exception.

    The part is written atomically; an input that cannot be read gives a part that states this. The result is
    deterministic, so in doubt the call can be repeated.
    """
    try:
        subjects = _read(input)
    except _RefusalError as why:
        return refused(input, dataset, tables, why.status, why.error)
    try:
        found = _tables([(input, subjects)], tables)
        size = Dataset.of(dataset).put(input.key, found, tables)
    except Exception as error:
        return refused(input, dataset, tables, FAILED, _named(error))
    finally:
        dispose(subjects)
    return Status(input, OK, "", len(subjects), size)


def convert_together(inputs: Sequence[Input], dataset: str, tables: Sequence[str]) -> list[Status]:
    """Writes the tables of several inputs as one part, and those that fail as parts of their own. Never raises an
    exception.

    For small inputs this is faster than a file for each input and table, and saves merging them later.
    """
    if len(inputs) == 1:
        return [convert(inputs[0], dataset, tables)]
    with gc_control.gc_paused():  # modules are taken apart behind their tables
        return _Together(dataset, tables).convert(inputs)


@attrs.define
class _Together:
    """One part in the making."""

    dataset: str
    tables: Sequence[str]
    parts: dict[str, list[Any]] = attrs.field(factory=lambda: defaultdict(list))
    """Arrow's tables, by the table's name."""
    done: dict[Input, Status] = attrs.field(factory=dict)
    """Status of inputs that are in these or that failed; the others are repeated one by one."""
    waiting: list[tuple[Input, list[Subject]]] = attrs.field(factory=list)
    """Inputs that were read and have no tables yet."""

    def convert(self, inputs: Sequence[Input]) -> list[Status]:
        weight = 0
        for input in inputs:
            try:
                subjects = _read(input)
            except _RefusalError as why:
                self._refuse(input, why)
                continue
            self.waiting.append((input, subjects))
            weight += sum(one.weight for one in subjects)
            if weight >= MOST_TOGETHER:
                self._make()
                weight = 0
        self._make()
        self._write(inputs)
        return [
            self.done[input] if input in self.done else convert(input, self.dataset, self.tables)
            for input in inputs
        ]

    def _refuse(self, input: Input, why: _RefusalError) -> None:
        if why.status == FAILED:  # which is tried again, so it has a part of its own
            self.done[input] = refused(input, self.dataset, self.tables, why.status, why.error)
        else:
            self.parts[MODULES].append(_row_of_refused(input, why.status, why.error).to_arrow())
            self.done[input] = Status(input, why.status, why.error)

    def _make(self) -> None:
        """The tables of what is waiting; where that fails, whatever it is, the inputs are done one by one."""
        subjects = [one for _, several in self.waiting for one in several]
        if not subjects:
            return
        try:
            found = _tables(self.waiting, self.tables)
        except Exception:
            found = {}
        finally:
            dispose(subjects)
        for name, table in found.items():
            self.parts[name].append(table)
        if found:
            self.done.update((input, Status(input, OK, "", len(several))) for input, several in self.waiting)
        self.waiting.clear()

    def _write(self, inputs: Sequence[Input]) -> None:
        held = [input for input in inputs if input in self.done and self.done[input].status != FAILED]
        if not held:
            return
        try:
            whole = {name: pa.concat_tables(parts) for name, parts in self.parts.items()}
            size = Dataset.of(self.dataset).put(name_together(inputs), whole, self.tables)
        except Exception:
            for input in held:
                del self.done[input]
        else:
            self.done[held[0]] = attrs.evolve(self.done[held[0]], size=size)


def name_together(inputs: Sequence[Input]) -> str:
    """Returns the name of the part of several inputs, from which the first input's key can be recovered."""
    digest = hashlib.sha256("\0".join(input.key for input in inputs).encode()).hexdigest()
    return f"{COMPACT}{inputs[0].key}-{digest[:8]}"


def first_of_together(part: str) -> str:
    """Returns the key of the first input of a part with such a name."""
    return part.removeprefix(COMPACT).rpartition("-")[0]


@attrs.frozen
class _RefusalError(Exception):
    """Why there are no tables of an input."""

    status: str
    error: str


def _read(input: Input) -> list[Subject]:
    """The modules of an input. Raises _RefusalError."""
    try:
        data = input.fetch()
    except Exception as error:
        raise _RefusalError(FAILED, brief(error)) from None
    try:
        return _subjects(input, data)
    except (InputError, hlo.HloSyntaxError, hlo.ProtoError) as error:
        raise _RefusalError(UNREADABLE, brief(error)) from None
    except Exception as error:  # a library that is not installed, memory, a defect
        raise _RefusalError(FAILED, _named(error)) from None


def _tables(read: Sequence[tuple[Input, list[Subject]]], tables: Sequence[str]) -> dict[str, Any]:
    """Arrow's tables of inputs and their modules."""
    names = [name for name in tables if name != PASSES]
    subjects = [one for _, several in read for one in several]
    found = {name: table.to_arrow() for name, table in tables_of_subjects(subjects, names).items()}
    if PASSES in tables:
        found[PASSES] = concatenated([_passes(input, several[-1].key) for input, several in read]).to_arrow()
    return found


def refused(input: Input, dataset: str, tables: Sequence[str], status: str, error: str) -> Status:
    """Records why an input has no tables, and returns its status. Never raises an exception: failure to write is in the
    status.
    """
    row = _row_of_refused(input, status, error)
    try:
        Dataset.of(dataset).put(input.key, {MODULES: row.to_arrow()}, tables)
    except Exception as problem:
        error = f"{error}; {brief(problem)}"
    return Status(input, status, error)


def died(task: Task, input: Input, how: str) -> Status:
    """Records that the process working on an input died, and returns its status. Never raises an exception."""
    return refused(input, task.dataset, task.tables, FAILED, f"the process working on it {how}")


def _row_of_refused(input: Input, status: str, error: str) -> Table:
    return failed(
        key_of(posixpath.basename(input.path), _place(input)),
        input.path,
        error,
        status=status,
        build=input.build,
        version=input.version,
        modified=input.modified,
    )


def _subjects(input: Input, data: bytes) -> list[Subject]:
    """The modules of an input. Raises InputError, HloSyntaxError, ProtoError."""
    if not input.member:
        data = unpack(data, input.path)
    if is_foreign(data):
        data = hlo.proto.converted(data, input.path)
    if is_binary(data):
        modules = list(modules_of_proto(data, input.path))
    else:
        modules = [(one, None) for one in hlo.parse_all(data, name=input.path)]
    if not modules:
        raise InputError(f"{input.path} contains no module")
    for module, _ in modules:
        if missing := missing_entry(module):
            raise InputError(f"{input.path}: {missing}")
    return [
        Subject(
            module,
            key_of(module.name, _place(input), number),
            input.path,
            input.modified,
            build=input.build,
            version=input.version,
            step=dict(input.step),
            traced=traced,
            is_ours=True,
        )
        for number, (module, traced) in enumerate(modules)
    ]


def _passes(input: Input, key: str) -> Table:
    """The passes of the compilation that ended with an input; none where its folder is not on this machine."""
    if not (is_url(input.url) or input.member):
        for one in dumps.open(input.url).compilations:
            last = one.last or (one.steps[-1] if one.steps else None)
            if last is not None and os.path.abspath(last.file.path) == input.url:
                return rows_of_passes(one, key, input.build)
    return empty(PASSES)


def _place(input: Input) -> str:
    """Prefix of module keys: the same path in another build is another module."""
    return f"{input.build}\0{input.path}"


def _named(error: BaseException) -> str:
    """The same with the error's type, for those that nobody foresaw."""
    return brief(error) if isinstance(error, InputError) else f"{type(error).__name__}: {brief(error)}"
