"""Two modules of a report against each other: memory over the schedule, scopes and lines, the largest differences first."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

from hlotext.analysis import byte_text, source_locations
from hlotext.analysis.formatting import format_change, pluralize
from hlotext.findings import escape
from hlotext.memory import MemoryModelError, usage
from hlotext.memory.usage import line_text
from hlotext.view.report.parts import Cell, PageColumn, PageTable, Picture, columns_of, cut, signed_bytes
from hlotext.view.report.report_input import ReportInput
from hlotext.view.report.sections.costs import seconds_by
from hlotext.view.report.sections.memory import folded_scopes, is_mostly_static
from hlotext.view.report.templates import shown as shown_text

T = TypeVar("T")
_BYTES, _TIMES = columns_of("report.differences_bytes"), columns_of("report.differences_times")
_MOVED = (attrs.evolve(_BYTES[0], title="line", kind="line"), *_BYTES[1:])
STATIC = ("arguments", "results", "constants")
"""Bytes held from start to end, as `SpaceUsage` names them."""
_WIDE, _HIGH, _EDGE = 900, 190, 3
"""Width and height of a picture, and what is free above and below so that no line is cut off."""
_LEAST = 0.01
"""Share of the main memory's difference below which that of another has no picture."""
_MOST_POINTS = 2_000
"""Points of a line that is drawn: of more the largest of those that fall together."""


def tables(before: ReportInput, after: ReportInput) -> Iterator[PageTable]:
    """Yields tables of memory spaces, live bytes at the peak by scope, traffic by line, bytes sent, and minimum times
    by line.

    Equal rows are summed up at the bottom, above the total.
    """
    spaces: list[dict[str, float]] = [{}, {}]
    live: list[dict[str, float]] = [{}, {}]
    with contextlib.suppress(MemoryModelError):
        spaces, live = [_spaces(one) for one in (before, after)], [_live(one) for one in (before, after)]
    moved = [
        {name: part.bytes_accessed for name, part in one.cost.by("line").items()} for one in (before, after)
    ]
    times = [seconds_by(one, "line") for one in (before, after)]
    lines = moved_lines(before, after)
    sent = [_sent(one) for one in (before, after)]
    yield from _table("differences-spaces", "Memory needed, and at the peak", _BYTES, spaces, total="")
    yield from _table("differences-live", "Live at the peak by scope", _BYTES, live)
    yield from _table("differences-moved", "Bytes moved by line", _MOVED, renamed(moved, lines))
    yield from _table("differences-sent", "Sent per device, by axis and kind", _BYTES, sent)
    if times[0] is not None and times[1] is not None:
        sides = renamed([times[0], times[1]], lines)
        yield from _table(
            "differences-times", "Minimum time by line", _TIMES, sides, total="all, without overlap"
        )


def moved_lines(before: ReportInput, after: ReportInput) -> Mapping[str, str]:
    """Maps source lines of the first program to those of the second, so that lines shifted by edits correspond.

    Operations that are alone with their opcode, op_name and shape in a line on each side vote for the pair of their
    lines; a pair corresponds if it has the most votes of both lines.
    """
    votes: dict[tuple[str, str], int] = Counter()
    old, new = _single_lines(before), _single_lines(after)
    for key in old.keys() & new.keys():
        votes[old[key], new[key]] += 1
    best: list[dict[str, str]] = [{}, {}]
    for (first, second), _ in sorted(votes.items(), key=lambda item: (-item[1], item[0])):
        best[0].setdefault(first, second)
        best[1].setdefault(second, first)
    return {first: second for first, second in best[0].items() if best[1][second] == first}


def _single_lines(one: ReportInput) -> dict[tuple[str, str, str], str]:
    """The line of operations by opcode, op_name and shape, without those of several lines."""
    lines: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for instruction, (place, _) in source_locations(one.module).items():
        if instruction.metadata is not None and instruction.metadata.op_name:
            shape = instruction.shape.text_without_layout() if instruction.shape is not None else ""
            key = instruction.opcode, instruction.metadata.op_name, shape
            lines[key].add(f"{place.file}:{place.line}")
    return {key: min(found) for key, found in lines.items() if len(found) == 1}


def renamed(sides: Sequence[Mapping[str, T]], lines: Mapping[str, str]) -> list[dict[str, T]]:
    """Returns both sides with the same name for a line that moved: its old location and its new number."""
    old, new = sides
    names = {
        first: first if first == second else f"{first} → {second.rpartition(':')[2]}"
        for first, second in lines.items()
        if first in old
    }
    now = {lines[first]: name for first, name in names.items()}
    renamed = {
        # Another line has this number now, so that the two are not the same.
        names.get(name, f"{name} (before)" if name in now else name): value
        for name, value in old.items()
    }
    return [renamed, {now.get(name, name): value for name, value in new.items()}]


def _spaces(one: ReportInput) -> dict[str, float]:
    used = [usage.space_usage(one.memory, space) for space in one.memory.memory_spaces()]
    return {
        f"{space.name}, {what}": float(size)
        for space in used
        for what, size in (("needed", space.needed), ("peak", space.peak))
    }


def _live(one: ReportInput, number: int = 0) -> dict[str, float]:
    space = usage.space_usage(one.memory, number)
    arrays = usage.live_arrays(one.memory, number, space.peak_time)
    # What is held from start to end counts as what it is held for, whichever value is in it at the peak.
    found = Counter({f"({name})": getattr(space, name) for name in STATIC})
    held = [array for array in arrays if array.first is not None]
    names = folded_scopes(one.memory, (array.scope for array in held))
    for array in held:
        found[names[array.scope]] += array.bytes
    return {name: float(size) for name, size in found.items() if size}


def _largest(one: ReportInput, number: int) -> dict[str, str]:
    """The largest array of each scope at the peak, beside those held from start to end, and its line."""
    space = usage.space_usage(one.memory, number)
    found: dict[str, str] = {}
    arrays = usage.live_arrays(one.memory, number, space.peak_time)  # the largest first
    names = folded_scopes(one.memory, (array.scope for array in arrays))
    for array in arrays:
        if array.first is not None:
            place = line_text(array.place)
            found.setdefault(names[array.scope], f"{array.shown}, {place}" if place else array.shown)
    return found


def _sent(one: ReportInput) -> dict[str, float]:
    return {
        f"{row}, {kind}": float(total.bytes)
        for (row, kind), total in one.traffic.matrix().items()
        if total.bytes
    }


def _table(
    id: str,
    title: str,
    columns: Sequence[PageColumn],
    sides: Sequence[Mapping[str, float]],
    *,
    total: str = "all",
) -> Iterator[PageTable]:
    old, new = sides
    names = list(dict.fromkeys((*old, *new)))
    rows = [_row(name, [name], sides) for name in names if old.get(name, 0.0) != new.get(name, 0.0)]
    rows.sort(key=lambda row: (-abs(float(row[3] or 0)), str(row[0])))
    if not rows:
        return
    shown = cut(rows)
    differ = {str(row[0]) for row in rows}
    equal = [name for name in names if name not in differ]
    feet = []
    if len(shown) < len(rows):
        smaller = [str(row[0]) for row in rows[len(shown) :]]
        feet.append(_row(f"{len(smaller):,} smaller differences", smaller, sides))
    if equal:
        said = f"{pluralize(len(equal), 'row')} equal on both sides"
        feet.append(_row(said, equal, sides) if total else (said, None, None, None, None))
    if total:
        feet.append(_row(total, names, sides))
    yield PageTable(id, title, columns, shown, feet=feet)


def _row(title: str, names: Iterable[str], sides: Sequence[Mapping[str, float]]) -> tuple[Cell, ...]:
    """Sums of both sides over these names, and what is between them."""
    a, b = (sum(side.get(name, 0.0) for name in names) for side in sides)
    return title, a or None, b or None, b - a, (b - a) / a if a else None


def pictures(before: ReportInput, after: ReportInput) -> Iterator[Picture]:
    """Yields pictures of main memory, and of the other memory whose peak differs most: live bytes at the peak, and over
    time.
    """
    try:
        spaces = [set(one.memory.memory_spaces()) for one in (before, after)]
        both = sorted(spaces[0] & spaces[1])
        more = {
            space: abs(
                usage.space_usage(after.memory, space).peak - usage.space_usage(before.memory, space).peak
            )
            for space in both
            if space
        }
        most = max(more, key=lambda space: (more[space], -space), default=0)
        main = abs(usage.space_usage(after.memory, 0).peak - usage.space_usage(before.memory, 0).peak)
        for space in (0, most) if more.get(most, 0) > _LEAST * main else (0,):
            yield from _picture(before, after, space)
    except MemoryModelError:
        return


def _picture(before: ReportInput, after: ReportInput, space: int) -> Iterator[Picture]:
    lines = [[size for _, size in one.memory.timeline(space)] for one in (before, after)]
    if not all(lines):
        return
    old, new = (usage.space_usage(one.memory, space) for one in (before, after))
    change = new.peak - old.peak
    bars, reasons = _bars(
        _live(before, space), _live(after, space), _largest(before, space), _largest(after, space)
    )
    if "(results)" in reasons and old.aliased != new.aliased:
        reasons["(results)"] += (
            f", because argument buffers hold {byte_text(new.aliased)} of the results after and {byte_text(old.aliased)} "
            "before"
        )
    said = "; ".join(f"{STATIC_NAMES.get(name, name)} {text}" for name, text in reasons.items())
    title = f"{new.name}: the peak is {byte_text(old.peak)} before and {byte_text(new.peak)} after"
    title += f", {signed_text(change)} ({format_change(change / old.peak)})" if change and old.peak else ""
    # What is held throughout on both sides would make both lines flat: then only what lives beside it is drawn.
    is_flat = all(is_mostly_static(one.static, one.peak) for one in (old, new))
    drawn = (
        [[size - one.static for size in line] for line, one in zip(lines, (old, new), strict=True)]
        if is_flat
        else lines
    )
    beside = ""
    if is_flat:
        beside = f" on top of what is live throughout ({byte_text(old.static)} before, {byte_text(new.static)} after)"
    yield Picture(
        title,
        f"{f'Mainly: {said}.' if said else 'Nothing differs at the peak.'} "
        f"Live bytes{beside}, before in gray and after in blue, each over its own schedule.",
        f"{bars}{_overlay(drawn, '+' if is_flat else '')}",
    )


STATIC_NAMES = {f"({name})": name for name in STATIC} | {"(results)": "results in their own memory"}
_MOST_BARS, _MOST_REASONS = 8, 3


def _bars(
    old: Mapping[str, float], new: Mapping[str, float], was: Mapping[str, str], now: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """Differences at the peak as bars to both sides of nothing, the largest first; and the largest in words.

    `was` and `now` name the largest array of each scope.
    """
    rows = [(name, new.get(name, 0.0) - old.get(name, 0.0)) for name in dict.fromkeys((*old, *new))]
    rows = sorted((row for row in rows if row[1]), key=lambda row: (-abs(row[1]), row[0]))
    if not rows:
        return "", {}
    shown, rest = rows[:_MOST_BARS], rows[_MOST_BARS:]
    if rest:
        shown = [*shown, (f"{len(rest):,} others", sum(size for _, size in rest))]
    most = max(abs(size) for _, size in shown)
    cells = []
    for name, size in shown:
        where = "less" if size < 0 else "more"
        label = escape.html(shown_text(STATIC_NAMES.get(name, name)))
        largest = (was if size < 0 else now).get(name, "")
        if largest:
            label += f"<small>{escape.html(shown_text(largest))}</small>"
        cells.append(
            f'<dt>{label}</dt><dd class="{where}"><i style="width:{50 * abs(size) / most:.1f}%"></i>'
            f"<b>{signed_text(size)}</b></dd>"
        )
    # Those that make up most of it: the others are smaller by far.
    told = [row for row in rows[:_MOST_REASONS] if abs(row[1]) >= abs(rows[0][1]) / 10]
    return f'<dl class="changes">{"".join(cells)}</dl>', {name: signed_text(size) for name, size in told}


def signed_text(size: float) -> str:
    """Formats a difference of bytes with its sign."""
    return f"+{signed_bytes(size)}" if size > 0 else signed_bytes(size)


def _overlay(lines: Sequence[Sequence[int]], sign: str) -> str:
    top = max(max(line) for line in lines) or 1
    drawn = []
    for key, line in zip("ab", lines, strict=True):
        peak = max(line)
        says = f"{'before' if key == 'a' else 'after'}: {sign}{byte_text(peak)} at step {line.index(peak):,} of {len(line):,}"
        drawn.append(
            f'<path class="{key}" d="{_points(line, top)}"><title>{escape.html(says)}</title></path>'
        )
    peaks = [f"{sign}{byte_text(max(line))}" for line in lines]
    label = f"live bytes over the schedule: at most {peaks[0]} before and {peaks[1]} after"
    scale = "".join(f'<line x1="0" x2="{_WIDE}" y1="{y}" y2="{y}"/>' for y in (_EDGE, _HIGH - _EDGE))
    # Stretched to the width of the page, its height kept; texts stand beside it, so that they keep their size.
    return (
        f'<div class="overlay"><span>{sign}{byte_text(top)}</span><span>{sign}0 B</span>'
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" preserveAspectRatio="none" role="img" aria-label="{escape.html(label)}">'
        f"{scale}{''.join(drawn)}</svg></div>"
    )


def _points(line: Sequence[int], top: int) -> str:
    step = max(1, len(line) // _MOST_POINTS)
    most = [max(line[at : at + step]) for at in range(0, len(line), step)]
    wide = _WIDE / max(1, len(most))
    high, ground = _HIGH - 2 * _EDGE, _HIGH - _EDGE
    path = [
        f"{'M' if not n else 'L'}{n * wide:.1f} {ground - size / top * high:.1f}H{(n + 1) * wide:.1f}"
        for n, size in enumerate(most)
    ]
    return "".join(path)
