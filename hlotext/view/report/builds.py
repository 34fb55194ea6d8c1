"""The page of a dataset of builds: verdict, changes with their causes, and trends of each module."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
from markupsafe import Markup

import hlotext as hlo
from hlotext.analysis.formatting import pluralize
from hlotext.tables.figures import FIGURES
from hlotext.view.page.packing import asset, policy, script
from hlotext.view.report.builds_operations import Operation, grown_most, operation, table
from hlotext.view.report.builds_text import change_of, figure_text, figure_texts, place_text
from hlotext.view.report.builds_trend import MARKS, gap_of, kind_of, picture, ticks
from hlotext.view.report.builds_verdict import verdict, worst
from hlotext.view.report.parts import PageTable, Tile, columns_of, cut
from hlotext.view.report.places import Places, short_names
from hlotext.view.report.templates import environment

if TYPE_CHECKING:
    from hlotext.tables.history import BuildStep, Coming, History, ModuleHistory

_FIGURES = columns_of("report.builds_figures")
_FINDINGS, _MOST_FINDINGS = columns_of("report.builds_findings"), 10
_UNREADABLE = columns_of("report.builds_unreadable")
MOST_CARDS = 200
"""Maximum number of cards on a page, newest first; each is a module that changed in a build."""


@attrs.frozen
class _Card:
    """Changes of one module in one build, including its appearance or disappearance."""

    number: int
    module: str
    build: str
    kind: str
    word: str
    lead: str
    """The build that it is compared with, and the reason for that choice."""
    figures: PageTable
    operations: PageTable
    findings: PageTable
    gone: PageTable
    """Findings that the build before had."""
    named: Sequence[Operation]
    """The operations of its tables."""
    model: int | None
    """The number of the module's trends; None if it has none."""
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
    is_open: bool
    """True where a figure changed or the newest build lacks it."""


def builds_page(
    found: History, title: str = "Builds", percent: float = 0.0, fail_on: Collection[str] = ()
) -> str:
    """Returns a self-contained HTML page with the history of a dataset. Output is deterministic.

    Args:
        found: The history.
        title: Title of the page.
        percent: Tolerated increase over the last good build, in percent.
        fail_on: Metrics (keys of `FIGURES`) that must not increase by more. The page states whether they do.
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
    # What fails first, then what changed: trends of modules that are as they were are the last, and folded.
    modules = sorted(
        found.modules,
        key=lambda one: (one.name not in above, found.builds[-1] in one.paths and one.name not in changed),
    )
    places = {one.name: (number, one) for number, one in enumerate(modules, 1)}
    cards = [
        _card(found, number, places.get(key[1]), key, steps.get(key, ()), comings.get(key), above)
        for number, key in enumerate(keys)
    ]
    numbers = {(one.build, one.module): one.number for one in cards}
    own = script("common.js", "tables.js", "builds.js")
    worse = [one for one in found.steps if one.is_worse and one.accepted is None]
    rows = [(build, path, error.removeprefix(f"{path}:")) for build, path, error in found.unreadable]
    notes = [
        f"{FIGURES[figure][0]} is unknown: not all builds have the table `{FIGURES[figure][2]}` "
        f"(`hlotext table --append --tables {FIGURES[figure][2]}`)."
        for figure in FIGURES
        if FIGURES[figure][2] in found.lacking
    ]
    notes += [
        f"{title} is unknown for all builds: their table `{table}` has no rows{_NO_ROWS.get(table, '')}."
        for figure, (title, _, table) in FIGURES.items()
        if table not in found.lacking and not any(one.values[figure] for one in found.modules)
    ]
    if len(cards) > MOST_CARDS:
        notes.append(f"{len(cards) - MOST_CARDS:,} older builds with changes are not shown.")
    alike = Counter(one.header_name for one in found.modules if one.header_name)
    notes += [
        f"`{name}` is the name of {count:,} modules, which are distinguished by their files and arguments."
        for name, count in sorted(alike.items())
    ]
    newest = found.builds[-1]
    present = sum(newest in one.paths for one in found.modules)
    accepted = any(one.is_worse for one in found.steps)
    tiles = [
        worst(regressions),
        Tile(
            "not accepted",
            f"{len(worse):,}",
            f"{'change for the worse' if len(worse) == 1 else 'changes for the worse'}, most recently in {worse[-1].build}"
            if worse
            else "all regressions are accepted"
            if accepted
            else "no regressions",
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
    files |= {one.file for each in found.findings.values() for one in each if one.file is not None}
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
            ticks=ticks(found.builds),
            first=found.builds[0],
            last=found.builds[-1],
            bound=f" of more than {percent:g}%" if percent else "",
            tiles=tiles,
            chips=", ".join(found.chips),
            verdict=verdict(found, regressions, fail_on, numbers),
            cards=cards[::-1][:MOST_CARDS],
            links={(card.number, one.name): one.id for card in cards[-MOST_CARDS:] for one in card.named},
            models=[_model(found, one, changed.get(one.name, ()), numbers) for one in modules],
            unreadable=PageTable(
                "unreadable", "Inputs that could not be read", _UNREADABLE, cut(rows), len(rows)
            ),
            notes=notes,
            version=hlo.__version__,
        )
    )


_NO_ROWS = {"times": ": the modules name no chip (`hlotext report FILE --chip NAME` estimates times for one)"}
"""Why a table may have none, by its name."""


_WORDS = {
    "worse": "worse",
    "accepted": "accepted",
    "better": "better",
    "gone": "gone",
    "untold": "ambiguous",
    "new": "new",
    "back": "back, unchanged",
}


def _card(
    found: History,
    number: int,
    model: tuple[int, ModuleHistory] | None,
    key: tuple[str, str],
    steps: Sequence[BuildStep],
    coming: Coming | None,
    above: Mapping[str, str],
) -> _Card:
    build, name = key
    place, module = model or (None, None)
    open_rises = [one for one in steps if one.is_worse and one.accepted is None]
    if steps:
        is_accepted = not open_rises and any(one.is_worse for one in steps)
        kind = "worse" if open_rises else "accepted" if is_accepted else "better"
    else:
        kind = coming.kind if coming is not None else "new"
    word = _WORDS[kind]
    if not steps and coming is not None and coming.accepted is not None:
        kind, word = "accepted", f"{word}, accepted"
    if kind == "better" and build == found.builds[-1] and name in above:
        kind, word = "above", f"better than before, worse than in {above[name]}"
    old_build = steps[0].before_build if steps else coming.before_build if coming is not None else ""
    rows = [
        (
            FIGURES[one.figure][0],
            *figure_texts(one.figure, one.before, one.value),
            change_of(one.before, one.value)[1],
        )
        for one in steps
    ]
    appeared = dict.fromkeys(each for one in steps for each in one.findings)
    findings, gone = (
        [
            (one.severity, one.code, place_text(one.file, one.line), one.message, one.instruction)
            for one in each
        ]
        for each in (appeared, found.gone_findings(build, name))
    )
    paths = module.paths if module is not None else {}
    old, new = paths.get(old_build), paths.get(build)
    reasons = [one.accepted for one in steps] + ([coming.accepted] if coming is not None else [])
    why = "; ".join(dict.fromkeys(one for one in reasons if one))
    lost = [one.line for one in found.missing if (one.module, one.build) == (name, build)]
    lines = [*(one.line for one in open_rises), *lost]
    grown, total = grown_most(steps)
    named = [operation(f"step-{number}-op-{n}", one, build, name, new) for n, one in enumerate(grown, 1)]
    links = {one.name: one.id for one in named}
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
        table(grown, total, links),
        PageTable(
            "findings",
            "New or changed findings",
            _FINDINGS,
            cut(findings, _MOST_FINDINGS),
            len(findings),
            links=links,
        ),
        PageTable("gone", "Findings that no longer occur", _FINDINGS, cut(gone, _MOST_FINDINGS), len(gone)),
        named,
        place,
        f"hlotext diff {shlex.quote(old)} {shlex.quote(new)}" if steps and old and new and old != new else "",
        "\n".join(lines),
    )


def _lead(
    found: History, module: ModuleHistory | None, build: str, old_build: str, coming: Coming | None
) -> str:
    """The build that a module is compared with, and the reason for that choice."""
    if coming is not None and coming.kind == "new":
        return "not in any earlier build"
    if coming is not None and coming.kind == "gone":
        return f"not in this build; the last one with it is {old_build}"
    if coming is not None and coming.kind == "untold":
        return f"several modules match and cannot be distinguished: {coming.why}; the last build with it is {old_build}"
    between = found.builds[found.builds.index(old_build) + 1 : found.builds.index(build)]
    if not between:
        return f"compared with {old_build}, the previous build"
    is_unread = module is not None and all(one in module.unknown for one in between)
    return f"compared with {old_build}, the last build {'in which it was readable' if is_unread else 'that has it'}"


def _figures_of(
    module: ModuleHistory | None, build: str, old_build: str, kind: str
) -> list[tuple[str, str, str, str]]:
    """The figures of a module that appears, or the last ones of a module that disappears."""
    shown = build if kind in ("new", "back") else old_build
    values = {} if module is None else {name: by[shown] for name, by in module.values.items() if shown in by}
    texts = [(FIGURES[name][0], figure_text(name, value)) for name, value in values.items()]
    return [(title, "", text, "") if shown == build else (title, text, "", "") for title, text in texts]


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
    kinds = {kind_of(one) for one in steps}
    gaps = {gap_of(module, build) for build in found.builds if build not in module.paths}
    marks = [(kind, text) for kind, text in MARKS.items() if kind in kinds or kind in gaps]
    is_open = bool(steps) or newest not in module.paths
    return _Model(module.name, " · ".join(about), list(_rows(found, module, steps, numbers)), marks, is_open)


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
        drawn = picture(found.builds, figure, module, mine, numbers)
        first, last = float(values[known[0]]), values.get(newest)
        if last is None:
            why = module.unknown.get(newest) or "not in it"
            text = figure_text(figure, first)
            yield _Row(
                title, drawn, first, text, None, "no value" if newest in module.paths else why, None, ""
            )
            continue
        change, text = change_of(first, float(last))
        texts = figure_texts(figure, first, float(last))
        yield _Row(title, drawn, first, texts[0], float(last), texts[1], change, text)
