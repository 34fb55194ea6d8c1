"""What `hlotext memory` prints: memory spaces, what lives at a moment, who shares a buffer, what would change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlotext import memory
from hlotext.analysis import byte_text
from hlotext.cli.output import Column, Output, Table, echo, output
from hlotext.memory import explanation, usage, what_if
from hlotext.view import memory_picture

_BARS = 24


def moment_text(shown: memory.Assignment, time: int) -> str:
    """A moment, and what runs then."""
    if not shown.schedule:
        return "the start"
    place = shown.schedule[time]
    return f"{time}, {place if isinstance(place, str) else place.name}"


def show_spaces(report: Output, shown: memory.Assignment) -> None:
    """How full each memory space is."""
    rows: list[tuple[str, ...]] = []
    for space in shown.memory_spaces():
        full = usage.space_usage(shown, space)
        if not full.needed:
            continue
        mark = "~" if full.is_estimated else ""
        rows.append(
            (
                f"{full.name} ({space})",
                byte_text(full.capacity) if full.capacity is not None else "",
                byte_text(full.static),
                mark + byte_text(full.heap),
                byte_text(full.peak),
                f"{mark}{100 * full.fragmentation:.0f}%",
                byte_text(full.padding),
            )
        )
    titles: tuple[str, ...] = ("space", "capacity", "static", "heap", "peak", "unused", "padding")
    if not any(row[1] for row in rows):
        titles, rows = (titles[0], *titles[2:]), [(row[0], *row[2:]) for row in rows]
    columns = [Column(title, is_number=title != "space") for title in titles]
    report.table(
        Table(
            "Memory spaces (unused: of the heap at its fullest; ~: estimated)",
            columns,
            rows,
        )
    )
    zero = usage.space_usage(shown, 0)
    fast = shown.fast_memory
    bounds = [] if fast is None else [(fast_name(shown), f"{fast}{FAST_NOTE if not fast.is_exact else ''}")]
    report.facts(
        [
            *bounds,
            (
                "static",
                f"arguments {byte_text(zero.arguments)} ({byte_text(zero.aliased)} of them donated), "
                f"other results {byte_text(zero.results)}, constants {byte_text(zero.constants)}",
            ),
        ]
    )


FAST_NOTE = ": places there are the compiler's own search, which the text does not tell"


def fast_name(shown: memory.Assignment) -> str:
    """The name of the chip's fast memory, of which its compiler's total is told."""
    space = shown.platform.fast_space if shown.platform is not None else None
    return usage.space_name(shown, space) if space is not None else "fast memory"


def show_arrays(report: Output, arrays: Sequence[usage.LiveArray], where: str, limit: int) -> None:
    """What lives at a moment, one row each, and one for those that are the same in every layer."""
    folded = usage.repeated(arrays)
    rows = folded[:limit] if limit else folded
    total = sum(array.bytes for array in arrays)
    is_folded = any(row.count > 1 for row in rows)
    columns = [
        Column("bytes", is_number=True),
        *([Column("each", is_number=True)] if is_folded else []),
        Column("pad", is_number=True),
        Column("live", is_number=True),
        Column("shape"),
        Column("what"),
        Column("scope"),
        Column("line"),
    ]
    cells = []
    for row in rows:
        array = row.array
        scope = array.scope if array.kind == "temporary" else array.kind
        cells.append(
            (
                byte_text(row.bytes),
                *([f"{row.count} x {byte_text(array.bytes)}" if row.count > 1 else ""] if is_folded else []),
                ""
                if array.padding_factor is None or array.padding_factor < 1.005
                else f"{array.padding_factor:.2g}x",
                "all" if row.first is None else f"{row.first}-{row.last}",
                array.shape,
                _what(array) + (" ..." if row.count > 1 else ""),
                scope,
                usage.line_text(array.place),
            )
        )
    report.table(Table(f"Live in {where}: {byte_text(total)}", columns, cells, len(folded) - len(rows)))


def _what(array: usage.LiveArray) -> str:
    """What the program calls an argument; else the instruction, and of a loop's state also what fills it."""
    if array.opcode == "parameter" and array.kind != "temporary" and array.op_name:
        return array.op_name
    return f"{array.label} < {array.writer}" if array.writer else array.label


def show_groups(report: Output, groups: Sequence[usage.Group], by: str, where: str, limit: int) -> None:
    """Live bytes summed by something."""
    rows = groups[:limit] if limit else groups
    total = sum(group.bytes for group in groups) or 1
    columns = [
        Column("bytes", is_number=True),
        Column("share", is_number=True),
        Column("padding", is_number=True),
        Column("arrays", is_number=True),
        Column(by),
        Column("largest"),
    ]
    cells = [
        (
            byte_text(group.bytes),
            f"{100 * group.bytes / total:.0f}%",
            byte_text(group.padding) if group.padding else "",
            str(group.arrays),
            group.name,
            group.largest,
        )
        for group in rows
    ]
    report.table(Table(f"Live in {where}, by {by}", columns, cells, len(groups) - len(rows)))


def show_timeline(shown: memory.Assignment, memory_space: int) -> None:
    """Live bytes over time as bars."""
    bars = memory_picture.bars(shown, memory_space, _BARS)
    full = usage.space_usage(shown, memory_space)
    echo(f"\nLive in {full.name} over time (light: static, {byte_text(full.static)}; > the peak)")
    for line in memory_picture.bar_lines(bars, full.static, output().width or 100):
        echo(line)


def show_buffer(report: Output, explained: explanation.BufferExplanation, limit: int) -> None:
    """Who shares the memory of an instruction, and why not others."""
    life = _life(explained.live_range)
    places = " (estimated)" if explained.is_estimated else ""
    report.facts(
        [
            ("buffer", f"{explained.name}: {explained.shape}"),
            ("lives", life),
            (
                "lies in",
                f"allocation {explained.allocation} ({explained.kind}), memory space {explained.memory_space}, offset "
                f"{explained.offset}{places}, {byte_text(explained.bytes)}",
            ),
        ]
    )
    columns = [Column("value"), Column("lives"), Column("bytes", is_number=True), Column("why")]
    for title, sharers in (
        ("Must share this memory", explained.must_share),
        ("Lie in the same bytes at other times", explained.in_turn),
    ):
        rows = sharers[:limit] if limit else sharers
        cells = [(s.name, _life(s.live_range), byte_text(s.bytes), s.why) for s in rows]
        report.table(Table(title, columns, cells, len(sharers) - len(rows)))
    refused = [(refusal.name, refusal.why) for refusal in explained.refusals]
    report.table(
        Table("Operands that it is not written over", [Column("operand"), Column("because")], refused)
    )


def _life(span: tuple[int, int] | None) -> str:
    return "off the schedule" if span is None else f"{span[0]}-{span[1]}"


def show_what_if(report: Output, outcomes: Iterator[what_if.WhatIf]) -> None:
    """Peaks before and after changes."""
    for outcome in outcomes:
        report.facts(
            [
                ("what if", outcome.what),
                (
                    "peak",
                    f"{byte_text(outcome.peak_before)} -> {byte_text(outcome.peak_after)} ({_signed(outcome.saved)})",
                ),
                ("needed", f"{byte_text(outcome.needed_before)} -> {byte_text(outcome.needed_after)}"),
                *(("note", note) for note in outcome.notes),
            ]
        )


def _signed(saved: int) -> str:
    return f"{byte_text(saved)} less" if saved >= 0 else f"{byte_text(-saved)} more"


def show_differences(report: Output, differences: Sequence[memory.Difference], limit: int) -> None:
    """Where what is computed is not what the files say."""
    real = [difference for difference in differences if not difference.is_estimated]
    estimated = len(differences) - len(real)
    report.facts(
        [
            ("check", "what is computed is what XLA wrote" if not real else f"{len(real)} differences"),
            *([("estimated", f"{estimated} places that the text does not tell differ")] if estimated else []),
        ]
    )
    rows = real[:limit] if limit else real
    cells = [(d.item, d.name, d.read, d.computed) for d in rows]
    columns = [Column("item"), Column("of"), Column("XLA"), Column("computed")]
    report.table(Table("Differences", columns, cells, len(real) - len(rows)))


# ---- files and JSON
