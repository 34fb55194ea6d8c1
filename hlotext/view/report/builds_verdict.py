"""The newest build against the last good one: what is worse, the build that made it so, and the operation and line there."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
from markupsafe import Markup

from hlotext.analysis.formatting import pluralize
from hlotext.tables.figures import FIGURES, MISSING
from hlotext.view.report.builds_text import Cause, change_of, figure_text, figure_texts, present_cause
from hlotext.view.report.builds_trend import picture
from hlotext.view.report.parts import Tile

if TYPE_CHECKING:
    from hlotext.tables.history import History, Missing, ModuleHistory, Regression


@attrs.frozen
class Row:
    """A metric that exceeds its value in the last good build."""

    module: str
    figure: str
    """In words."""
    change: float
    change_text: str
    build: str
    """The build that made it worse by most, of findings the first with the cause; empty if no build did that nobody
    accepted."""
    number: int | None
    """Its card."""
    build_change: str
    cause: Cause
    good: float
    good_text: str
    value: float
    value_text: str
    good_build: str
    """With what rose there, if it is no good build in another figure."""
    picture: Markup


@attrs.frozen
class Trend:
    """A metric of a module over the builds, with the baseline of the newest build."""

    module: str
    figure: str
    value: float
    value_text: str
    change: float
    change_text: str
    """Since the first build."""
    baseline: str
    """Since when the figure is what it may be, and why."""
    number: int | None
    """The card of that change; None if there was none."""
    build: str
    picture: Markup


@attrs.frozen
class Accepted:
    """A change that was accepted."""

    build: str
    number: int | None
    module: str
    figure: str
    before_text: str
    value_text: str
    change: float
    change_text: str
    why: str


_MOST_TRENDS = 8
"""Rows of trends that a verdict has; all are further down."""


@attrs.frozen
class Verdict:
    """Comparison of the newest build with the last good one."""

    word: str
    kind: str
    lead: str
    rows: Sequence[Row]
    missing: Sequence[tuple[Missing, str]]
    """Modules that it lacks, each with the cause where its file could not be read."""
    accepts: str
    """The lines that accept all of it, so that the newest build passes."""

    has_modules: bool
    """True if there are several modules, so that each row says of which it is."""
    trends: Sequence[Trend]
    """Where no figure is above it: figures that changed, or the costs where none did."""
    accepted: Sequence[Accepted]
    """The changes that are accepted, newest first: they make the baseline."""


def verdict(
    found: History,
    regressions: Sequence[Regression],
    fail_on: Collection[str],
    numbers: Mapping[tuple[str, str], int],
) -> Verdict:
    """Compares the newest build with the last good one of each module, in the metrics of `--fail-on` and in all others.

    `numbers` are those of the cards, by build and module.
    """
    newest = found.builds[-1]
    failed = [one for one in regressions if one.figure in fail_on]
    lost = found.missing if MISSING in fail_on else []
    names = "any" if set(fail_on) == {*FIGURES, MISSING} else ",".join(fail_on)
    if failed or lost:
        word, kind = f"{newest} fails", "worse"
        reasons = [f"{pluralize(len(failed), 'metric')} above the last good build"] if failed else []
        reasons += [f"{pluralize(len(lost), 'module')} missing"] if lost else []
        lead = f"`--fail-on {names}`: {' and '.join(reasons)}"
        others = len(regressions) - len(failed)
        lead += f", and {pluralize(others, 'metric')} above it that it does not name." if others else "."
    elif regressions:
        word, kind = f"{newest} is above the last good build", "worse"
        lead = f"in {pluralize(len(regressions), 'metric')}"
        lead += f", none of them named by `--fail-on {names}`." if fail_on else "."
    elif found.missing:
        word, kind = f"{newest} could not be fully evaluated", "gone"
        lead = "No metric of the modules that are present is above the last good build."
    else:
        word, kind = f"{newest} passes", "better"
        lead = "No metric of any module is above the last good build."
    lines = [one.line for rise in regressions for one in found.open_rises(rise)]
    lines += [one.line for one in found.missing]
    modules = {one.name: one for one in found.modules}
    rows = [_row(found, modules[one.module], one, numbers) for one in regressions]
    missing = [(one, _unreadable(found, modules[one.module])) for one in found.missing]
    trends = [] if rows else list(itertools.islice(_trends(found, numbers), _MOST_TRENDS))
    return Verdict(
        word,
        kind,
        lead,
        rows,
        missing,
        "\n".join(dict.fromkeys(lines)),
        len(modules) > 1,
        trends,
        list(_accepted(found, numbers)),
    )


def _trends(found: History, numbers: Mapping[tuple[str, str], int]) -> Iterator[Trend]:
    """Figures that the newest build has: those that changed, costs before counts and what changed last first."""
    newest = found.builds[-1]
    keys = [
        (module, figure)
        for module in found.modules
        for figure, (_, unit, _) in FIGURES.items()
        if newest in module.values[figure] and (unit or found.steps_of.get((module.name, figure)))
    ]
    order = {build: n for n, build in enumerate(found.builds)}

    def last(key: tuple[ModuleHistory, str]) -> int:
        mine = found.steps_of.get((key[0].name, key[1]))
        return order[mine[-1].build] if mine else -1

    for module, figure in sorted(keys, key=lambda key: (last(key) < 0, not FIGURES[key[1]][1], -last(key))):
        values = module.values[figure]
        mine = found.steps_of.get((module.name, figure), ())
        first = float(values[next(build for build in found.builds if build in values)])
        change, change_text = change_of(first, float(values[newest]))
        step = mine[-1] if mine else None
        why = ""
        if step is not None:
            why = "costs less" if not step.is_worse else _because(step.accepted)
        yield Trend(
            module.name,
            FIGURES[figure][0],
            float(values[newest]),
            figure_text(figure, values[newest]),
            change,
            change_text,
            why,
            numbers.get((step.build, step.module)) if step is not None else None,
            step.build if step is not None else found.builds[0],
            picture(found.builds, figure, module, mine, numbers),
        )


def _because(reason: str | None) -> str:
    return "" if reason is None else f"accepted: {reason}" if reason else "accepted"


def _accepted(found: History, numbers: Mapping[tuple[str, str], int]) -> Iterator[Accepted]:
    for one in reversed(found.steps):
        if one.accepted is not None and one.is_worse:
            before, value = figure_texts(one.figure, one.before, one.value)
            number, title = numbers.get((one.build, one.module)), FIGURES[one.figure][0]
            change = change_of(one.before, one.value)
            yield Accepted(one.build, number, one.module, title, before, value, *change, one.accepted)
    for coming in reversed(found.comings):
        if coming.accepted is not None:
            number = numbers.get((coming.build, coming.module))
            yield Accepted(coming.build, number, coming.module, coming.kind, "", "", 0, "", coming.accepted)


def _row(
    found: History, module: ModuleHistory, rise: Regression, numbers: Mapping[tuple[str, str], int]
) -> Row:
    build, build_change, cause = present_cause(found, rise)
    mine = found.steps_of.get((rise.module, rise.figure), ())
    change, change_text = change_of(rise.good, rise.value)
    good_text, value_text = figure_texts(rise.figure, rise.good, rise.value)
    return Row(
        rise.module,
        FIGURES[rise.figure][0],
        change,
        change_text,
        build,
        numbers.get((build, rise.module)),
        build_change,
        cause,
        rise.good,
        good_text,
        rise.value,
        value_text,
        _good_build(found, rise),
        picture(found.builds, rise.figure, module, mine, numbers, rise.good_build),
    )


def _good_build(found: History, rise: Regression) -> str:
    """The last build that is good in this figure, and in which others it is not."""
    risen = [
        FIGURES[one.figure][0]
        for one in found.steps
        if (one.module, one.build) == (rise.module, rise.good_build) and one.is_worse and one.accepted is None
    ]
    return f"{rise.good_build}, where more: {', '.join(risen)}" if risen else rise.good_build


def _unreadable(found: History, module: ModuleHistory) -> str:
    """The error of the newest build's file of a module; empty if it is not known to be one that could not."""
    newest = found.builds[-1]
    if newest not in module.unknown or not module.paths:
        return ""
    names = {path.rpartition("/")[2] for path in module.paths.values()}
    errors = [
        (path, error)
        for build, path, error in found.unreadable
        if build == newest and path.rpartition("/")[2] in names
    ]
    return errors[0][1].removeprefix(f"{errors[0][0]}:") if len(errors) == 1 else ""


def worst(regressions: Sequence[Regression]) -> Tile:
    """Returns the metric with the largest relative increase over the last good build; counts only if no cost increased."""
    if not regressions:
        return Tile("worst", "none", "no metric above the last good build")
    most = max(
        regressions,
        key=lambda one: (
            bool(FIGURES[one.figure][1]),
            not one.good,
            (one.value - one.good) / one.good if one.good else 0,
        ),
    )
    what = f"{FIGURES[most.figure][0]} of {most.module} against {most.good_build}"
    return Tile("worst", change_of(most.good, most.value)[1], what)
