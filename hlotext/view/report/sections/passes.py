"""What the passes of a dumped compilation did: `hlotext dump timeline`."""

from __future__ import annotations

from hlotext.dumps.timeline import Row
from hlotext.view.report.parts import Cell, Column, Missing, Section, Table
from hlotext.view.report.subject import Subject

_MOST = 400
_COLUMNS = (
    Column("index", "step", "count"),
    Column("stage", "stage"),
    Column("pass", "pass", "code"),
    Column("added", "added", "count", is_bar=True),
    Column("removed", "gone", "count", is_bar=True),
    Column("changed", "changed", "count", is_bar=True),
    Column("renamed", "renamed", "count"),
    Column("bytes", "bytes of results", "bytes"),
    Column("milliseconds", "time", "milliseconds", is_bar=True),
)


def section(subject: Subject) -> Section | Missing:
    """The steps that changed something. Raises InputError for a text that cannot be read."""
    compilation = subject.compilation
    if compilation is None:
        return Missing("passes", "Passes", "a single file tells nothing of them: name the dump folder")
    if len(compilation.steps) < 2:
        return Missing(
            "passes",
            "Passes",
            "the folder holds one text of the module: `--xla_dump_hlo_pass_re=.*` writes one for each pass",
        )
    rows = list(compilation.timeline())
    busy = [row for row in rows if not row.is_quiet and row.step.index]
    cells = [_cells(row) for row in busy]
    has_times = any(cell[-1] is not None for cell in cells)
    columns = _COLUMNS if has_times else _COLUMNS[:-1]
    facts = [("steps dumped", f"{len(rows):,}, {len(busy):,} of them with a change")]
    if compilation.passes:
        total = len(compilation.passes)
        facts.append(
            (
                "passes run",
                f"{total:,}, {sum(run.changed for run in compilation.passes):,} of them with a change",
            )
        )
    notes = [str(note) for note in compilation.notes]
    if compilation.options is not None and compilation.options.dumps_every_change is False:
        notes.append("Only some passes were dumped, so a step may show the work of passes before it.")
    return Section(
        "passes",
        "Passes",
        "Operations that each dumped step added, took away, changed or renamed, what their results grew by, and how long "
        "the pass ran (`hlotext dump timeline`).",
        facts=facts,
        tables=[
            Table(
                "passes-steps",
                "Steps with a change",
                columns,
                [cell[: len(columns)] for cell in cells[:_MOST]],
                len(cells),
            )
        ],
        notes=notes,
    )


def _cells(row: Row) -> tuple[Cell, ...]:
    found = row.changes
    counts: tuple[Cell, ...] = (None,) * 5
    if found is not None:
        numbers = (len(found.added), len(found.removed), len(found.changed), len(found.renamed))
        counts = (*(number or None for number in numbers), found.bytes)
    return row.step.index, row.step.stage, row.step.name, *counts, row.milliseconds
