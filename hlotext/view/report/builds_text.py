"""Figures of builds without a page: for people in a line, for github-action-benchmark, as a comment of a pull request."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

import attrs

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import format_change, format_count, seconds
from hlotext.findings import escape
from hlotext.findings.shape_texts import short_shape
from hlotext.tables.figures import FIGURES

if TYPE_CHECKING:
    from hlotext.tables.history import BuildStep, Grown, History, NewFinding, Regression

MARKER = "<!-- hlotext:builds -->"
"""First line of a comment, by which the next run finds and replaces it."""
MOST_COMMENT = 60_000
"""Characters of a comment: code hosts take some 65,000."""
_SHAPE = 60
"""Characters of a shape in a comment."""
_MOST_MISSING = 20
"""Modules that a comment names because the newest build lacks them."""


def figure_text(figure: str, value: float) -> str:
    """Formats a value of a metric (a key of `FIGURES`)."""
    unit = FIGURES[figure][1]
    if unit == "bytes":
        return byte_text(int(value))
    if unit == "seconds":
        return seconds(value)
    return format_count(value) if unit else f"{value:,.0f}"


def figure_texts(figure: str, *values: float) -> tuple[str, ...]:
    """Formats values of a metric (a key of `FIGURES`), exactly if different values would otherwise look equal."""
    texts = tuple(figure_text(figure, value) for value in values)
    if len(set(texts)) == len(set(values)):
        return texts
    unit = FIGURES[figure][1].replace("operations", "")
    return tuple(f"{value:,.15g} {unit}".rstrip() for value in values)


def change_of(before: float, value: float) -> tuple[float, str]:
    """Returns the relative change in percent, and as text; if `before` is 0, the value itself."""
    if not before:
        return value, "new" if value else "none"
    change = (value - before) / before
    return 100 * change, format_change(change)


def benchmark(found: History) -> str:
    """Returns metrics of the newest build as JSON for github-action-benchmark (smaller is better)."""
    newest = found.builds[-1]
    rows = [
        {
            "name": f"{escape.line(module.name)}: {title}",
            "unit": unit or "count",
            "value": values[newest],
            "extra": f"build {escape.line(newest)}",
        }
        for module in found.modules
        for figure, (title, unit, _) in FIGURES.items()
        if newest in (values := module.values[figure])
    ]
    return json.dumps(rows, indent=2) + "\n"


def builds_comment(found: History, figures: Collection[str]) -> str:
    """Returns a Markdown comparison of the newest build with the last good one, for some metrics (keys of `FIGURES`).

    Rows beyond `MOST_COMMENT` characters are dropped.
    """
    newest = found.builds[-1]
    worse = found.regressions(figures)
    lines = [MARKER, f"**hlotext**: build {_cell(newest)}"]
    lines += [f"{_cell(one.module)}: not compared: {_cell(one.why)}" for one in found.missing[:_MOST_MISSING]]
    if not worse:
        all_compared = "" if found.missing else " of any module"
        lines.append(f"No metric{all_compared} is above the last good build.")
        return "\n\n".join(lines) + "\n"
    rows = [
        "| module | metric | last good | now | change | largest rise | cause | line |",
        "| --- | --- | ---: | ---: | ---: | --- | --- | --- |",
    ]
    for rise in worse:
        build, build_change, cause = present_cause(found, rise)
        cells = (
            rise.module,
            FIGURES[rise.figure][0],
            *figure_texts(rise.figure, rise.good, rise.value),
            change_of(rise.good, rise.value)[1],
            f"{build} ({build_change})" if build_change else build,
            f"{cause.name} {cause.shape}".rstrip() + cause.detail,
            cause.place.rpartition("/")[2],
        )
        rows.append(f"| {' | '.join(map(_cell, cells))} |")
    size, kept = sum(map(len, lines)), []
    for row in rows:
        size += len(row) + 1
        if size > MOST_COMMENT - 200:
            break
        kept.append(row)
    left = len(rows) - len(kept)
    lines.append("\n".join(kept))
    if left:
        lines.append(f"and {left:,} more rows; the builds page has all of them.")
    return "\n\n".join(lines) + "\n"


@attrs.frozen
class Cause:
    """The operations that grew most where a metric rose, or the finding that explains the rise."""

    name: str = ""
    """Of an operation, or the code of a finding."""
    shape: str = ""
    """Of an operation, on one line."""
    detail: str = ""
    """Text behind the name: how much it is, or the finding's message."""
    place: str = ""
    """The line of Python with the file's path."""


def cause_of(step: BuildStep) -> Cause:
    """Returns the cause of a rise: the operations that grew most, or a finding.

    For peak memory, a finding about memory that is held is preferred to operations that hold no more of it, since it
    gives the reason.
    """
    new = next((one for one in step.findings if one.severity != "note"), None)
    grown, count = _most_grown(step)
    if step.figure == "peak_bytes":
        held = max(step.findings, key=lambda one: one.held_bytes, default=None)
        if held is not None and held.held_bytes >= max(1, grown.more_held if grown is not None else 0):
            return _finding(held)
    if new is not None and (step.figure == "findings" or grown is None):
        return _finding(new)
    if grown is None:
        return Cause()
    together = "line" if count > 1 else "scope"
    alike = (
        f", {grown.alike:,} {grown.label} operations of one {together}"
        if grown.alike > 1
        else f", {grown.label}"
    )
    return Cause(
        grown.name,
        short_shape(grown.shape, _SHAPE),
        f"{alike}{_more(step, grown)}",
        place_text(grown.file, grown.line),
    )


def present_cause(found: History, rise: Regression) -> tuple[str, str, Cause]:
    """Returns the build in which a persisting rise began, the change of the metric there, and its cause.

    The cause is never a finding that the newest build no longer has. For the number of findings, it is the first
    remaining one of those that appeared since the last good build; findings that disappeared again are named as such.
    """
    step = found.largest_rise(rise)
    mine = [one for one in found.findings_since(rise.module, rise.good_build) if one.severity != "note"]
    left = [one for one in mine if not one.gone_build]
    if rise.figure == "findings" and left:
        steps = found.steps_of.get((rise.module, rise.figure), ())
        rises = [one for one in steps if one.build == left[0].build and one.is_worse]
        change = change_of(rises[0].before, rises[0].value)[1] if rises else ""
        gone = [
            f"; {one.code} of {one.build} no longer occurs since {one.gone_build}"
            for one in mine
            if one.gone_build and one in found.gone_findings(one.gone_build, rise.module)
        ]
        cause = _finding(left[0])
        return left[0].build, change, attrs.evolve(cause, detail=cause.detail + "".join(dict.fromkeys(gone)))
    if step is None:
        return "", "", Cause()
    there = tuple(one for one in step.findings if not one.gone_build)
    cause = cause_of(attrs.evolve(step, findings=there))
    return step.build, change_of(step.before, step.value)[1], cause


def _finding(one: NewFinding) -> Cause:
    return Cause(one.code, "", f": {one.message}", place_text(one.file, one.line))


PARTS = {
    "peak_bytes": "more_held",
    "least_seconds": "more_seconds",
    "flops": "more_flops",
    "wire_bytes": "more_sent",
}
"""The field of `Grown` by figures that are the sum of what operations have of them."""


def _most_grown(step: BuildStep) -> tuple[Grown | None, int]:
    """Operations that grew most, and their number of scopes: those of one kind and line together in figures that are sums."""
    part = PARTS.get(step.figure)
    groups: dict[tuple[str, str, int | None], list[Grown]] = {}
    for one in step.grown if part is not None else ():
        if one.file is not None:
            groups.setdefault((one.label, one.file, one.line), []).append(one)
    if part is None or not groups:
        return (step.grown[0] if step.grown else None), 1
    sums = {key: sum(getattr(one, part) for one in each) for key, each in groups.items()}
    most = max(groups, key=lambda key: sums[key])
    first, *others = groups[most]
    if not others or sums[most] < getattr(step.grown[0], part):
        return step.grown[0], 1
    alike = sum(max(1, one.alike) for one in groups[most])
    return attrs.evolve(first, alike=alike, **{part: sums[most]}), 1 + len(others)


def _more(step: BuildStep, grown: Grown) -> str:
    """The part of the rise that is theirs, where it is known; of one that is more than the rise, that others fell."""
    part = getattr(grown, PARTS.get(step.figure, ""), 0)
    if part > 0:
        rise = step.value - step.before
        own, whole = (figure_text(step.figure, each) for each in (part, rise))
        fell = f", others −{figure_text(step.figure, part - rise)}" if part > rise and own != whole else ""
        return f", +{own}{fell}"
    return ""


def place_text(file: str | None, line: int | None) -> str:
    """Returns `FILE:LINE` of a Python source line; empty if it is unknown."""
    return f"{file}:{line}" if file else ""


def _cell(text: str) -> str:
    return escape.markdown(escape.line(text)[:300])
