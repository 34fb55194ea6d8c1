"""Changes by the passes of a dumped compilation: `hlotext dump timeline`."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import written_bytes
from hlotext.analysis.communication import KINDS
from hlotext.dumps import Compilation
from hlotext.dumps.causes import COPIES, causes
from hlotext.dumps.timeline import TimelineEntry
from hlotext.ir.nodes.instruction import Instruction
from hlotext.view.report.parts import Cell, Missing, PageTable, Section, columns_of
from hlotext.view.report.report_input import ReportInput

_MOST = 400
_MOST_ASKED = 40
"""Collectives and loops, and copies, of which it is told why they are there."""
_WHY = columns_of("report.passes_why")
_COLUMNS = columns_of("report.passes_rows")


def section(subject: ReportInput) -> Section | Missing:
    """Returns the section on the pass steps that changed the module. Raises InputError for a text that cannot be read."""
    compilation = subject.compilation
    if compilation is None:
        return Missing("passes", "Passes", "a single file does not show them; pass the dump folder")
    if len(compilation.steps) < 2:
        return Missing(
            "passes",
            "Passes",
            "the folder has only one text of the module; `--xla_dump_hlo_pass_re=.*` writes one per pass",
        )
    rows = list(compilation.timeline())
    busy = [row for row in rows if not row.is_quiet and row.step.index]
    cells = [_cells(row) for row in busy]
    has_times = any(cell[-1] is not None for cell in cells)
    columns = _COLUMNS if has_times else _COLUMNS[:-1]
    facts = [("steps dumped", f"{len(rows):,}, {len(busy):,} of them with changes")]
    if compilation.passes:
        total = len(compilation.passes)
        facts.append(
            (
                "passes run",
                f"{total:,}, {sum(run.changed for run in compilation.passes):,} of them with changes",
            )
        )
    notes = [str(note) for note in compilation.notes]
    if compilation.options is not None and compilation.options.dumps_every_change is False:
        notes.append("Only some passes were dumped, so a step may include changes by earlier passes.")
    return Section(
        "passes",
        "Passes",
        "Operations that each dumped step added, removed, changed or renamed, the growth of their results, and the time of "
        "the pass (`hlotext dump timeline`).",
        facts=facts,
        tables=[
            PageTable(
                "passes-steps",
                "Steps with changes",
                columns,
                [cell[: len(columns)] for cell in cells[:_MOST]],
                len(cells),
            ),
            *_why(compilation),
        ],
        notes=notes,
    )


def _why(compilation: Compilation) -> Iterator[PageTable]:
    """Why the collectives, loops and largest copies of the final HLO are there, as a chain each."""
    if compilation.after is None or not compilation.identity.shows_passes:
        return
    nodes = [i for i in compilation.after.instructions() if not _is_inside(i)]
    asked = [i.name for i in nodes if i.opcode.removesuffix("-start") in (*KINDS, "while")]
    copies = sorted((i for i in nodes if i.opcode in COPIES), key=lambda i: -written_bytes(i))
    names = [*asked[:_MOST_ASKED], *(i.name for i in copies[:_MOST_ASKED])]
    rows = [
        (cause.instruction.name, cause.cause, cause.chain, cause.confidence, cause.bytes)
        for cause in causes(compilation, names)
    ]
    if rows:
        total = len(asked) + len(copies)
        yield PageTable("passes-why", "Why it is there", _WHY, rows, total, is_open=False)


def _is_inside(instruction: Instruction) -> bool:
    home = instruction.computation
    return home is not None and home.is_fusion_body


def _cells(row: TimelineEntry) -> tuple[Cell, ...]:
    found = row.changes
    counts: tuple[Cell, ...] = (None,) * 5
    if found is not None:
        numbers = (len(found.added), len(found.removed), len(found.changed), len(found.renamed))
        counts = (*(number or None for number in numbers), found.bytes)
    return row.step.index, row.step.stage, row.step.name, *counts, row.milliseconds
