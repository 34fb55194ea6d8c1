"""One row for each text: what it is, where it came from, and whether it could be read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import hlotext as hlo
from hlotext.analysis import backend_of
from hlotext.dumps.texts import ModuleFile, compilation_beside
from hlotext.ir.nodes.module import Module
from hlotext.tables.rows.subject import Subject, Subjects
from hlotext.tables.schema import SCHEMA_VERSION
from hlotext.tables.table import Table, from_rows


def modules(subjects: Subjects) -> Table:
    """Builds the table `modules`."""
    return from_rows("modules", [_of(subject) for subject in subjects.each])


def _of(subject: Subject) -> dict[str, Any]:
    """The row of one module."""
    module = subject.module
    backend = backend_of(module) if module.computations else None
    digest, size = _text(module)
    row: dict[str, Any] = {
        "name": module.name,
        "sha256": digest,
        "text_bytes": size,
        "status": "ok",
        "backend": None if backend is None else backend.value,
        **subject.step,
        "is_scheduled": module.is_scheduled,
        "num_partitions": module.attributes.get("num_partitions", 1),
        "replica_count": module.attributes.get("replica_count", 1),
        "computations": len(module.computations),
        "instructions": len(subject.instructions),
        "entry": module.entry.name if module.computations else None,
        "peak_bytes": subject.peak_bytes,
        "least_seconds": subject.least_seconds,
        **subject.chip_columns,
    }
    return _row(subject.key, subject.path, subject.modified, subject.build, subject.version, row)


def failed(
    key: str,
    path: str,
    error: str,
    *,
    status: str = "unreadable",
    build: str | None = None,
    version: str | None = None,
    modified: float | None = None,
) -> Table:
    """Builds the row of `modules` for a file that cannot be read; `modified` is in seconds since 1970."""
    row = _row(key, path, modified, build, version, {"status": status, "error": error})
    return from_rows("modules", [row])


def _row(
    key: str,
    path: str,
    modified: float | None,
    build: str | None,
    version: str | None,
    row: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "module": key,
        "path": path,
        "modified": None if modified is None else round(modified * 1e6),
        "build": build,
        "version": version,
        "hlotext_version": hlo.__version__,
        "schema_version": SCHEMA_VERSION,
        **row,
    }


def _text(module: Module) -> tuple[str | None, int | None]:
    """The digest and size of a module's text as it was read, or as it prints since it was edited."""
    if module.is_modified:
        data = str(module).encode("utf-8", "surrogateescape")
    elif module.source is not None:
        data = module.source.text.encode("utf-8", "surrogateescape")
    else:
        return None, None
    return hashlib.sha256(data).hexdigest(), len(data)


def step_of(text: ModuleFile, *, reads_chip: bool = True) -> dict[str, Any]:
    """Returns the columns of `modules` for a file of a dump folder; empty for other files.

    All but the chip follow from file names; without `reads_chip` no file is opened, as in remote storage.
    """
    compilation = text.compilation or (compilation_beside(text.path) if reads_chip else None)
    if compilation is None:
        return {}
    chip = compilation.chip if reads_chip else None
    found: dict[str, Any] = {"chip": chip.name} if chip is not None else {}
    for step in compilation.steps:
        if step.file is text.file:
            found["stage"] = step.stage
            found["step"] = step.index
            found["pipeline"] = step.pipeline or None
            found["pass"] = step.name
            break
    return found
