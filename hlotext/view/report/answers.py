"""The first things asked of a program, below the figures: what fills the memory, and where the time goes."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from hlotext import cost
from hlotext.analysis import byte_text
from hlotext.analysis.formatting import format_percent, pluralize, seconds
from hlotext.cost.analysis import naming
from hlotext.memory import MemoryModelError, usage
from hlotext.memory.usage import SpaceUsage
from hlotext.view.page.colours import KIND_COLOURS, MEMORY_COLOURS
from hlotext.view.report.parts import PageTable, columns_of
from hlotext.view.report.report_input import ReportInput
from hlotext.view.report.sections.memory import is_excess, limit_text, live_row, spaces_in_order
from hlotext.view.report.sections.schedule import path_row

_MOST = 3
"""Rows of a table of an answer."""
_LEAST_PART = 0.005
"""Share of a bar below which a part is not named."""


@attrs.frozen
class BarPart:
    """A segment of a bar."""

    name: str
    text: str
    percent: float
    colour: tuple[str, str] | None
    """On light and on dark ground; None for what is free."""


@attrs.frozen
class Answer:
    """A title that states a result, a bar with its parts, and tables of the largest ones."""

    title: str
    bar: Sequence[BarPart] = ()
    remark: str = ""
    tables: Sequence[PageTable] = ()
    is_alarming: bool = False
    """True for what does not fit."""


def answers(subject: ReportInput) -> Iterator[Sequence[Answer]]:
    """Yields columns of answers: memory, then time, as far as known."""
    memory = tuple(_memory(subject))
    if memory:
        yield memory
    time = _time(subject)
    if time is not None:
        yield (time,)


# ---- memory


def _memory(subject: ReportInput) -> Iterator[Answer]:
    """The memory spaces that count, that with most temporaries first, and the largest arrays at its peak."""
    try:
        spaces = [one for one in spaces_in_order(subject.memory) if one.peak]
    except MemoryModelError:
        return
    fast = subject.chip.fast_memory_space if subject.chip is not None else None
    shown = [one for one in spaces if one.memory_space in (0, fast)]
    for number, space in enumerate(shown):
        rows: list[PageTable] = []
        if not number:
            arrays = usage.repeated(usage.live_arrays(subject.memory, space.memory_space, space.peak_time))
            rows = [
                PageTable(
                    "answers-peak",
                    f"Largest at the peak of {space.name}",
                    columns_of("report.answers_peak"),
                    [live_row(row, space.peak) for row in arrays[:_MOST]],
                )
            ]
        bar = _memory_bar(space)
        remarks = [] if space.usable or space.memory_space else [_NO_LIMIT]
        if any(part.name == _FREE for part in bar):
            remarks.append(_WHY_FREE)
        yield Answer(_memory_title(space), bar, " ".join(remarks), rows, is_excess(space))


_FREE = "allocated, free at the peak"
_WHY_FREE = "Allocated, free at the peak: gaps between buffers, and space of arrays that are live only at other times."
_NO_LIMIT = "Remaining memory is unknown: the module does not name its chip; set --chip."


def _memory_title(space: SpaceUsage) -> str:
    about = "about " if space.is_estimated else ""
    return f"{space.name}: {about}{byte_text(space.peak)} at its peak; {limit_text(space)}"


def _memory_bar(space: SpaceUsage) -> Sequence[BarPart]:
    """Parts of all of a memory: arrays held throughout, temporaries at the peak, gaps unused then, and what is left.

    Of one whose size is not known parts of what is needed.
    """
    sizes = {
        "arguments": space.arguments,
        "results": space.results,
        "constants": space.constants,
        "temporaries": space.peak - space.static,
        _FREE: space.needed - space.peak,
    }
    needed = sum(sizes.values())
    sizes["left"] = max(0, (space.usable or 0) - space.needed)
    return _bar(sizes, sum(sizes.values()), byte_text, MEMORY_COLOURS, needed)


def _bar(
    sizes: Mapping[str, float],
    whole: float,
    text: Callable[[Any], str],
    colours: Mapping[str, tuple[str, str]],
    needed: float | None = None,
) -> Sequence[BarPart]:
    """Parts of `whole`; those below the least share of it, or of what is `needed` of it, are left out."""
    least = _LEAST_PART * (whole if needed is None else needed)
    return [
        BarPart(name, text(size), round(100 * size / whole, 2), colours.get(name))
        for name, size in sizes.items()
        if size > 0 and size >= least
    ]


# ---- time


def _time(subject: ReportInput) -> Answer | None:
    found = subject.estimate
    if found is None:
        return _moved(subject)
    if not found.seconds:
        return None
    bound = "at least" if found.is_bound else "about"
    return Answer(
        f"Time: {bound} {seconds(found.seconds)} on {found.chip.name}, estimated",
        _bar(
            subject.time_parts.run,
            found.seconds,
            lambda time: f"{seconds(time)}, {format_percent(time, found.seconds)}",
            KIND_COLOURS,
        ),
        _launches(found),
        [_lines(subject, found), _steps(subject, found)],
    )


def _launches(found: cost.Estimate) -> str:
    """Number of kernels that a run launches, where that takes time."""
    count = sum(one.runs for one in found.instructions if one.least.launch)
    launch = found.chip.rates.launch
    if not count or launch is None:
        return ""
    return f"{pluralize(count, 'kernel')} launched in one run, {seconds(launch.value)} each."


def _lines(subject: ReportInput, found: cost.Estimate) -> PageTable:
    """Lines of Python by their steps of the critical path, which add up to the run."""
    line_of, name = naming(subject.module, "line")
    steps: dict[str, list[cost.PathStep]] = defaultdict(list)
    for step in found.critical_path:
        steps[name(line_of(step.instruction))].append(step)
    sums = {line: sum(step.seconds for step in mine) for line, mine in steps.items()}
    rows = [
        (
            line,
            sums[line],
            sums[line] / found.seconds,
            f"{pluralize(len(steps[line]), 'step')}, longest",
            max(steps[line], key=lambda step: step.seconds).instruction.name,
        )
        for line in heapq.nlargest(_MOST, sums, key=lambda line: sums[line])
    ]
    return PageTable(
        "answers-lines",
        "Slowest Python lines, by time on the critical path",
        columns_of("report.answers_lines"),
        rows,
        len(sums),
    )


def _steps(subject: ReportInput, found: cost.Estimate) -> PageTable:
    steps = heapq.nlargest(_MOST, found.critical_path, key=lambda step: step.seconds)
    rows = [path_row(subject, found, step) for step in steps if step.seconds]
    return PageTable("answers-path", "Longest steps", columns_of("report.answers_path"), rows)


def _moved(subject: ReportInput) -> Answer | None:
    """If the chip is unknown: the lines that move the most bytes, and on GPU the kernels, which every chip launches."""
    run = subject.cost.run
    parts = [(line, part) for line, part in subject.cost.by("line").items() if part.bytes_accessed]
    if not parts:
        return None
    most = heapq.nlargest(_MOST, parts, key=lambda row: row[1].bytes_accessed)
    rows = [
        (line, part.bytes_accessed, part.bytes_accessed / run.bytes_accessed, part.flops)
        for line, part in most
    ]
    table = PageTable(
        "answers-moved",
        "Python lines that move the most bytes, with their flops",
        columns_of("report.answers_moved"),
        rows,
    )
    if subject.by_default is None or not subject.by_default[0].seconds:
        return Answer("Time: unknown; the module does not name its chip", (), "", [table])
    found, chip = subject.by_default
    bound = "at least" if found.is_bound else "about"
    title = f"Time: {bound} {seconds(found.seconds)} on {chip}, estimated; the module does not name its chip (set --chip)"
    return Answer(title, (), _launches(found), [table])
