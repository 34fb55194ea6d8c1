"""The page of a dataset of builds: its verdict, steps with what brought them, the trend of each figure of each module."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
from markupsafe import Markup

import hlotext as hlo
from hlotext.analysis.formatting import pluralize
from hlotext.findings import escape
from hlotext.tables.figures import FIGURES, MISSING
from hlotext.view.page.packing import asset, policy, script
from hlotext.view.report.builds_text import change_of, figure_text, figure_texts
from hlotext.view.report.parts import PageTable, Tile, columns_of, cut
from hlotext.view.report.places import Places, short_names
from hlotext.view.report.templates import environment

if TYPE_CHECKING:
    from hlotext.tables.history import BuildStep, Coming, History, Missing, ModuleHistory, Regression

_FIGURES, _OPERATIONS = columns_of("report.builds_figures"), columns_of("report.builds_operations")
_FINDINGS, _MOST_FINDINGS = columns_of("report.builds_findings"), 10
_UNREADABLE, _VERDICT = columns_of("report.builds_unreadable"), columns_of("report.builds_verdict")
_WIDE, _HIGH, _EDGE = 600, 44, 6
"""Width and height of a trend, and the margin above and below it."""
MOST_CARDS = 200
"""Builds and modules with a step that a page shows, the newest first."""


@attrs.frozen
class _Card:
    """The steps of one module in one build, or that it comes or goes."""

    number: int
    module: str
    build: str
    kind: str
    word: str
    lead: str
    """The build that it is compared with, and what that is."""
    figures: PageTable
    operations: PageTable
    findings: PageTable
    diff: str
    accepts: str


@attrs.frozen
class _Row:
    """One figure of one module."""

    title: str
    picture: Markup
    first: float
    first_text: str
    last: float | None
    last_text: str
    change: float | None
    change_text: str


@attrs.frozen
class _Model:
    name: str
    about: str
    """The file, and that the newest build has it not."""
    rows: Sequence[_Row]
    marks: Sequence[tuple[str, str]]
    """The legend: for each mark of its trends, what it means."""


@attrs.frozen
class _Verdict:
    """The newest build against the last good one."""

    word: str
    kind: str
    lead: str
    table: PageTable
    missing: Sequence[Missing]
    accepts: str
    """The lines that accept all of it, so that the newest build passes."""


def builds_page(
    found: History, title: str = "Builds", percent: float = 0.0, fail_on: Collection[str] = ()
) -> str:
    """The history of a dataset as one HTML page that works offline; the same page for the same history, byte for byte.

    `fail_on` are the figures that must not be above the last good build; the page says whether they are.
    """
    steps: dict[tuple[str, str], list[BuildStep]] = {}
    changed: dict[str, list[BuildStep]] = {}
    for step in found.steps:
        steps.setdefault((step.build, step.module), []).append(step)
        changed.setdefault(step.module, []).append(step)
    comings = {(one.build, one.module): one for one in found.comings}
    keys = sorted({*steps, *comings})
    regressions = found.regressions(FIGURES)
    above = {one.module: one.good_build for one in regressions}
    modules = {one.name: one for one in found.modules}
    cards = [
        _card(found, number, modules.get(key[1]), key, steps.get(key, ()), comings.get(key), above)
        for number, key in enumerate(keys)
    ]
    numbers = {(one.build, one.module): one.number for one in cards}
    own = script("common.js", "tables.js", "builds.js")
    worse = [one for one in found.steps if one.is_worse and one.accepted is None]
    rows = [(build, path, error.removeprefix(f"{path}:")) for build, path, error in found.unreadable]
    notes = [
        f"{FIGURES[figure][0]} is not known: not all builds have the table `{FIGURES[figure][2]}` "
        f"(`hlotext table --append --tables {FIGURES[figure][2]}`)."
        for figure in FIGURES
        if FIGURES[figure][2] in found.lacking
    ]
    notes += [
        f"{title} is not known of any build: their table `{table}` has no rows{_NO_ROWS.get(table, '')}."
        for figure, (title, _, table) in FIGURES.items()
        if table not in found.lacking and not any(one.values[figure] for one in found.modules)
    ]
    if len(cards) > MOST_CARDS:
        notes.append(f"{len(cards) - MOST_CARDS:,} older steps are not shown.")
    alike = Counter(one.header_name for one in found.modules if one.header_name)
    notes += [
        f"`{name}` is the name of {count:,} modules, which are told apart by their files and arguments."
        for name, count in sorted(alike.items())
    ]
    newest = found.builds[-1]
    present = sum(newest in one.paths for one in found.modules)
    places = [{one.module for one in found.steps}, {one.build for one in found.steps}]
    where = ", ".join(map(pluralize, map(len, places), ("module", "build")))
    tiles = [
        Tile(
            "steps",
            f"{len(found.steps):,}",
            f"changed figures of {where}" if found.steps else "no figure changed",
        ),
        Tile(
            "not accepted",
            f"{len(worse):,}",
            f"cost more, newest in {worse[-1].build}" if worse else "no step costs more",
        ),
        Tile(
            "builds",
            f"{len(found.builds):,}",
            f"{pluralize(len(found.unreadable), 'input')} not readable"
            if found.unreadable
            else "all inputs readable",
        ),
        Tile("modules", f"{len(found.modules):,}", f"{present:,} in the newest build"),
    ]
    files = {one.file for step in found.steps for one in step.grown if one.file is not None}
    files |= {one.file for step in found.steps for one in step.findings if one.file is not None}
    return (
        environment(short_place=Places(short_names(files)).short)
        .get_template("builds.html")
        .render(
            title=title,
            policy=Markup(policy([own])),
            style=Markup(asset("page.css") + asset("report.css") + asset("builds.css")),
            script=Markup(own),
            operations={},
            builds=pluralize(len(found.builds), "build"),
            ticks=_ticks(found.builds),
            first=found.builds[0],
            last=found.builds[-1],
            bound=f" of more than {percent:g} %" if percent else "",
            tiles=tiles,
            verdict=_verdict(found, regressions, fail_on),
            cards=cards[::-1][:MOST_CARDS],
            models=[_model(found, one, changed.get(one.name, ()), numbers) for one in found.modules],
            unreadable=PageTable(
                "unreadable", "Inputs that could not be read", _UNREADABLE, cut(rows), len(rows)
            ),
            notes=notes,
            version=hlo.__version__,
        )
    )


_NO_ROWS = {"times": ": the texts name no chip (`hlotext report FILE --chip NAME` has times of one)"}
"""Why a table may have none, by its name."""


def _verdict(found: History, regressions: Sequence[Regression], fail_on: Collection[str]) -> _Verdict:
    """The newest build against the last good one of each module: as `--fail-on` judges it, and in all figures."""
    newest = found.builds[-1]
    failed = [one for one in regressions if one.figure in fail_on]
    lost = found.missing if MISSING in fail_on else []
    names = "any" if set(fail_on) == {*FIGURES, MISSING} else ",".join(fail_on)
    if failed or lost:
        word, kind = f"{newest} fails", "worse"
        reasons = [f"{pluralize(len(failed), 'figure')} above the last good build"] if failed else []
        reasons += [f"{pluralize(len(lost), 'module')} missing"] if lost else []
        lead = f"`--fail-on {names}`: {' and '.join(reasons)}"
        others = len(regressions) - len(failed)
        lead += f", and {pluralize(others, 'figure')} above it for which it does not ask." if others else "."
    elif regressions:
        word, kind = f"{newest} is above the last good build", "worse"
        lead = f"in {pluralize(len(regressions), 'figure')}"
        lead += f", of which `--fail-on {names}` asks for none." if fail_on else "."
    elif found.missing:
        word, kind = f"{newest} is not judged in full", "gone"
        lead = "No figure of the modules that are there is above the last good build."
    else:
        word, kind = f"{newest} passes", "better"
        lead = "No figure of any module is above the last good build."
    rows = [
        (
            one.module,
            FIGURES[one.figure][0],
            change_of(one.good, one.value)[1],
            *figure_texts(one.figure, one.good, one.value),
            one.good_build,
        )
        for one in regressions
    ]
    table = PageTable("verdict", "Above the last good build", _VERDICT, rows)
    lines = [one.line for rise in regressions for one in _open_rises(found, rise)]
    lines += [one.line for one in found.missing]
    return _Verdict(word, kind, lead, table, found.missing, "\n".join(dict.fromkeys(lines)))


def _open_rises(found: History, rise: Regression) -> Iterator[BuildStep]:
    """The steps since the last good build that nobody accepted."""
    since = found.builds.index(rise.good_build)
    for one in found.steps:
        is_here = (one.module, one.figure) == (rise.module, rise.figure)
        if is_here and one.is_worse and one.accepted is None and found.builds.index(one.build) > since:
            yield one


_WORDS = {
    "worse": "costs more",
    "accepted": "accepted",
    "better": "costs less",
    "gone": "gone",
    "untold": "cannot be told",
    "new": "new",
    "back": "back, costs the same",
}


def _card(
    found: History,
    number: int,
    module: ModuleHistory | None,
    key: tuple[str, str],
    steps: Sequence[BuildStep],
    coming: Coming | None,
    above: Mapping[str, str],
) -> _Card:
    build, name = key
    open_rises = [one for one in steps if one.is_worse and one.accepted is None]
    if steps:
        is_accepted = not open_rises and any(one.accepted is not None for one in steps)
        kind = "worse" if open_rises else "accepted" if is_accepted else "better"
    else:
        kind = coming.kind if coming is not None else "new"
    word = _WORDS[kind]
    if not steps and coming is not None and coming.accepted is not None:
        kind, word = "accepted", f"{word}, accepted"
    if kind == "better" and build == found.builds[-1] and name in above:
        kind, word = "above", f"costs less than before, more than in {above[name]}"
    old_build = steps[0].before_build if steps else coming.before_build if coming is not None else ""
    rows = [
        (
            FIGURES[one.figure][0],
            *figure_texts(one.figure, one.before, one.value),
            change_of(one.before, one.value)[1],
        )
        for one in steps
    ]
    grown = dict.fromkeys(each for one in steps for each in one.grown)
    operations = [
        (
            one.name,
            one.alike if one.alike > 1 else None,
            one.label,
            one.shape,
            one.more_bytes or None,
            one.more_flops or None,
            _place(one.file, one.line),
        )
        for one in grown
    ]
    appeared = dict.fromkeys(each for one in steps for each in one.findings)
    findings = [
        (one.severity, one.code, one.message, one.instruction, _place(one.file, one.line)) for one in appeared
    ]
    paths = module.paths if module is not None else {}
    old, new = paths.get(old_build), paths.get(build)
    reasons = [one.accepted for one in steps] + ([coming.accepted] if coming is not None else [])
    why = "; ".join(dict.fromkeys(one for one in reasons if one))
    lost = [one.line for one in found.missing if (one.module, one.build) == (name, build)]
    lines = [*(one.line for one in open_rises), *lost]
    return _Card(
        number,
        name,
        build,
        kind,
        word,
        f"{_lead(found, module, build, old_build, coming)}{f': {why}' if why else ''}",
        PageTable(
            "figures",
            "Figures",
            _FIGURES,
            rows or _figures_of(module, build, old_build, kind),
            is_open=bool(steps),
        ),
        PageTable(
            "operations",
            "What appeared or grew, operations of one kind and scope together",
            _OPERATIONS,
            operations,
        ),
        PageTable(
            "findings",
            "Findings that are new or changed",
            _FINDINGS,
            cut(findings, _MOST_FINDINGS),
            len(findings),
        ),
        f"hlotext diff {shlex.quote(old)} {shlex.quote(new)}" if steps and old and new and old != new else "",
        "\n".join(lines),
    )


def _lead(
    found: History, module: ModuleHistory | None, build: str, old_build: str, coming: Coming | None
) -> str:
    """The build that a module is compared with, and why with that one."""
    if coming is not None and coming.kind == "new":
        return "in no build before"
    if coming is not None and coming.kind == "gone":
        return f"not in this build; the last one with it is {old_build}"
    if coming is not None and coming.kind == "untold":
        return f"several modules fit, and nothing tells them apart: {coming.why}; the last build with it is {old_build}"
    between = found.builds[found.builds.index(old_build) + 1 : found.builds.index(build)]
    if not between:
        return f"compared with {old_build}, the build before it"
    is_unread = module is not None and all(one in module.unknown for one in between)
    return f"compared with {old_build}, the last build {'in which it could be read' if is_unread else 'that has it'}"


def _figures_of(
    module: ModuleHistory | None, build: str, old_build: str, kind: str
) -> list[tuple[str, str, str, str]]:
    """The figures of a module that comes, or the last ones of one that goes."""
    shown = build if kind in ("new", "back") else old_build
    values = {} if module is None else {name: by[shown] for name, by in module.values.items() if shown in by}
    texts = [(FIGURES[name][0], figure_text(name, value)) for name, value in values.items()]
    return [(title, "", text, "") if shown == build else (title, text, "", "") for title, text in texts]


def _place(file: str | None, line: int | None) -> str:
    return f"{file}:{line}" if file else ""


def _model(
    found: History, module: ModuleHistory, steps: Sequence[BuildStep], numbers: Mapping[tuple[str, str], int]
) -> _Model:
    last = next((build for build in reversed(found.builds) if build in module.paths), "")
    newest = found.builds[-1]
    about = [f"`{module.paths[last]}`"] if last else []
    if last and newest in module.unknown:
        about.append(f"{newest}: {module.unknown[newest]}; the last build with it is {last}")
    elif last and last != newest:
        about.append(f"not in {newest}; the last build with it is {last}")
    kinds = {_kind(one) for one in steps}
    gaps = {_gap(module, build) for build in found.builds if build not in module.paths}
    marks = [(kind, text) for kind, text in _MARKS.items() if kind in kinds or kind in gaps]
    return _Model(module.name, " · ".join(about), list(_rows(found, module, steps, numbers)), marks)


_MARKS = {
    "worse": "costs more",
    "better": "costs less",
    "accepted": "accepted",
    "unread": "not readable, or not told apart",
    "absent": "not in the build",
}
"""Marks of a trend, with what they mean."""


def _kind(step: BuildStep) -> str:
    return "accepted" if step.accepted is not None else "worse" if step.is_worse else "better"


def _gap(module: ModuleHistory, build: str) -> str:
    return "unread" if build in module.unknown else "absent"


def _rows(
    found: History, module: ModuleHistory, steps: Sequence[BuildStep], numbers: Mapping[tuple[str, str], int]
) -> Iterator[_Row]:
    newest = found.builds[-1]
    for figure, (title, _, _) in FIGURES.items():
        values = module.values[figure]
        known = [build for build in found.builds if build in values]
        if not known:
            continue
        mine = [one for one in steps if one.figure == figure]
        picture = _picture(found.builds, figure, module, mine, numbers)
        first, last = float(values[known[0]]), values.get(newest)
        if last is None:
            why = module.unknown.get(newest) or "not in it"
            text = figure_text(figure, first)
            yield _Row(
                title, picture, first, text, None, "no value" if newest in module.paths else why, None, ""
            )
            continue
        change, text = change_of(first, float(last))
        texts = figure_texts(figure, first, float(last))
        yield _Row(title, picture, first, texts[0], float(last), texts[1], change, text)


def _picture(
    builds: Sequence[str],
    figure: str,
    module: ModuleHistory,
    steps: Iterable[BuildStep],
    numbers: Mapping[tuple[str, str], int],
) -> Markup:
    """The trend as a line that breaks where a build has no value, with a mark at each step, as SVG."""
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
        kind = "" if build in module.paths else _gap(module, build)
        why = module.unknown.get(build, "not in the build" if kind else "no value")
        says = f"{build}: {figure_text(figure, values[build]) if build in values else why}"
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
        kind = _kind(one)
        says = f"{one.build}: {' → '.join(figure_texts(figure, one.before, one.value))}"
        number = numbers[one.build, one.module]
        # Points of lines with round ends stay round however the picture is stretched.
        point = f'd="M{x[one.build]:.1f} {y(one.value):.1f}h0"'
        inside = f'<path class="inside" {point}/>' if kind == "accepted" else ""
        dot = f'<path class="dot {kind}" {point}/>{inside}<title>{_safe(says)}</title>'
        marks.append(f'<a href="#step-{number}" aria-label="{_safe(says)}">{dot}</a>')
    first = figure_text(figure, values[next(build for build in builds if build in values)])
    label = f"{FIGURES[figure][0]} from {first}, {pluralize(len(marks), 'step')}"
    drawn = f'{"".join(gaps)}<path d="{"".join(path)}"/>{"".join(hovered)}{"".join(marks)}'
    tag = f'<svg viewBox="0 0 {_WIDE} {_HIGH}" preserveAspectRatio="none" role="img" aria-label="{_safe(label)}">'
    return Markup(f"{tag}{drawn}</svg>")


def _ticks(builds: Sequence[str]) -> list[tuple[float, str]]:
    """Builds that are named on the axis, each with its place in percent: the first, the last, and one between."""
    places = sorted({0, len(builds) // 2, len(builds) - 1})
    return [(round(100 * (n + 0.5) / len(builds), 2), builds[n]) for n in places]


def _safe(text: str) -> str:
    return escape.html(escape.line(text))
