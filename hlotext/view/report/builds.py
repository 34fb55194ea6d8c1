"""The page of a dataset of builds: the trend of each figure of each module, steps with what brought them, gaps."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
from markupsafe import Markup

import hlotext as hlo
from hlotext.analysis.formatting import pluralize
from hlotext.findings import escape
from hlotext.tables.figures import FIGURES
from hlotext.view.page.packing import asset, policy, script
from hlotext.view.report.builds_text import change_of, figure_text, figure_texts
from hlotext.view.report.parts import PageTable, Tile, columns_of, cut
from hlotext.view.report.places import Places, short_names
from hlotext.view.report.templates import environment

if TYPE_CHECKING:
    from hlotext.tables.history import BuildStep, History, ModuleHistory

_FIGURES, _OPERATIONS = columns_of("report.builds_figures"), columns_of("report.builds_operations")
_FINDINGS, _MOST_FINDINGS = columns_of("report.builds_findings"), 10
_UNREADABLE = columns_of("report.builds_unreadable")
_WIDE, _HIGH, _EDGE = 600, 44, 6
"""Width and height of a trend, and the margin above and below it."""
MOST_CARDS = 200
"""Builds and modules with a step that a page shows, the newest first."""


@attrs.frozen
class _Card:
    """The steps of one module in one build."""

    number: int
    module: str
    build: str
    before_build: str
    kind: str
    word: str
    why: str
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
    last: float
    last_text: str
    change: float
    change_text: str


@attrs.frozen
class _Model:
    name: str
    rows: Sequence[_Row]


def builds_page(found: History, title: str = "Builds", percent: float = 0.0) -> str:
    """The history of a dataset as one HTML page that works offline; the same page for the same history, byte for byte."""
    groups = [list(group) for _, group in itertools.groupby(found.steps, lambda one: (one.build, one.module))]
    cards = [_card(found, number, group) for number, group in enumerate(groups)]
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
    tiles = [
        Tile("steps", f"{len(found.steps):,}", f"in {pluralize(len({one.build for one in cards}), 'build')}"),
        Tile(
            "not accepted",
            f"{len(worse):,}",
            f"cost more, newest in {worse[-1].build}" if worse else "no step costs more",
        ),
        Tile("builds", f"{len(found.builds):,}", f"{len(found.unreadable):,} inputs not readable"),
        Tile("modules", f"{len(found.modules):,}"),
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
            cards=cards[::-1][:MOST_CARDS],
            models=[_Model(one.name, list(_rows(found, one, numbers))) for one in found.modules],
            unreadable=PageTable(
                "unreadable", "Inputs that could not be read", _UNREADABLE, cut(rows), len(rows)
            ),
            notes=notes,
            version=hlo.__version__,
        )
    )


_NO_ROWS = {"times": ": the texts name no chip (`hlotext report FILE --chip NAME` has times of one)"}
"""Why a table may have none, by its name."""


def _card(found: History, number: int, steps: Sequence[BuildStep]) -> _Card:
    first = steps[0]
    open_rises = [one for one in steps if one.is_worse and one.accepted is None]
    is_accepted = not open_rises and any(one.accepted is not None for one in steps)
    kind = "worse" if open_rises else "accepted" if is_accepted else "better"
    words = {"worse": "costs more", "accepted": "accepted", "better": "costs less"}
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
    paths = next((one.paths for one in found.modules if one.name == first.module), {})
    old, new = paths.get(first.before_build), paths.get(first.build)
    return _Card(
        number,
        first.module,
        first.build,
        first.before_build,
        kind,
        words[kind],
        "; ".join(dict.fromkeys(one.accepted for one in steps if one.accepted)),
        PageTable("figures", "Figures", _FIGURES, rows),
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
        f"hlotext diff {shlex.quote(old)} {shlex.quote(new)}" if old and new and old != new else "",
        "\n".join(one.line for one in open_rises),
    )


def _place(file: str | None, line: int | None) -> str:
    return f"{file}:{line}" if file else ""


def _rows(found: History, module: ModuleHistory, numbers: dict[tuple[str, str], int]) -> Iterator[_Row]:
    for figure, (title, _, _) in FIGURES.items():
        values = module.values[figure]
        known = [build for build in found.builds if build in values]
        if not known:
            continue
        first, last = float(values[known[0]]), float(values[known[-1]])
        change, text = change_of(first, last)
        steps = [one for one in found.steps if (one.module, one.figure) == (module.name, figure)]
        picture = _picture(found.builds, figure, values, steps, numbers)
        texts = figure_texts(figure, first, last)
        yield _Row(title, picture, first, texts[0], last, texts[1], change, text)


def _picture(
    builds: Sequence[str],
    figure: str,
    values: Mapping[str, float],
    steps: Iterable[BuildStep],
    numbers: dict[tuple[str, str], int],
) -> Markup:
    """The trend as a line that breaks where a build has no value, with a mark at each step, as SVG."""
    low, high = min(values.values()), max(values.values())
    span = float(high - low)
    wide = _WIDE / max(1, len(builds))
    x = {build: (n + 0.5) * wide for n, build in enumerate(builds)}

    def y(value: float) -> float:
        return _HIGH - _EDGE - ((float(value) - low) / span if span else 0.5) * (_HIGH - 2 * _EDGE)

    path, gaps, hovered, is_on = [], [], [], False
    for build in builds:
        left, right = f"{x[build] - wide / 2:.1f}", f"{x[build] + wide / 2:.1f}"
        says = f"{build}: {figure_text(figure, values[build]) if build in values else 'no value'}"
        area = f'<rect x="{left}" y="0" width="{wide:.1f}" height="{_HIGH}">'
        hovered.append(f"{area}<title>{_safe(says)}</title></rect>")
        if build not in values:
            gaps.append(f'<line x1="{x[build]:.1f}" x2="{x[build]:.1f}" y1="2" y2="{_HIGH - 2}"/>')
            is_on = False
            continue
        # A build has its value from edge to edge, so that a step is one and no slope.
        path.append(f"{f'V{y(values[build]):.1f}' if is_on else f'M{left} {y(values[build]):.1f}'}H{right}")
        is_on = True
    marks = []
    for one in steps:
        kind = "accepted" if one.accepted is not None else "worse" if one.is_worse else "better"
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
