"""The schedule as lanes: what the core does, what links and copy engines do meanwhile (`hlotext cost --chip`)."""

from __future__ import annotations

from typing import Any

import hlotext as hlo
from hlotext import cost
from hlotext.analysis import scopes, source_locations
from hlotext.analysis.formatting import pluralize, seconds
from hlotext.cost.schedule import CORE, ScheduleStep
from hlotext.view.page.packing import Words
from hlotext.view.report.parts import Cell, Chart, Missing, PageTable, Section, columns_of, cut
from hlotext.view.report.report_input import ReportInput
from hlotext.view.report.time_parts import LAUNCH, kind_of, transfer_kind

_PATH = columns_of("report.schedule_path")
_CORE = columns_of("report.schedule_core")


def section(subject: ReportInput) -> Section | Missing:
    """Returns the section on the entry's schedule and critical path, which needs the chip. Raises ValueError if a cost
    is unknown.
    """
    found = subject.estimate
    if found is None:
        return Missing(
            "schedule",
            "Schedule",
            "the module does not name its chip; set `--chip NAME` (v5e, h100, ...) to estimate times",
        )
    facts = [("minimum time", f"{seconds(found.seconds)} on {found.chip.name}")]
    own = found.compiler
    if own is not None:
        facts.append(
            ("compiler estimate", f"{seconds(own.seconds)} {own.coverage} (from its cycle counts, all runs)")
        )
    facts += [(kind, seconds(time)) for kind, time in subject.time_parts.run.items() if time]
    notes = [f"A bound from sizes and rates, not a prediction: it {found.counted}."]
    if not found.is_scheduled:
        notes.append("The text has no schedule; assuming text order.")
    if found.unknown_loops:
        notes.append(f"{pluralize(len(found.unknown_loops), 'loop')} with unknown trip count, counted once.")
    if found.unknown_calls:
        notes.append(
            f"{pluralize(len(found.unknown_calls), 'call')} of unknown cost, counted by bytes only: a lower bound."
        )
    if found.scatters:
        rows = pluralize(sum(found.scatters.values()), "row")
        notes.append(
            f"{pluralize(len(found.scatters), 'scatter')} of {rows}, counted by bytes only: a lower bound."
        )
    if not found.seconds:
        return Missing(
            "schedule", "Schedule", f"no rates of {found.chip.name} are known, so no times are estimated"
        )
    chart = _chart(subject, found)
    return Section(
        "schedule",
        "Schedule",
        "The entry's schedule with one clock for the core and a queue for each link and copy engine (`hlotext cost --chip`).",
        facts=facts,
        charts=[chart],
        tables=[_path(subject, found), _core(subject, found)],
        notes=notes,
    )


def _is_body(step: ScheduleStep) -> bool:
    return step.least is None and step.awaited is None


def _chart(subject: ReportInput, found: cost.Estimate) -> Chart:
    lanes, rows = _lanes(subject, found)
    summary = (
        f"{pluralize(len(rows['lane']), 'span')} in {pluralize(len(lanes), 'lane')}: the core and what overlaps with it. "
        f"The run takes at least {seconds(found.seconds)}, of which the core is stalled for {seconds(found.exposed)}."
    )
    if any(map(_is_body, found.walk.steps)):
        summary += (
            " A loop or a call is one span over all its iterations: the heights of its layers are shares of its "
            "time, not points in time."
        )
    return Chart(
        "lanes",
        "lanes",
        "Core, links and copies over time",
        summary,
        {"lanes": lanes, "seconds": found.seconds, "scale": {"seconds": found.seconds}, **rows},
        90 + 34 * len(lanes),
    )


def _lanes(subject: ReportInput, found: cost.Estimate) -> tuple[list[str], dict[str, Any]]:
    walk = found.walk
    words, lines, named = Words(), source_locations(subject.module), scopes(subject.module)
    carried = subject.carried
    lanes = [CORE]
    rows: dict[str, Any] = {
        name: []
        for name in (
            "lane",
            "begin",
            "end",
            "low",
            "high",
            "launch",
            "kind",
            "name",
            "scope",
            "line",
            "opcode",
            "carries",
        )
    }

    def add(
        lane: str,
        begin: float,
        end: float,
        kind: str,
        instruction: hlo.Instruction,
        layer: tuple[float, float] = (0.0, 1.0),
        *,
        is_launch: bool = False,
    ) -> None:
        if lane not in lanes:
            lanes.append(lane)
        place = lines.get(instruction)
        rows["lane"].append(lanes.index(lane))
        rows["begin"].append(begin)
        rows["end"].append(end)
        rows["low"].append(round(layer[0], 7))
        rows["high"].append(round(layer[1], 7))
        rows["launch"].append(int(is_launch))
        rows["kind"].append(words.number(kind))
        rows["name"].append(words.number(instruction.name))
        rows["scope"].append(words.number(str(named.of(instruction))))
        rows["line"].append(words.number(f"{place[0].file}:{place[0].line}" if place is not None else ""))
        rows["opcode"].append(words.number(instruction.opcode))
        rows["carries"].append(words.number(carried[instruction].short if instruction in carried else ""))

    parts = subject.time_parts
    for step in walk.steps:
        begin = low = 0.0
        for part in parts.of(step):
            span, layer = (step.begin, step.end), (0.0, 1.0)
            if _is_body(step):
                # What a loop or a call runs, in layers as high as their shares, over all of its span.
                layer = low, low + part.seconds / (step.end - step.begin)
                low = layer[1]
            else:
                span = step.begin + begin, step.begin + begin + part.seconds
                begin += part.seconds
            add(CORE, *span, part.kind, step.instruction, layer, is_launch=part.is_launch)
    for transfer in walk.transfers:
        if transfer.end <= transfer.begin:
            continue
        kind = transfer_kind(transfer, walk.exposed.get(transfer, 0.0))
        for queue in transfer.queues:
            add(queue, transfer.begin, transfer.end, kind, transfer.start)
    rows["kinds"] = sorted({words.texts[number] for number in rows["kind"]})
    rows["words"] = words.texts
    return lanes, rows


def _line(subject: ReportInput, instruction: Any) -> str:
    place = source_locations(subject.module).get(instruction)
    return f"{place[0].file.rsplit('/', 1)[-1]}:{place[0].line}" if place is not None else ""


def _path(subject: ReportInput, found: cost.Estimate) -> PageTable:
    steps = sorted(found.critical_path, key=lambda step: -step.seconds)
    rows = []
    for step in cut(steps, 50):
        *known, line = path_row(subject, found, step)
        rows.append((*known, step.resource, line))
    return PageTable("schedule-path", "Critical path: longest steps", _PATH, rows, len(steps))


def path_row(subject: ReportInput, found: cost.Estimate, step: cost.PathStep) -> tuple[Cell, ...]:
    """Returns the table row of a step of the critical path: name, seconds, share, description and line."""
    share = step.seconds / found.seconds
    return (
        step.instruction.name,
        step.seconds,
        share,
        what_it_is(subject, step),
        _line(subject, step.instruction),
    )


def what_it_is(subject: ReportInput, step: cost.PathStep) -> str:
    """Returns a description of a step: its collective, or what limits the operation."""
    one = step.instruction
    if step.resource == CORE:
        least = subject.time_parts.least.get(one)
        if least is None:
            return one.opcode
        return LAUNCH if least.launch > least.working else kind_of(one, least)
    return subject.carried[one].short if one in subject.carried else "copy"


def _core(subject: ReportInput, found: cost.Estimate) -> PageTable:
    has_cycles = found.compiler is not None
    has_fast = any(one.weight > one.seconds for one in found.instructions)
    rows: list[tuple[Cell, ...]] = [
        (
            one.instruction.name,
            one.seconds,
            one.runs,
            one.bound.value,
            one.least.flops,
            one.least.bytes,
            *([one.weight] if has_fast else []),
            *([_compiler_time(one)] if has_cycles else []),
            _line(subject, one.instruction),
        )
        for one in cut(found.instructions)
    ]
    without = {"weight": not has_fast, "compiler": not has_cycles}
    columns = [column for column in _CORE if not without.get(column.key)]
    return PageTable("schedule-core", "Core, all runs", columns, rows, len(found.instructions), is_open=False)


def _compiler_time(one: cost.InstructionTime) -> float | None:
    """Compiler's estimate for all runs; None without one."""
    return one.cycle_seconds * one.runs if one.cycle_seconds is not None else None
