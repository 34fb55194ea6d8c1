"""The steps of a dump folder's compilations: what each pass changed, and how long it took."""

from __future__ import annotations

from hlotext import dumps
from hlotext.tables.table import Table, from_rows


def rows_of_passes(compilation: dumps.Compilation, key: str, build: str | None = None) -> Table:
    """Builds the table `passes` of one compilation, whose last text has this key. Raises InputError."""
    rows = []
    for row in compilation.timeline():
        step, changes = row.step, row.changes
        rows.append(
            {
                "module": key,
                "compilation": compilation.name,
                "number": compilation.number,
                "step": step.index,
                "stage": step.stage,
                "pipeline": step.pipeline or None,
                "pass": step.name,
                "path": step.path,
                "milliseconds": row.milliseconds,
                "added": None if changes is None else len(changes.added),
                "removed": None if changes is None else len(changes.removed),
                "changed": None if changes is None else len(changes.changed),
                "renamed": None if changes is None else len(changes.renamed),
                "bytes": None if changes is None else changes.bytes,
                "note": None if row.note is None else row.note.message,
            }
        )
    return from_rows("passes", rows, build)
