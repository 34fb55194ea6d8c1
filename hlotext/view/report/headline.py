"""The figures at the top of a report, and of two which differ most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import attrs

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import format_count, pluralize, seconds
from hlotext.memory import usage
from hlotext.reports.human import basis_of, saving
from hlotext.view.report.builds_text import change_of
from hlotext.view.report.parts import Tile
from hlotext.view.report.report_input import ReportInput
from hlotext.view.report.sections.memory import limit_text

PEAK, TIME, FINDINGS, FLOPS = "peak memory", "minimum time", "findings", "flops"
MOVED, SENT, INSTRUCTIONS = "bytes moved", "sent", "instructions"
_ORDER = (PEAK, TIME, FINDINGS, FLOPS, MOVED, SENT, INSTRUCTIONS)
_COSTS = (PEAK, TIME, FINDINGS, FLOPS, MOVED, SENT)
"""Figures of which less is better."""


def tiles(subject: ReportInput) -> Iterator[Tile]:
    """Yields the metrics at the top of a report, as far as known."""
    try:
        space = usage.space_usage(subject.memory, 0)
        yield Tile(PEAK, byte_text(space.peak), limit_text(space), space.peak)
    except ValueError:
        pass
    if subject.estimate is not None and subject.estimate.seconds:
        time = seconds(subject.estimate.seconds)
        choice = subject.chip_choice
        assumed = "" if choice is None or choice.is_known else " assumed"
        detail = f"estimated, {subject.estimate.chip.name}{assumed}"
        yield Tile(TIME, time, detail, subject.estimate.seconds)
    elif subject.by_default is not None and subject.by_default[0].seconds:
        found, chip = subject.by_default
        detail = f"estimated, {chip}: the module does not name its chip; set --chip"
        yield Tile(TIME, seconds(found.seconds), detail, found.seconds)
    # Also where there are none: that is what a repair is for.
    yield Tile(FINDINGS, f"{len(subject.findings):,}", _saved(subject), len(subject.findings), is_few=True)
    run = subject.cost.run
    more = "" if run.is_exact else run.bound or "about"
    yield Tile(FLOPS, format_count(run.flops), more or "in one run", run.flops)
    moved = int(run.bytes_accessed)
    yield Tile(MOVED, byte_text(moved), more or "in one run", moved)
    flows = subject.traffic.flows
    if flows:
        total = sum(flow.total or 0 for flow in flows)
        yield Tile(SENT, byte_text(total), f"{pluralize(len(flows), 'transfer')}, each device", total)
    count = sum(len(computation) for computation in subject.module.computations)
    yield Tile(INSTRUCTIONS, f"{count:,}", f"{len(subject.module.computations):,} computations", count)


def _saved(subject: ReportInput) -> str:
    """The largest saving of time, with the basis as the linter says it."""
    timed = [one for one in subject.findings if one.seconds]
    if not timed:
        return "" if subject.findings else "with the default rules"
    most = max(timed, key=lambda one: one.seconds or 0.0)
    return f"the largest saves {saving(most)}, {basis_of(most)}"


_NONE = {SENT: Tile(SENT, "0 B", "no transfers", 0)}
"""Figures that are left out where they are 0."""


def side_by_side(before: Sequence[Tile], after: Sequence[Tile]) -> tuple[tuple[Tile, ...], tuple[Tile, ...]]:
    """Returns the same metrics for both sides; those of the second state the change."""
    sides = [{tile.title: tile for tile in side} for side in (before, after)]
    titles = [title for title in _ORDER if any(title in side for side in sides)]
    old, new = (
        [side.get(title) or _NONE.get(title) or Tile(title, "–", "not known") for title in titles]
        for side in sides
    )
    return tuple(old), tuple(
        attrs.evolve(tile, change=_change(was, tile), worse=_worse(was, tile))
        for was, tile in zip(old, new, strict=True)
    )


def joined(before: Sequence[Tile], after: Sequence[Tile]) -> tuple[Tile, ...]:
    """Returns the metrics of both sides in one row: `77.0 → 412 MiB`."""
    return tuple(
        attrs.evolve(new, text=_both(old.text, new.text), detail=_details(old.detail, new.detail))
        for old, new in zip(before, after, strict=True)
    )


def _both(old: str, new: str) -> str:
    if old == new:
        return old
    (number, _, unit), (_, _, other) = old.partition(" "), new.partition(" ")
    return f"{number if unit and unit == other else old} → {new}"


def _details(old: str, new: str) -> str:
    return new if old == new or not new else f"after: {new}"


def _worse(before: Tile, after: Tile) -> bool | None:
    if (
        before.value is None
        or after.value is None
        or before.value == after.value
        or after.title not in _COSTS
    ):
        return None
    return after.value > before.value


def _change(before: Tile, after: Tile) -> str:
    if before.value is None or after.value is None:
        return ""
    if before.value == after.value:
        return "unchanged"
    if after.is_few:
        return f"{after.value - before.value:+,.0f}".replace("-", "−")
    return change_of(before.value, after.value)[1]


def differences(before: Sequence[Tile], after: Sequence[Tile]) -> tuple[tuple[str, float], ...]:
    """Returns the metrics known on both sides by relative difference, largest first."""
    found = {
        new.title: _proportion(old.value, new.value)
        for old, new in zip(before, after, strict=True)
        if old.value is not None and new.value is not None
    }
    return tuple(sorted(found.items(), key=lambda item: -item[1]))


def _proportion(before: float, after: float) -> float:
    return abs(after - before) / before if before else math.inf if after else 0.0
