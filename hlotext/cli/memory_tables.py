"""Tables of `hlotext memory`: memory spaces, live values, sharing of buffers, what-if results."""

from __future__ import annotations

from collections.abc import Sequence

from hlotext import memory
from hlotext.analysis import byte_text
from hlotext.cli.listing import Listing, Row, Shown
from hlotext.cli.output import Output, echo, output
from hlotext.memory import explanation, usage, what_if
from hlotext.view import memory_picture

_BARS = 24


def moment_text(shown: memory.Assignment, time: int) -> str:
    """Returns a time of the schedule with the operation that runs then."""
    if not shown.schedule:
        return "the start"
    place = shown.schedule[time]
    return f"step {time} ({place if isinstance(place, str) else place.name})"


def show_spaces(report: Output, shown: memory.Assignment) -> None:
    """Prints the use of each memory space."""
    spaces = [usage.space_usage(shown, space) for space in shown.memory_spaces()]
    title = f"Memory spaces ({usage.SPACES_LEGEND}; ~ estimated)"
    report.table(Listing("memory.spaces", _space).table(title, [full for full in spaces if full.needed]))
    zero = usage.space_usage(shown, 0)
    fast = usage.fast_memory_text(shown)
    report.facts(
        [
            *([] if fast is None else [fast]),
            (
                "static",
                f"arguments {byte_text(zero.arguments)} ({byte_text(zero.aliased)} reused for results), "
                f"results in their own memory {byte_text(zero.results)}, constants {byte_text(zero.constants)}",
            ),
        ]
    )


def excess_facts(shown: memory.Assignment, memory_space: int = 0) -> list[tuple[str, str]]:
    """Returns the fact that a program does not fit in a memory of its chip; empty if it fits or the size is unknown."""
    text = usage.excess_text(shown, memory_space)
    return [("does not fit", text)] if text else []


def _space(full: usage.SpaceUsage) -> Row:
    mark = "~" if full.is_estimated else ""
    return (
        full.name if full.name.startswith("S(") else f"{full.name} ({full.memory_space})",
        full.capacity,
        full.usable if full.usable != full.capacity else None,
        full.static,
        Shown(full.heap, mark + byte_text(full.heap)),
        full.needed,
        full.peak,
        Shown(full.fragmentation, f"{mark}{100 * full.fragmentation:.0f}%"),
        full.padding,
    )


def show_arrays(report: Output, arrays: Sequence[usage.LiveArray], where: str, limit: int) -> None:
    """Prints live values at a point, one row each; equal values of all layers share a row."""
    folded = usage.repeated(arrays)
    total = sum(array.bytes for array in arrays)
    report.table(Listing("memory.live", _live).table(f"Live in {where}: {byte_text(total)}", folded, limit))


def _live(row: usage.RepeatedArray) -> Row:
    array = row.array
    return (
        row.bytes,
        f"{row.count} x {byte_text(array.bytes)}" if row.count > 1 else "",
        array.padding_factor,
        "all" if row.first is None else f"{row.first}-{row.last}",
        array.shape,
        array.shown + (" ..." if row.count > 1 else ""),
        array.scope if array.kind == "temporary" else array.kind,
        usage.line_text(array.place),
    )


def show_groups(report: Output, groups: Sequence[usage.LiveGroup], by: str, where: str, limit: int) -> None:
    """Prints live bytes by group."""
    total = sum(group.bytes for group in groups) or 1

    def row(group: usage.LiveGroup) -> Row:
        share = f"{100 * group.bytes / total:.0f}%"
        return group.bytes, share, group.padding, group.arrays, group.name, group.largest

    listing = Listing("memory.groups", row, {"by": by})
    report.table(listing.table(f"Live in {where}, by {by}", groups, limit))


def show_timeline(shown: memory.Assignment, memory_space: int) -> None:
    """Prints live bytes over the schedule as bars."""
    bars = memory_picture.bars(shown, memory_space, _BARS)
    full = usage.space_usage(shown, memory_space)
    echo(f"\nLive in {full.name} over time (light: static, {byte_text(full.static)}; > the peak)")
    for line in memory_picture.bar_lines(bars, full.static, output().width or 100):
        echo(line)


def show_buffer(report: Output, explained: explanation.BufferExplanation, limit: int) -> None:
    """Prints the values that share an instruction's buffer, and reasons against others."""
    life = _life(explained.live_range)
    places = " (estimated)" if explained.is_estimated else ""
    report.facts(
        [
            ("buffer", f"{explained.name}: {explained.shape}"),
            ("live", life),
            (
                "at",
                f"allocation {explained.allocation} ({explained.kind}), memory space {explained.memory_space}, offset "
                f"{explained.offset}{places}, {byte_text(explained.bytes)}",
            ),
        ]
    )
    listing: Listing[explanation.Sharer] = Listing(
        "memory.sharers", lambda one: (one.name, _life(one.live_range), one.bytes, one.why)
    )
    report.table(listing.table("Must alias this buffer", explained.must_share, limit))
    report.table(listing.table("Share these bytes at other times", explained.in_turn, limit))
    refused: Listing[explanation.Refusal] = Listing("memory.refusals")
    report.table(refused.table("Operands not reused in place", explained.refusals))


def _life(span: tuple[int, int] | None) -> str:
    return "not in the schedule" if span is None else f"{span[0]}-{span[1]}"


def show_what_if(report: Output, outcomes: Sequence[what_if.WhatIf]) -> None:
    """Prints peaks before and after changes."""
    for outcome in outcomes:
        report.facts(
            [
                ("what if", outcome.what),
                ("peak", f"{_change(outcome.peak_before, outcome.peak_after, outcome)} ({_signed(outcome)})"),
                ("needed", _change(outcome.needed_before, outcome.needed_after, outcome)),
                *(("note", note) for note in outcome.notes),
            ]
        )


def _change(before: int, after: int, outcome: what_if.WhatIf) -> str:
    """Bytes before and after; a range where the compiler may move more to fast memory than can be told."""
    return f"{byte_text(before)} -> {_range(after - outcome.more_at_most, after)}"


def _range(least: int, most: int) -> str:
    """Two sizes; one if they read alike."""
    return " to ".join(dict.fromkeys((byte_text(least), byte_text(most))))


def _signed(outcome: what_if.WhatIf) -> str:
    saved = outcome.saved
    if outcome.more_at_most:
        return f"{_range(saved, saved + outcome.more_at_most)} less"
    if not saved:
        return "unchanged"
    return f"{byte_text(saved)} less" if saved > 0 else f"{byte_text(-saved)} more"


def show_differences(report: Output, differences: Sequence[memory.AssignmentDifference], limit: int) -> None:
    """Prints differences between the computed assignment and XLA's files."""
    real = [difference for difference in differences if not difference.is_estimated]
    estimated = len(differences) - len(real)
    report.facts(
        [
            ("check", "equal to XLA's files" if not real else f"{len(real)} differences"),
            *(
                [("estimated", f"{estimated} offsets differ; the text does not show them")]
                if estimated
                else []
            ),
        ]
    )
    report.table(Listing[memory.AssignmentDifference]("memory.differences").table("Differences", real, limit))
