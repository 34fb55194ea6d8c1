"""Buffers by offset and time: `hlotext memory`."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hlotext import memory
from hlotext.analysis import Scope, byte_text
from hlotext.analysis import scopes as scopes_of
from hlotext.analysis.scopes import TOP
from hlotext.memory import usage
from hlotext.memory.usage import LiveArray, SpaceUsage, line_text
from hlotext.view.page.packing import Words
from hlotext.view.report.parts import Cell, Chart, PageTable, Section, columns_of, cut
from hlotext.view.report.report_input import ReportInput

MOST_PIECES = 40_000
"""Temporaries of one memory space that are drawn; of more the largest are."""
_DRAWN_SPACES = 2
"""Memory spaces that have a picture, those with most temporaries."""
_SPACE_COLUMNS = columns_of("memory.spaces")
_LIVE_COLUMNS = columns_of("report.memory_live")


def section(subject: ReportInput) -> Section:
    """Returns the section on each memory space with temporaries and its live arrays at the peak. Raises
    MemoryModelError.
    """
    shown = subject.memory
    spaces = [usage.space_usage(shown, space) for space in shown.memory_spaces()]
    needed = [space for space in spaces if space.needed]
    heaps = [space for space in spaces_in_order(shown) if space.heap]
    tables = []
    charts = [_chart(shown, space) for space in heaps[:_DRAWN_SPACES]]
    for space in spaces_in_order(shown):
        if space in needed and (space.memory_space == 0 or space in heaps[:_DRAWN_SPACES]):
            tables.append(_live(shown, space, is_open=space.memory_space == 0 or space is heaps[0]))
    tables.append(_spaces(needed))
    how = "computed from the text" if shown.is_computed else "read from XLA's files next to the text"
    notes = [*dict.fromkeys((*subject.computed.notes, *shown.notes))]
    estimated = [space.name for space in heaps if space.is_estimated]
    fast = usage.fast_memory_text(shown)
    if estimated:
        notes.append(f"Offsets in {', '.join(estimated)} are not in the text.")
    undrawn = [space.name for space in heaps[_DRAWN_SPACES:]]
    if undrawn:
        notes.append(f"Not drawn: {', '.join(undrawn)}.")
    return Section(
        "memory",
        "Memory",
        f"Live ranges and offsets of every temporary, {how}. Bytes are as the allocator counts them, padding included.",
        facts=[*_facts(spaces), *([] if fast is None else [fast])],
        charts=charts,
        tables=tables,
        notes=notes,
    )


def spaces_in_order(shown: memory.Assignment) -> list[SpaceUsage]:
    """Returns the use of each memory space, the one with most live temporaries first."""
    found = [usage.space_usage(shown, space) for space in shown.memory_spaces()]
    return sorted(found, key=lambda one: (one.static - one.peak, one.memory_space))


def is_excess(space: SpaceUsage) -> bool:
    """True if a program needs more of a memory than available. False for an estimate of a memory space other than 0."""
    return (
        space.usable is not None
        and space.needed > space.usable
        and not (space.memory_space and space.is_estimated)
    )


def limit_text(space: SpaceUsage) -> str:
    """Returns the bytes that a program needs of a memory, and how many are left or lacking."""
    needed = f"needs {byte_text(space.needed)} of"
    if space.usable is None:
        return f"{needed} {space.name}"
    if space.needed > space.usable:
        more = byte_text(space.needed - space.usable)
        return f"{needed} {space.name}, {more} more than its {byte_text(space.usable)}"
    left = byte_text(space.usable - space.needed)
    return f"{needed} {byte_text(space.usable)} {space.name}, {left} left"


def _facts(spaces: Iterable[SpaceUsage]) -> list[tuple[str, str]]:
    return [
        fact
        for space in spaces
        if space.memory_space == 0
        for fact in (
            ("arguments", f"{byte_text(space.arguments)} ({byte_text(space.aliased)} reused for results)"),
            ("results in their own memory", byte_text(space.results)),
            ("constants", byte_text(space.constants)),
        )
    ]


def _spaces(spaces: Sequence[SpaceUsage]) -> PageTable:
    rows = [[getattr(space, column.key) for column in _SPACE_COLUMNS] for space in spaces]
    return PageTable("memory-spaces", f"Memory spaces ({usage.SPACES_LEGEND})", _SPACE_COLUMNS, rows)


def _live(shown: memory.Assignment, space: SpaceUsage, *, is_open: bool) -> PageTable:
    arrays = usage.live_arrays(shown, space.memory_space, space.peak_time)
    folded = usage.repeated(arrays)
    rows = [
        (
            row.array.label + (" ..." if row.count > 1 else ""),
            row.count if row.count > 1 else None,
            row.bytes,
            (row.array.padding or 0) * row.count or None,
            row.first,
            row.last,
            row.array.kind,
            row.array.layout,
            row.array.scope,
            line_text(row.array.place),
        )
        for row in cut(folded)
    ]
    return PageTable(
        f"memory-live-{space.memory_space}",
        f"{space.name}: live at the peak, {byte_text(space.peak)} at step {space.peak_time:,}"
        + (f" ({space.peak_instruction})" if space.peak_instruction else ""),
        _LIVE_COLUMNS,
        rows,
        total=len(folded),
        is_open=is_open,
    )


def live_row(row: usage.RepeatedArray, peak: int) -> tuple[Cell, ...]:
    """Returns the table row of an array live at the peak: name, bytes, share, kind and line."""
    name = row.array.label + (" ..." if row.count > 1 else "")
    return name, row.bytes, row.bytes / peak, row.array.kind, line_text(row.array.place)


# ---- the picture


def _chart(shown: memory.Assignment, space: SpaceUsage) -> Chart:
    pieces = usage.placed_temporaries(shown, space.memory_space)
    drawn = sorted(pieces, key=lambda row: (-row[0].bytes, row[0].first or 0, row[0].label))[:MOST_PIECES]
    is_placed = _is_placed(shown, space)
    title = f"{space.name}: live bytes by scope{', and offsets over time' if is_placed else ' over time'}"
    left_out = len(pieces) - len(drawn)
    rectangles = (
        f"{len(drawn):,} temporaries as rectangles: width is the live range, height the bytes; those too thin to see are "
        "merged and drawn fainter"
        if is_placed
        else f"{len(drawn):,} temporaries, without offsets, which are not in the text"
    )
    summary = (
        rectangles
        + (f"; {left_out:,} smaller ones not drawn" if left_out else "")
        + f". Peak {byte_text(space.peak)} at step {space.peak_time:,}, {space.peak_instruction or 'the start'}."
    )
    scopes = folded_scopes(shown, (row.scope for row, _ in drawn))
    areas: dict[str, float] = defaultdict(float)
    for row, _ in drawn:
        areas[scopes[row.scope]] += row.bytes * ((row.last or 0) - (row.first or 0) + 1)
    return Chart(
        f"memory-{space.memory_space}",
        "memory",
        title,
        summary,
        _data(shown, space, drawn, left_out, scopes),
        340,
        areas,
    )


def _is_placed(shown: memory.Assignment, space: SpaceUsage) -> bool:
    """True if offsets are XLA's, or computed as XLA computes them; False where a search of the compiler chose them."""
    mine = (one for one in shown.allocations if one.memory_space == space.memory_space)
    return not any(one.is_estimated for one in mine)


def folded_scopes(shown: memory.Assignment, texts: Iterable[str]) -> dict[str, str]:
    """Maps scopes to their names with repeated layers merged, as in the scope tree."""
    module = shown.module
    named = scopes_of(module) if module is not None and module.computations else None
    return {
        text: text if named is None or text == TOP else "/".join(named.folded(Scope(tuple(text.split("/")))))
        for text in set(texts)
    }


def _data(
    shown: memory.Assignment,
    space: SpaceUsage,
    drawn: Sequence[Any],
    left_out: int,
    scopes: Mapping[str, str],
) -> dict[str, Any]:
    bases = _bases(piece[0] for _, piece in drawn)
    words = Words()
    rows: list[LiveArray] = [row for row, _ in drawn]
    line = [size for _, size in shown.timeline(space.memory_space)]
    changes = [(time, size) for time, size in enumerate(line) if not time or size != line[time - 1]]
    top = max(line, default=0)
    return {
        "space": space.name,
        "is_placed": _is_placed(shown, space),
        "moments": len(line),
        "static": space.static,
        "capacity": space.capacity,
        "heap": space.heap,
        "scale": {
            "steps": max(1, len(line)),
            "heap": max(1, space.heap),
            "top": max(1, top),
            "above": top - space.static,
            "is_whole": not is_mostly_static(space.static, top),
        },
        "peak": {"time": space.peak_time, "bytes": space.peak, "name": space.peak_instruction},
        "left_out": left_out,
        "timeline": [[time for time, _ in changes], [size for _, size in changes]],
        "schedule": [i if isinstance(i, str) else i.name for i in shown.schedule],
        "first": [row.first for row in rows],
        "last": [row.last for row in rows],
        "offset": [piece[1].offset + bases[piece[0].number] for _, piece in drawn],
        "bytes": [row.bytes for row in rows],
        "padding": [row.padding for row in rows],
        "name": [words.number(row.label) for row in rows],
        "shape": [words.number(row.layout) for row in rows],
        "scope": [words.number(row.scope) for row in rows],
        "folded": [words.number(scopes[row.scope]) for row in rows],
        "op_name": [words.number(row.op_name) for row in rows],
        "line": [words.number(_place(row)) for row in rows],
        "words": words.texts,
    }


def is_mostly_static(static: int, peak: int) -> bool:
    """True if the permanent allocations are not drawn to scale, since temporaries above them would look flat."""
    return peak > static > 0.6 * peak


def _place(row: LiveArray) -> str:
    return f"{row.place.file}:{row.place.line}" if row.place is not None else ""


def _bases(allocations: Iterable[memory.Allocation]) -> dict[int, int]:
    """Where each allocation of temporaries is drawn: one above the other, in the order of their numbers."""
    sizes = {one.number: one.bytes for one in allocations}
    numbers = sorted(sizes)
    starts = itertools.accumulate((sizes[number] for number in numbers), initial=0)
    return dict(zip(numbers, starts, strict=False))
