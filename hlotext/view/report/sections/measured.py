"""Measured times of a profiler's trace beside the least times: `hlotext show TRACE`, `hlotext cost --chip`."""

from __future__ import annotations

import attrs

from hlotext.analysis import source_locations
from hlotext.analysis.formatting import pluralize, seconds
from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory.usage import line_text
from hlotext.proto.runs import Runs, runs_of
from hlotext.proto.traces import OpTime, TracedModule
from hlotext.view.report.parts import Cell, Missing, PageTable, Section, columns_of, cut
from hlotext.view.report.report_input import ReportInput

_COLUMNS = columns_of("report.measured_rows")


@attrs.frozen
class Row:
    """Measured time of one operation: seconds per run on the slowest device."""

    instruction: Instruction
    time: OpTime
    seconds: float
    least: float | None
    """The least time of one run; None if the chip, or its rate, is not known."""

    @property
    def ratio(self) -> float | None:
        """Measured time divided by the minimum time; None if that is unknown or 0."""
        return self.seconds / self.least if self.least else None


def joined(subject: ReportInput, traced: TracedModule) -> tuple[list[Row], Runs | None]:
    """Returns the operations of the module in the trace, by decreasing ratio to their minimum time, and the runs if
    known.

    Operations without minimum time come last.
    """
    estimate = subject.estimate
    least: dict[Instruction, float] = {}
    executions: dict[str, int] = {}
    for one in (*estimate.instructions, *estimate.beside) if estimate is not None else ():
        least[one.instruction] = one.seconds
        executions[one.instruction.name] = one.runs
    for transfer in estimate.transfers if estimate is not None else ():
        least[transfer.start] = transfer.seconds
    runs = runs_of(traced, executions)
    number = runs.count if runs is not None else 1
    rows = []
    for instruction in subject.module.instructions():
        time = traced.time_of(instruction)
        home = instruction.computation
        if time is None or not time.devices or (home is not None and home.is_fusion_body):
            continue
        rows.append(Row(instruction, time, time.seconds / number, least.get(instruction)))
    rows.sort(key=lambda row: (row.least is None, (row.least or 0.0) - row.seconds, row.instruction.name))
    return rows, runs


def section(subject: ReportInput) -> Section | Missing:
    """Returns the section on measured times, minimum times and their ratio, by possible saving."""
    traced = subject.traced
    if traced is None:
        return Missing("measured", "Measured", "no profiler trace given (`--trace FILE.xplane.pb`)")
    rows, runs = joined(subject, traced)
    if not rows:
        return Missing("measured", "Measured", "the trace has no operations of this module")
    lines = source_locations(subject.module)
    cells: list[tuple[Cell, ...]] = [
        (
            row.instruction.name,
            row.seconds,
            row.least,
            row.ratio,
            row.seconds - row.least if row.least is not None else None,
            row.time.count,
            row.time.launches or None,
            row.time.launch_seconds or None,
            line_text(lines[row.instruction][0]) if row.instruction in lines else "",
        )
        for row in cut(rows)
    ]
    total = sum(row.seconds for row in rows)
    facts = [("measured", f"{seconds(total)} in operations, per run")]
    if subject.estimate is not None and subject.estimate.seconds:
        facts.append(("minimum time", seconds(subject.estimate.seconds)))
    if runs is not None:
        facts.append(
            (
                "runs",
                f"{runs.count:,}" + (", inferred from kernel counts" if runs.is_inferred else ""),
            )
        )
    facts.append(("devices", ", ".join(traced.devices)))
    launched = sum(row.time.launch_seconds for row in rows)
    if launched:
        facts.append(("launches", f"{seconds(launched)} in host calls, all runs"))
    notes = [f"{note}." for note in traced.notes]
    own = {row.instruction.name for row in rows}
    rest = [name for name in traced.times if name not in own]
    if rest:
        notes.append(f"{pluralize(len(rest), 'name')} in the trace run inside others: {', '.join(rest[:5])}.")
    return Section(
        "measured",
        "Measured",
        "Seconds per run on the slowest device, next to the minimum time of all executions in a run (`hlotext cost "
        "--chip`); the largest excess comes first.",
        facts=facts,
        tables=[PageTable("measured-rows", "Operations", _COLUMNS, cells, len(rows))],
        notes=notes,
    )
