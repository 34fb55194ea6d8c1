"""Where two modules differ most: for each figure the lines of Python that make most of its change, and their operations."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import attrs

from hlotext.analysis import byte_text, call_graph
from hlotext.analysis.formatting import format_count, pluralize, seconds
from hlotext.cost.analysis import line_name, naming
from hlotext.memory import MemoryModelError, usage
from hlotext.view.report.headline import FLOPS, MOVED, PEAK, SENT, TIME
from hlotext.view.report.parts import Cell, PageTable, columns_of
from hlotext.view.report.report_input import ReportInput
from hlotext.view.report.sections.differences import STATIC, STATIC_NAMES, moved_lines, renamed
from hlotext.view.report.sections.schedule import what_it_is

_MOST = 2
"""Lines of a figure."""
_LEAST = 0.1
"""Share of a figure's change, and of the figure itself in a thousandth, below which a line is not named."""


@attrs.define
class _Line:
    """One side of a line in one figure."""

    amount: float = 0.0
    largest: float = 0.0
    operation: str = ""
    count: int = 0
    what: str = ""

    def add(self, amount: float, operation: str, what: str) -> None:
        """One more operation."""
        self.amount += amount
        self.count += 1
        if amount > self.largest:
            self.largest, self.operation, self.what = amount, operation, what


_Lines = Mapping[str, _Line]
_COLUMNS = columns_of("report.where_rows")


def table(before: ReportInput, after: ReportInput) -> PageTable:
    """Returns a table of the metrics that differ: each line's part of the change, and its largest operation.

    For peak memory these are the lines of live arrays, for time those of the critical path, so that they add up to the
    metric. The operation is from the side with the larger value.
    """
    lines = moved_lines(before, after)
    rows: list[tuple[Cell, ...]] = []
    sides: list[str] = []
    for title, text, of, noun in _FIGURES:
        found = [of(one) for one in (before, after)]
        if found[0] is None or found[1] is None:
            continue
        for row, side in _rows(title, text, noun, renamed([found[0], found[1]], lines)):
            rows.append(row)
            sides.append(side)
    return PageTable("comparison-where", "Largest differences", _COLUMNS, rows, sides=sides)


def _rows(
    title: str, text: Callable[[float], str], noun: str, sides: list[dict[str, _Line]]
) -> Iterator[tuple[tuple[Cell, ...], str]]:
    old, new = sides
    nothing = _Line()
    change = {line: new.get(line, nothing).amount - old.get(line, nothing).amount for line in {**old, **new}}
    whole = sum(change.values())
    sums = [sum(one.amount for one in side.values()) for side in sides]
    most = max(map(abs, change.values()), default=0.0)
    # Of a figure that is as it was the lines may differ: then the largest of these is told, whatever its direction.
    is_kept = abs(whole) < _LEAST / 1000 * max(sums)
    if most <= _LEAST / 1000 * max(sums):
        return
    told = [
        line
        for line, size in change.items()
        if abs(size) >= _LEAST * max(most, abs(whole)) and (is_kept or (size > 0) == (whole > 0))
    ]
    for line in heapq.nlargest(_MOST, told, key=lambda line: abs(change[line])):
        side = "b" if change[line] > 0 else "a"
        one = (new if side == "b" else old)[line]
        total = "" if is_kept else f" of {_signed(whole, text)}"
        counts = [side_.get(line, nothing).count for side_ in (old, new)]
        count = (
            pluralize(counts[0], noun)
            if counts[0] == counts[1]
            else f"{counts[0]:,} → {pluralize(counts[1], noun)}"
        )
        what = f"{count}{f'; {one.what}' if one.what else ''}"
        yield (title, f"{_signed(change[line], text)}{total}", line, one.operation, what), side


def _signed(value: float, text: Callable[[float], str]) -> str:
    return f"{'−' if value < 0 else '+'}{text(abs(value))}"


def _bytes(value: float) -> str:
    return byte_text(int(value))


# ---- the lines of each figure


def _peak(one: ReportInput) -> _Lines | None:
    """Live bytes at the peak of the main memory by line; arrays held throughout by their kind."""
    try:
        space = usage.space_usage(one.memory, 0)
        arrays = usage.live_arrays(one.memory, 0, space.peak_time)
    except MemoryModelError:
        return None
    found: dict[str, _Line] = {}
    for array in arrays:
        if array.first is not None:
            found.setdefault(line_name(array.place), _Line()).add(array.bytes, array.label, array.scope)
    held = Counter(
        each.held_for
        for each in one.memory.allocations
        if each.memory_space == 0 and each.bytes and not each.is_thread_local
    )
    for name in STATIC:
        if getattr(space, name):
            found[STATIC_NAMES[f"({name})"]] = _Line(getattr(space, name), count=held[name])
    return found


def _time(one: ReportInput) -> _Lines | None:
    estimate = one.estimate
    if estimate is None:
        return None
    line_of, name = naming(one.module, "line")
    found: dict[str, _Line] = {}
    for step in estimate.critical_path:
        line = found.setdefault(name(line_of(step.instruction)), _Line())
        if step.seconds > line.largest:
            line.add(step.seconds, step.instruction.name, what_it_is(one, step))
        else:
            line.add(step.seconds, "", "")
    return found


def _sent(one: ReportInput) -> _Lines:
    found: dict[str, _Line] = {}
    for flow in one.traffic.flows:
        if flow.total:
            named = flow.communication.fusion or flow.communication.start
            what = f"{flow.communication.kind} along {flow.row}"
            found.setdefault(line_name(flow.place), _Line()).add(flow.total, named.name, what)
    return found


def _moved(one: ReportInput) -> _Lines:
    return _costs(one, "bytes_accessed")


def _flops(one: ReportInput) -> _Lines:
    return _costs(one, "flops")


def _costs(one: ReportInput, name: str) -> _Lines:
    (line_of, called), graph = naming(one.module, "line"), call_graph(one.module)
    found: dict[str, _Line] = {}
    for share in one.cost.shares():
        amount = float(getattr(share.cost, name))
        if not amount:
            continue
        line = found.setdefault(called(line_of(share.instruction)), _Line())
        if amount > line.largest:
            caller = graph.caller(share.instruction.computation)
            inside = caller is not None and caller.opcode == "fusion"
            outer = caller.name if caller is not None and inside else share.instruction.name
            line.add(amount, outer, share.instruction.opcode)
        else:
            line.add(amount, "", "")
    return found


_FIGURES: tuple[tuple[str, Callable[[float], str], Callable[[ReportInput], _Lines | None], str], ...] = (
    (PEAK, _bytes, _peak, "array"),
    (TIME, seconds, _time, "step"),
    (SENT, _bytes, _sent, "transfer"),
    (MOVED, _bytes, _moved, "operation"),
    (FLOPS, format_count, _flops, "operation"),
)
