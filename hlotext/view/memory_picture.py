"""Pictures of memory over time: bars for a terminal, and an SVG of what lies where and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from hlotext.analysis import byte_text
from hlotext.findings import escape
from hlotext.memory import Assignment
from hlotext.memory.usage import LiveArray, LiveGroup, line_text, space_name, temporaries
from hlotext.view.svg_style import opening, style

_FULL, _PARTS = "█", " ▏▎▍▌▋▊▉"
_COLOURS = (
    "#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#e15759", "#ff9da7", "#9c755f", "#86bcb6",
)  # fmt: skip
"""Colours that differ in print as well."""
_OTHERS = "#bab0ac"


@attrs.frozen
class Bar:
    """Consecutive times of the schedule, drawn as one bar."""

    first: int
    last: int
    time: int
    """The moment of most bytes among them."""
    bytes: int
    name: str
    """The operation that runs then."""


def bars(assignment: Assignment, memory_space: int, count: int) -> tuple[Bar, ...]:
    """Returns the timeline of a memory space in at most `count` bars, each with the time of its most bytes."""
    line = [size for _, size in assignment.timeline(memory_space)]
    if not line:
        return ()
    step = -(-len(line) // max(1, count))
    found = []
    for first in range(0, len(line), step):
        piece = line[first : first + step]
        time = first + max(range(len(piece)), key=piece.__getitem__)
        place = assignment.schedule[time]
        name = place if isinstance(place, str) else place.name
        found.append(Bar(first, first + len(piece) - 1, time, line[time], name))
    return tuple(found)


def bar_lines(rows: Sequence[Bar], static: int, width: int) -> Iterator[str]:
    """Yields a text line for each bar, at most `width` columns wide; permanent allocations (`static` bytes) are
    lighter.
    """
    most = max((row.bytes for row in rows), default=0)
    if not rows or not most:
        return
    digits = len(str(rows[-1].last))
    room = max(10, width - 2 * digits - 16)
    bar_width = min(60, room * 3 // 5)
    label = room - bar_width
    for row in rows:
        held = min(static, row.bytes) * bar_width // most
        eighths = round(row.bytes * bar_width * 8 / most)
        bar = "░" * held + _FULL * max(0, eighths // 8 - held)
        if eighths % 8 and len(bar) < bar_width:
            bar += _PARTS[eighths % 8]
        name = row.name if len(row.name) <= label else f"{row.name[: label - 1]}…"
        mark = ">" if row.bytes == most else " "
        yield f"{mark}{row.first:>{digits}}-{row.last:<{digits}} {byte_text(row.bytes):>9} {bar:<{bar_width}} {name}".rstrip()


# ---- SVG

_WIDTH, _HEIGHT, _LEFT, _TOP = 1000, 480, 86, 48
_BASE = 40
"""From the foot of the time line to the legend."""
_STATIC_SHARE = 0.15
"""Of the height, at most, for what is held all the time: it has no structure to look at."""
_STYLE = style(
    "memory",
    {
        ".ground": "fill:#fff", ".static": "fill:#e8e8e8;stroke:#999", ".grid": "stroke:#ccc", ".peak": "stroke:#000",
        ".note": "fill:#555", ".label": "fill:#111;pointer-events:none",
    },
    {
        "text": "fill:#e8ebf0", ".ground": "fill:#11141a", ".static": "fill:#2a303a;stroke:#666", ".grid": "stroke:#39404c",
        ".peak": "stroke:#fff", ".note": "fill:#9aa5b6", ".label": "fill:#111",
    },
    "screen",
)  # fmt: skip
"""Light, and always so in print; dark where the reader's screen is."""


def offsets_svg(assignment: Assignment, memory_space: int = 0, limit: int = 4000) -> str:
    """Returns an SVG of the temporaries of a memory space by offset and time, above the permanent allocations.

    A rectangle for each value shows its live range and bytes, colored by scope, with a tooltip. Permanent allocations
    are one strip at the bottom, not to scale if they dominate. If there are more than `limit` values, the largest are
    drawn and the SVG states this. It needs no scripts and can be printed in gray.
    """
    moments = max(1, len(assignment.schedule))
    pieces = [
        (p.value, p.offset, p.bytes, a)
        for a in assignment.allocations
        if a.memory_space == memory_space and a.is_temporary
        for p in a.slices
        if p.value.live_range is not None and p.bytes
    ]
    left_out = max(0, len(pieces) - limit)
    pieces.sort(key=lambda row: -row[2])
    pieces = pieces[:limit]
    static = sum(a.bytes for a in assignment.allocations if a.memory_space == memory_space and a.is_static)
    heap = max((offset + size for _, offset, size, _ in pieces), default=0)
    total = max(1, static + heap)
    scope_of = {(row.name, row.index): row for row in temporaries(assignment, memory_space)}
    colours = _colours(row.scope for row in scope_of.values())

    def x(time: float) -> float:
        return _LEFT + time * (_WIDTH - _LEFT - 10) / moments

    tall = _HEIGHT - _TOP - _BASE
    foot = min(static / total, _STATIC_SHARE) * tall if heap else static / total * tall

    def y(offset: float) -> float:
        """Where a byte lies; what is static has a scale of its own."""
        if offset <= static:
            return _HEIGHT - _BASE - (foot * offset / static if static else 0)
        return _HEIGHT - _BASE - foot - (offset - static) / heap * (tall - foot)

    name = assignment.module.name if assignment.module is not None else "memory"
    title = f"{name}: {space_name(assignment, memory_space)}, {byte_text(static + heap)}"
    note = ["offsets of temporaries over the schedule"]
    note += ["estimated"] if any(a.is_estimated for *_, a in pieces) else []
    if left_out:
        note.append(f"{left_out} smaller values not drawn")
    out = [
        opening(
            "memory",
            f'viewBox="0 0 {_WIDTH} {_HEIGHT + 22 * -(-len(colours) // 4)}" font-family="sans-serif" font-size="11"',
            title,
        ),
        _STYLE,
        '<rect class="ground" width="100%" height="100%"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{escape.html(title)}</text>',
        f'<text class="note" x="{_LEFT}" y="36">{escape.html("; ".join(note))}</text>',
    ]
    if static:
        is_shrunk = foot < static / total * tall
        held = (
            f"arguments, results and constants: {byte_text(static)}{' (not to scale)' if is_shrunk else ''}"
        )
        out.append(
            f'<rect class="static" x="{_LEFT}" y="{y(static):.1f}" width="{x(moments) - _LEFT:.1f}" '
            f'height="{y(0) - y(static):.1f}" stroke-width=".5"><title>{held}</title></rect>'
        )
        if foot >= _LABEL_HEIGHT:
            out.append(
                f'<text class="note" x="{_LEFT + 6}" y="{(y(0) + y(static)) / 2 + 4:.1f}">{held}</text>'
            )
    for value, offset, size, _ in pieces:
        first, last = value.live_range or (0, 0)
        row = scope_of.get((value.name, value.index))
        colour = colours.get(row.scope, _OTHERS) if row is not None else _OTHERS
        low, high = y(static + offset), y(static + offset + size)
        out.append(
            f'<rect x="{x(first):.1f}" y="{high:.1f}" width="{max(0.6, x(last + 1) - x(first)):.1f}" '
            f'height="{max(0.4, low - high):.1f}" fill="{colour}" stroke="white" stroke-width=".3">'
            f"<title>{escape.html(_tooltip(str(value), first, last, offset, size, row))}</title></rect>"
        )
        wide = x(last + 1) - x(first)
        if wide >= _LABEL_WIDTH and low - high >= _LABEL_HEIGHT:
            shown = _cut(value.name, int(wide / 7))
            out.append(
                f'<text class="label" x="{x(first) + 4:.1f}" y="{high + 11:.1f}">{escape.html(shown)}</text>'
            )
    peak = assignment.peak(memory_space)
    out.append(
        f'<line class="peak" x1="{x(peak.time + 0.5):.1f}" x2="{x(peak.time + 0.5):.1f}" y1="{_TOP}" y2="{y(0):.1f}" '
        f'stroke-dasharray="4 3"><title>peak: {byte_text(peak.bytes)} at {peak.time}</title></line>'
        f'<text class="note" x="{x(peak.time + 0.5):.1f}" y="{_TOP - 3}" text-anchor="middle">peak</text>'
    )
    out += _axes(static, heap, moments, x, y)
    for number, (scope, colour) in enumerate(colours.items()):
        left, top = _LEFT + number % 4 * 228, _HEIGHT + number // 4 * 22
        shown = scope if len(scope) <= 32 else f"…{scope[-31:]}"
        out.append(f'<rect x="{left}" y="{top}" width="12" height="12" fill="{colour}"/>')
        out.append(f'<text x="{left + 17}" y="{top + 10}">{escape.html(shown)}</text>')
    return "\n".join([*out, "</svg>\n"])


def _colours(scopes: Iterable[str]) -> dict[str, str]:
    counts: dict[str, int] = {}
    for scope in scopes:
        counts[scope] = counts.get(scope, 0) + 1
    most = sorted(counts, key=lambda scope: (-counts[scope], scope))[: len(_COLOURS)]
    found = dict(zip(most, _COLOURS, strict=False))
    if len(counts) > len(most):
        found["(others)"] = _OTHERS
    return found


def _tooltip(name: str, first: int, last: int, offset: int, size: int, row: LiveArray | None) -> str:
    parts = [name, f"{byte_text(size)} at offset {offset}, from {first} to {last}"]
    if row is not None:
        parts += [row.layout, row.op_name, row.scope, line_text(row.place)]
    return "\n".join(part for part in parts if part)


_LABEL_WIDTH, _LABEL_HEIGHT = 60, 14
"""From which size on a rectangle has its name in it."""


def _cut(name: str, length: int) -> str:
    return name if len(name) <= length else f"{name[: max(1, length - 1)]}…"


def _axes(
    static: int, heap: int, moments: int, x: Callable[[float], float], y: Callable[[float], float]
) -> Iterator[str]:
    """Bytes of the temporaries, which begin above what is static, and moments of the schedule."""
    for number in range(5 if heap else 1):
        size = heap * number // 4
        height = y(static + size)
        yield (
            f'<text x="{_LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{byte_text(size)}</text>'
            f'<line class="grid" x1="{_LEFT}" x2="{x(moments):.1f}" y1="{height:.1f}" y2="{height:.1f}" stroke-width=".5"/>'
        )
    for number in range(5):
        time = (moments - 1) * number // 4
        yield f'<text x="{x(time):.1f}" y="{y(0) + 16:.1f}" text-anchor="middle">{time}</text>'


def padding_svg(groups: Sequence[LiveGroup], title: str) -> str:
    """Returns an SVG of bytes by scope as bars, with padding hatched and a tooltip for each."""
    rows = [group for group in groups if group.bytes][:25]
    most = max((group.bytes for group in rows), default=1)
    height = 50 + 24 * len(rows)
    out = [
        opening("memory", f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="11"', title),
        '<defs><pattern id="hlotext-hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="5" height="5" fill="#fbe3cf"/><line y2="5" stroke="#e08020" stroke-width="3"/></pattern></defs>',
        _STYLE,
        '<rect class="ground" width="100%" height="100%"/>',
        f'<text x="10" y="20" font-size="14">{escape.html(title)} (padding hatched)</text>',
    ]
    for number, group in enumerate(rows):
        top, left = 36 + 24 * number, 330
        wide = (_WIDTH - left - 130) * group.bytes / most
        padded = wide * group.padding / group.bytes
        name = group.name if len(group.name) <= 48 else f"…{group.name[-47:]}"
        tip = f"{group.name}\n{byte_text(group.bytes)} in {group.arrays} arrays, {byte_text(group.padding)} of it padding"
        out.append(f'<text x="{left - 6}" y="{top + 13}" text-anchor="end">{escape.html(name)}</text>')
        out.append(
            f'<g><title>{escape.html(tip)}</title><rect x="{left}" y="{top}" width="{wide:.1f}" height="17" '
            f'fill="#4e79a7"/><rect x="{left + wide - padded:.1f}" y="{top}" width="{padded:.1f}" height="17" '
            f'fill="url(#hlotext-hatch)"/><text x="{left + wide + 6:.1f}" y="{top + 13}">{byte_text(group.bytes)}</text></g>'
        )
    return "\n".join([*out, "</svg>\n"])
