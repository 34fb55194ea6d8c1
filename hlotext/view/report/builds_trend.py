"""The trend of a figure over the builds as a picture, with a mark at each change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from hlotext.analysis.formatting import pluralize
from hlotext.findings import escape
from hlotext.tables.figures import FIGURES
from hlotext.view.report.builds_text import cause_of, change_of, figure_text, figure_texts

if TYPE_CHECKING:
    from hlotext.tables.history import BuildStep, ModuleHistory

_WIDE, _HIGH, _EDGE = 600, 44, 6
"""Width and height of a trend, and the margin above and below it."""
MARKS = {
    "worse": "worse",
    "better": "better",
    "accepted": "accepted",
    "unread": "unreadable or ambiguous",
    "absent": "not in the build",
}
"""Marks of a trend, with what they mean."""


def kind_of(step: BuildStep) -> str:
    """Returns the kind of a change: `better`, `worse` or `accepted`."""
    if not step.is_worse:
        return "better"
    return "worse" if step.accepted is None else "accepted"


def gap_of(module: ModuleHistory, build: str) -> str:
    """Returns why a build has no value of a module: `unread` if its file could not be read, else `absent`."""
    return "unread" if build in module.unknown else "absent"


def picture(
    builds: Sequence[str],
    figure: str,
    module: ModuleHistory,
    steps: Iterable[BuildStep],
    numbers: Mapping[tuple[str, str], int],
    good_build: str = "",
) -> Markup:
    """Returns an SVG of a metric over builds, as a line with gaps where a build has no value and a mark at each change.

    A dashed line marks the value of `good_build`, the last good one.
    """
    values = module.values[figure]
    low, high = min(values.values()), max(values.values())
    span = float(high - low)
    wide = _WIDE / max(1, len(builds))
    x = {build: (n + 0.5) * wide for n, build in enumerate(builds)}

    def y(value: float) -> float:
        return _HIGH - _EDGE - ((float(value) - low) / span if span else 0.5) * (_HIGH - 2 * _EDGE)

    path, gaps, hovered, is_on = [], [], [], False
    for build in builds:
        left, right = f"{x[build] - wide / 2:.1f}", f"{x[build] + wide / 2:.1f}"
        kind = "" if build in module.paths else gap_of(module, build)
        why = module.unknown.get(build, "not in the build" if kind else "no value")
        says = f"{FIGURES[figure][0]} in {build}: {figure_text(figure, values[build]) if build in values else why}"
        area = f'<rect x="{left}" y="0" width="{wide:.1f}" height="{_HIGH}">'
        hovered.append(f"{area}<title>{_safe(says)}</title></rect>")
        if build not in values:
            at = f'x1="{x[build]:.1f}" x2="{x[build]:.1f}" y1="2" y2="{_HIGH - 2}"'
            gaps.append(f'<line class="{kind or "unread"}" {at}/>')
            is_on = False
            continue
        # A build has its value from edge to edge, so that a step is one and no slope.
        path.append(f"{f'V{y(values[build]):.1f}' if is_on else f'M{left} {y(values[build]):.1f}'}H{right}")
        is_on = True
    marks = []
    for one in steps:
        kind = kind_of(one)
        says = f"{FIGURES[figure][0]} in {one.build}: {_told(one)}"
        number = numbers[one.build, one.module]
        # Points of lines with round ends stay round however the picture is stretched.
        point = f'd="M{x[one.build]:.1f} {y(one.value):.1f}h0"'
        inside = f'<path class="inside" {point}/>' if kind == "accepted" else ""
        dot = f'<path class="dot {kind}" {point}/>{inside}<title>{_safe(says)}</title>'
        marks.append(f'<a href="#step-{number}" aria-label="{_safe(says)}">{dot}</a>')
    first = figure_text(figure, values[next(build for build in builds if build in values)])
    label = f"{FIGURES[figure][0]} from {first}, {pluralize(len(marks), 'change')}"
    good = ""
    if good_build in values:
        at = f"{y(values[good_build]):.1f}"
        says = f"last good: {good_build}: {figure_text(figure, values[good_build])}"
        good = (
            f'<line class="good" x1="0" x2="{_WIDE}" y1="{at}" y2="{at}"><title>{_safe(says)}</title></line>'
        )
    drawn = f'{"".join(gaps)}{good}<path d="{"".join(path)}"/>{"".join(hovered)}{"".join(marks)}'
    tag = f'<svg viewBox="0 0 {_WIDE} {_HIGH}" preserveAspectRatio="none" role="img" aria-label="{_safe(label)}">'
    return Markup(f'<div class="drawn">{tag}{drawn}</svg>{_scale(figure, low, high)}</div>')


def _told(step: BuildStep) -> str:
    """A change for the pointer: both figures, the change, what it is, and where it comes from."""
    texts = figure_texts(step.figure, step.before, step.value)
    told = [f"{' → '.join(texts)} ({change_of(step.before, step.value)[1]})"]
    if step.is_worse:
        told += (
            [] if step.accepted is None else [f"accepted: {step.accepted}" if step.accepted else "accepted"]
        )
        cause = cause_of(step)
        told += [f"{cause.name}{cause.detail}"] if cause.name else []
        told += [cause.place] if cause.place else []
    return "; ".join(told)


def _scale(figure: str, low: float, high: float) -> str:
    """The largest and the smallest value at their heights: the picture does not begin at 0."""
    texts = figure_texts(figure, high, low) if high != low else (figure_text(figure, low),)
    names = ("high", "low") if len(texts) > 1 else ("middle",)
    return "".join(
        f'<span class="{name}">{_safe(text)}</span>' for name, text in zip(names, texts, strict=True)
    )


def ticks(builds: Sequence[str]) -> list[tuple[float, str]]:
    """Returns the builds labeled on the axis, the first, middle and last one, each with its position in percent."""
    places = sorted({0, len(builds) // 2, len(builds) - 1})
    return [(round(100 * (n + 0.5) / len(builds), 2), builds[n]) for n in places]


def _safe(text: str) -> str:
    return escape.html(escape.line(text))
