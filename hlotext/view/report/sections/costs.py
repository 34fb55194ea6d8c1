"""Operations, bytes and time by scope and by line of Python: `hlotext cost` and `hlotext cost --chip`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from hlotext import cost
from hlotext.analysis import Phase, Scope, byte_text, scopes
from hlotext.analysis.formatting import format_count, pluralize
from hlotext.analysis.formatting import seconds as time_text
from hlotext.analysis.scopes import TOP
from hlotext.cost.analysis import UNKNOWN_LINE
from hlotext.view.page.packing import Words
from hlotext.view.report.parts import Chart, PageTable, Section, columns_of, cut
from hlotext.view.report.report_input import ReportInput

_LINES, _SCOPES = columns_of("report.costs_lines"), columns_of("report.costs_scopes")
"""The last column, of seconds, needs the chip."""
_MOST_LEVELS = 14
"""Levels of scopes below the module that are drawn at once."""


def by_scope(subject: ReportInput) -> Section:
    """Returns the section on costs by scope, as an icicle chart and a table."""
    found = subject.cost
    root = cost.scope_tree(found)
    times = _tree_seconds(subject, root)
    nodes = _flat(root, times)
    run = found.run
    facts = [
        ("flops", f"{run.mark}{format_count(run.flops)} in one run"),
        ("bytes", f"{run.mark}{byte_text(int(run.bytes_accessed))} read and written"),
    ]
    if run.bytes_accessed:
        facts.append(("flops per byte", f"{run.flops / run.bytes_accessed:.3g}"))
    facts += _compiler_facts(subject)
    chart = Chart(
        "scopes",
        "icicle",
        "Program scopes, repeated layers merged",
        f"{len(nodes):,} scopes; the width of each is its share of the chosen metric, and nested scopes are below "
        "the enclosing one.",
        _icicle_data(nodes, times is not None),
        27 * (1 + min(_MOST_LEVELS, max((place.depth for place in nodes), default=0))),
        _own_weights(nodes, has_seconds=times is not None),
    )
    return Section(
        "scopes",
        "Scopes",
        "Operations and bytes of one run, including all loop iterations (`hlotext cost`)"
        + (
            f", and the minimum time on the chip (`hlotext cost --chip`). {TIMES_LEGEND}"
            if times is not None
            else "."
        ),
        facts=facts,
        charts=[chart] if len(nodes) > 1 else [],
        tables=[_scope_table(subject, found)],
        notes=_unknown(run),
    )


def _compiler_facts(subject: ReportInput) -> Iterator[tuple[str, str]]:
    """The figures of XLA's own analysis, on TPU those of its compiler; nothing where a rate of the chip is not known."""
    choice = subject.chip_choice
    if subject.platform != "tpu":
        xla = subject.cost.as_xla(None)
        said = f"{format_count(xla.flops)} flops, {byte_text(int(xla.bytes_accessed))} moved"
        yield "XLA's own", ", ".join((said, *subject.cost.xla_omissions))
        return
    if choice is None or choice.chip.rates.compiler_limits is None:
        return
    try:
        own = subject.cost.as_tpu(choice.chip)
    except ValueError:
        return
    more = f"{'at least ' if own.left_out else ''}{time_text(own.least_seconds)} without overlap"
    once = ", loop bodies once" if subject.cost.counts_loops_again else ""
    calls = f", {pluralize(own.left_out, 'call')} of unknown cost excluded" if own.left_out else ""
    yield (
        "XLA cost model",
        f"{format_count(own.flops)} flops, {own.moved} moved with padding, {more}{once}{calls}",
    )


def by_line(subject: ReportInput) -> Section:
    """Returns the section on costs by source line."""
    found = subject.cost
    times = seconds_by(subject, "line")
    parts = found.by("line")
    sent = subject.estimate.seconds_by("line", only_transfers=True) if subject.estimate is not None else None
    rows = [
        (*_row(name, part, found, times), *(() if sent is None else (sent.get(name),)))
        for name, part in parts.items()
    ]
    rows.sort(key=lambda row: (row[0] == UNKNOWN_LINE, -(row[-2] or 0) if times else 0))
    columns = _LINES if times is not None else _LINES[:-2]
    return Section(
        "lines",
        "Python lines",
        "What each source line costs in one run (`hlotext cost --by line`). Instructions added by the compiler are included."
        + (f" {TIMES_LEGEND} Hatched: transfers." if times is not None else ""),
        tables=[PageTable("lines-cost", "Costs by line", columns, cut(rows), total=len(rows))],
    )


def _unknown(run: cost.RunCost) -> list[str]:
    notes = []
    if run.unknown_loops:
        notes.append(f"{pluralize(len(run.unknown_loops), 'loop')} with unknown trip count, counted once.")
    if run.conditionals:
        notes.append(f"{pluralize(len(run.conditionals), 'conditional')}, counted as the costliest branch.")
    if run.unknown_calls:
        calls = len(run.unknown_calls)
        notes.append(f"{pluralize(calls, 'custom call')} of unknown cost, counted by bytes only.")
    if run.at_most_calls:
        notes.append(f"{pluralize(len(run.at_most_calls), 'kernel')}, counted with all branches.")
    if run.uncounted:
        notes.append(f"{pluralize(len(run.uncounted), 'other instruction')} not counted.")
    return notes


def _row(name: str, part: cost.Cost, found: cost.Analysis, times: dict[str, float] | None) -> tuple[Any, ...]:
    run = found.run
    return (
        name,
        part.flops,
        part.flops / run.flops if run.flops else None,
        part.bytes_accessed,
        part.bytes_accessed / run.bytes_accessed if run.bytes_accessed else None,
        *(() if times is None else (times.get(name, 0.0),)),
    )


def _scope_table(subject: ReportInput, found: cost.Analysis) -> PageTable:
    times = seconds_by(subject, "scope")
    rows = [_row(name, part, found, times) for name, part in found.by("scope").items()]
    columns = _SCOPES if times is not None else _SCOPES[:-1]
    return PageTable(
        "scopes-cost",
        "Costs by scope, each excluding nested scopes",
        columns,
        cut(rows),
        len(rows),
        is_open=False,
    )


# ---- times


TIMES_LEGEND = "Minimum time: core, links and copy engines overlap, so the sum can exceed the run."
"""The units that columns of times count."""


def seconds_by(subject: ReportInput, key: cost.Key) -> dict[str, float] | None:
    """Returns the seconds of all units by scope or line; None if the chip is unknown."""
    if subject.estimate is None:
        return None
    return subject.estimate.seconds_by(key)


def _tree_seconds(subject: ReportInput, root: cost.ScopeCost) -> dict[cost.ScopeCost, float] | None:
    """Seconds of all units by scope of the tree, what is inside a scope counted with it."""
    if subject.estimate is None:
        return None
    named = scopes(subject.module)
    own: dict[Scope, float] = {}
    for instruction, seconds in subject.estimate.busy_instructions():
        scope = named.of(instruction)
        own[scope] = own.get(scope, 0.0) + seconds
    found: dict[cost.ScopeCost, float] = {}
    for scope, seconds in own.items():
        node: cost.ScopeCost | None = root
        for name in (*(named.folded(scope) or (TOP,)), ""):
            if node is None:
                break
            found[node] = found.get(node, 0.0) + seconds
            node = node.children.get(name)
    return found


# ---- the tree


@attrs.frozen
class _Place:
    """One scope of the tree, with the number of the one around it."""

    node: cost.ScopeCost
    parent: int
    depth: int
    seconds: float
    path: str


def _flat(root: cost.ScopeCost, seconds: dict[cost.ScopeCost, float] | None) -> list[_Place]:
    times = seconds or {}
    found = [_Place(root, -1, 0, times.get(root, 0.0), "")]
    waiting = [0]
    while waiting:
        number = waiting.pop()
        around = found[number]
        for child in around.node.sorted_children():
            waiting.append(len(found))
            path = f"{around.path}/{child.name}" if around.path else child.name
            found.append(_Place(child, number, around.depth + 1, times.get(child, 0.0), path))
    return found


def _own_weights(nodes: list[_Place], *, has_seconds: bool) -> dict[str, float]:
    """Costs of each scope without those inside it, in seconds or in bytes."""
    weights = [place.seconds if has_seconds else float(place.node.bytes_accessed) for place in nodes]
    own = list(weights)
    for place, weight in zip(nodes, weights, strict=True):
        if place.parent >= 0:
            own[place.parent] -= weight
    return {place.path: max(0.0, weight) for place, weight in zip(nodes, own, strict=True) if place.path}


def _icicle_data(nodes: list[_Place], has_seconds: bool) -> dict[str, Any]:
    words = Words()
    phases = (Phase.FORWARD, Phase.BACKWARD, Phase.RECOMPUTED)
    return {
        "metrics": ["bytes", "flops", *(["seconds"] if has_seconds else [])],
        "scale": {
            "bytes": nodes[0].node.bytes_accessed,
            "flops": nodes[0].node.flops,
            "seconds": nodes[0].seconds,
        },
        "parent": [place.parent for place in nodes],
        "path": [place.path for place in nodes],
        "name": [words.number(place.node.name or "(whole module)") for place in nodes],
        "flops": [place.node.flops for place in nodes],
        "bytes": [place.node.bytes_accessed for place in nodes],
        "seconds": [place.seconds for place in nodes] if has_seconds else None,
        "phases": [
            [round(place.node.phases.get(phase, 0) / place.node.flops, 4) for phase in phases]
            if place.node.flops
            else None
            for place in nodes
        ],
        "words": words.texts,
    }
