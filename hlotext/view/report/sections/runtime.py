"""Execution: thunks and command buffers (`hlotext thunks`), on TPU the operations in their order."""

from __future__ import annotations

from collections.abc import Sequence

from hlotext import thunks
from hlotext.thunks import tpu
from hlotext.thunks.compare import described
from hlotext.view.report.parts import Cell, Missing, PageColumn, PageTable, Section, columns_of, cut
from hlotext.view.report.report_input import ReportInput

_COUNTS = columns_of("report.runtime_counts")
_THUNKS = columns_of("report.runtime_thunks")
_RUNS = columns_of("report.runtime_runs")
_OPERATIONS = columns_of("report.runtime_operations")


def section(subject: ReportInput) -> Section | Missing:
    """Returns the section on thunks, predicted from the final HLO, and those listed by XLA if dumped. Raises
    ThunkError.
    """
    if subject.platform == "tpu":
        return _on_tpu(subject)
    options = subject.compilation.options if subject.compilation is not None else None
    tree = thunks.predict(subject.module, options, platform=subject.platform)
    after = tree.with_command_buffers()
    listed = subject.compilation.thunks if subject.compilation is not None else None
    counts = list(after.counts().items())
    facts = [("thunks", f"{sum(count for _, count in counts):,}, predicted from the final HLO")]
    if listed is not None:
        facts.append(("XLA's own list", f"{sum(listed.counts().values()):,} thunks"))
    launches = (
        {t.number: t.facts.get("launch") for t in listed.walk() if t.number} if listed is not None else {}
    )
    rows: list[tuple[Cell, ...]] = []
    total = 0
    for depth, label, thunk in after.with_depth():
        total += 1
        if len(rows) < 200:
            lead = "  " * depth + (f"{label}: " if label not in (None, "nested", "called") else "")
            launch = thunk.facts.get("launch") or launches.get(thunk.number or 0)
            text = _launch(launch) if isinstance(launch, thunks.Launch) else ""
            rows.append((thunk.number or None, lead + thunk.kind, thunk.name or "", text))
    columns: Sequence[PageColumn] = _THUNKS if any(row[3] for row in rows) else _THUNKS[:3]
    if not any(row[0] for row in rows):
        columns, rows = columns[1:], [row[1:] for row in rows]
    tables = [PageTable("thunks-kinds", "Thunks by kind", _COUNTS, counts)]
    if tree.platform == "gpu":
        tables.append(_runs(after))
        captured = sum(len(run.thunks) for run in after.ended if run.is_captured)
        facts.append(
            (
                "command buffers",
                f"{sum(run.is_captured for run in after.ended):,}, containing {captured:,} thunks",
            )
        )
    tables.append(
        PageTable(
            "thunks-order",
            "In execution order",
            columns,
            [row[: len(columns)] for row in rows],
            total,
            False,
        )
    )
    return Section(
        "runtime",
        "Thunks",
        "What the runtime executes, predicted from the final HLO (`hlotext thunks --command-buffers`).",
        facts=facts,
        tables=tables,
        notes=[note.message for note in after.notes],
    )


def _launch(launch: thunks.Launch) -> str:
    grid = "×".join(str(n) for n in launch.grid if n != 1) or "1"
    threads = "×".join(str(n) for n in launch.threads if n != 1) or "1"
    return f"{grid} blocks of {threads}"


def _runs(tree: thunks.Thunks) -> PageTable:
    rows = []
    for run in tree.ended:
        first, last = run.thunks[0], run.thunks[-1]
        rows.append(
            (
                f"{first.number}-{last.number}",
                len(run.thunks),
                (run.holder.name if run.holder is not None else "entry") or "",
                "yes" if run.is_captured else run.too_short.message if run.too_short else "no",
                described(run.ended_by) if run.ended_by is not None else "the end of the sequence",
                run.cause.message if run.cause is not None else "",
            )
        )
    return PageTable("thunks-runs", "Capturable runs, and what ended each", _RUNS, cut(rows), len(rows))


def _on_tpu(subject: ReportInput) -> Section:
    operations = tpu.operations(subject.module)
    counts: dict[str, int] = {}
    cycles: dict[str, int] = {}
    for one in operations:
        opcode = one.instruction.opcode
        counts[opcode] = counts.get(opcode, 0) + 1
        if one.cycles is not None:
            cycles[opcode] = cycles.get(opcode, 0) + one.cycles
    rows: list[tuple[Cell, ...]] = [(o, n, cycles.get(o)) for o, n in counts.items()]
    rows.sort(key=lambda row: (-cycles.get(str(row[0]), 0), -counts[str(row[0])], str(row[0])))
    columns = _OPERATIONS if cycles else _OPERATIONS[:2]
    return Section(
        "runtime",
        "Scheduled operations",
        "TPU programs have no thunks. Scheduled operations by opcode, without those inside fusions"
        f"{', and the cycles that the compiler estimates for one execution' if cycles else ''}; `hlotext thunks` lists them "
        "in order.",
        facts=[("operations", f"{len(operations):,}")],
        tables=[PageTable("tpu-operations", "By opcode", columns, [row[: len(columns)] for row in rows])],
    )
