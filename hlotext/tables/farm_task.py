"""One input to the tables of its modules: what a farm does with each, in whichever process and on whichever machine."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence

import attrs

import hlotext as hlo
from hlotext import dumps
from hlotext.syntax.source.inputs import InputError, is_binary, unpack
from hlotext.tables.building import empty, key_of, tables_of_subject
from hlotext.tables.dataset import FAILED, MODULES, OK, UNREADABLE, Dataset
from hlotext.tables.farm_inputs import Input
from hlotext.tables.places import is_url
from hlotext.tables.rows.modules import failed
from hlotext.tables.rows.passes import rows_of_passes
from hlotext.tables.rows.subject import Subject
from hlotext.tables.table import Table, concatenated

PASSES = "passes"
"""The one table that is of a whole folder."""


@attrs.frozen
class Status:
    """What became of one input."""

    input: Input
    status: str
    """`ok`, `unreadable` for what is no module that can be read, `failed` for what may succeed another time."""
    error: str = ""
    """One line; empty where all went well."""
    modules: int = 0
    size: int = 0
    """Bytes written."""


@attrs.frozen
class Task:
    """What a farm does with every input; it goes to other processes and machines as it is."""

    dataset: str
    """The path or URL of a dataset."""
    tables: tuple[str, ...]
    """Which tables, `modules` among them."""

    def __call__(self, input: Input) -> Status:
        return convert(input, self.dataset, self.tables)


def convert(input: Input, dataset: str, tables: Sequence[str]) -> Status:
    """Writes the tables of one input into a dataset, as one part that is named by the input. Never raises.

    The part is there whole or not at all; a text that cannot be read makes one that says so. Doing it again gives the same
    files once more, so whoever does not know whether it was done does it again.
    """
    try:
        data = input.fetch()
    except Exception as error:
        return refused(input, dataset, tables, FAILED, one_line(error))
    try:
        subjects = _subjects(input, data)
    except (InputError, hlo.HloSyntaxError, hlo.ProtoError) as error:
        return refused(input, dataset, tables, UNREADABLE, one_line(error))
    except Exception as error:  # a library that is not installed, memory, a defect
        return refused(input, dataset, tables, FAILED, _named(error))
    try:
        parts = [tables_of_subject(one, [name for name in tables if name != PASSES]) for one in subjects]
        found = {name: concatenated([part[name] for part in parts]).to_arrow() for name in parts[0]}
        if PASSES in tables:
            found[PASSES] = _passes(input, subjects[-1].key).to_arrow()
        size = Dataset.of(dataset).put(input.key, found, tables)
    except Exception as error:
        return refused(input, dataset, tables, FAILED, _named(error))
    return Status(input, OK, "", len(parts), size)


def refused(input: Input, dataset: str, tables: Sequence[str], status: str, error: str) -> Status:
    """Writes down why there are no tables of an input. Never raises: where that cannot be written, the run still says it."""
    row = failed(
        key_of(posixpath.basename(input.path), _place(input)),
        input.path,
        error,
        status=status,
        build=input.build,
        version=input.version,
        modified=input.modified,
    )
    try:
        Dataset.of(dataset).put(input.key, {MODULES: row.to_arrow()}, tables)
    except Exception as problem:
        error = f"{error}; {one_line(problem)}"
    return Status(input, status, error)


def _subjects(input: Input, data: bytes) -> list[Subject]:
    """The modules of an input. Raises InputError, HloSyntaxError, ProtoError."""
    if not input.member:
        data = unpack(data, input.path)
    if is_binary(data):
        modules = list(hlo.proto.read_modules(data, input.path))
    else:
        modules = hlo.parse_all(data, name=input.path)
    if not modules:
        raise InputError(f"{input.path} holds no module")
    return [
        Subject(
            module,
            key_of(module.name, _place(input), number),
            input.path,
            input.modified,
            build=input.build,
            version=input.version,
            step=dict(input.step),
        )
        for number, module in enumerate(modules)
    ]


def _passes(input: Input, key: str) -> Table:
    """The passes of the compilation that ended with an input; none where its folder is not on this machine."""
    if not (is_url(input.url) or input.member):
        for one in dumps.open(input.url).compilations:
            last = one.last or (one.steps[-1] if one.steps else None)
            if last is not None and os.path.abspath(last.file.path) == input.url:
                return rows_of_passes(one, key)
    return empty(PASSES)


def _place(input: Input) -> str:
    """What keys of modules are made of: the same path in another build is another module."""
    return f"{input.build}\0{input.path}"


def one_line(error: BaseException) -> str:
    """The first line of what an error says."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _named(error: BaseException) -> str:
    """The same with the error's type, for those that nobody foresaw."""
    return one_line(error) if isinstance(error, InputError) else f"{type(error).__name__}: {one_line(error)}"
