"""A report as one HTML file that works from a mail, offline: it loads nothing, and nothing of a module's text acts in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from markupsafe import Markup

import hlotext as hlo
from hlotext import diff
from hlotext.analysis import source_locations
from hlotext.findings.errors import brief
from hlotext.ir import gc_control
from hlotext.view.accuracy import anchor, table
from hlotext.view.accuracy import measured as judged
from hlotext.view.page.colours import (
    KIND_COLOURS,
    OTHERS,
    PALETTE,
    TOP_LEVEL,
    colour_number,
    scope_colours,
)
from hlotext.view.page.packing import asset, packed, policy, script
from hlotext.view.report import charts, headline
from hlotext.view.report.answers import Answer, answers
from hlotext.view.report.operations import Operations, name_of
from hlotext.view.report.pairs import SectionPair
from hlotext.view.report.parts import SOURCE_FIGURES, Chart, Missing, PageTable, Section, Tile
from hlotext.view.report.places import Places, short_names
from hlotext.view.report.report_input import ReportInput
from hlotext.view.report.sections import (
    collectives,
    comparison,
    costs,
    differences,
    lint,
    measured,
    memory,
    padding,
    passes,
    runtime,
    schedule,
    source,
    where,
)
from hlotext.view.report.templates import environment

_SECTIONS: tuple[tuple[str, str, Callable[[ReportInput], Section | Missing]], ...] = (
    ("lint", "Findings", lint.section),
    ("memory", "Memory", memory.section),
    ("scopes", "Scopes", costs.by_scope),
    ("lines", "Python lines", costs.by_line),
    ("source", "Source", source.section),
    ("padding", "Padding", padding.section),
    ("collectives", "Collectives", collectives.section),
    ("schedule", "Schedule", schedule.section),
    ("measured", "Measured", measured.section),
    ("passes", "Passes", passes.section),
    ("runtime", "Thunks", runtime.section),
)
_MEASURED = {
    "memory": (
        "memory: offsets",
        "memory: time of the peak",
        "fast memory: total within its bounds",
        "fast memory: total to the byte",
        "fast memory: offsets",
    ),
    "scopes": ("cost of modules", "TPU cost: bytes", "TPU cost: seconds"),
    "schedule": ("TPU cost: seconds",),
    "passes": ("cause of an operation", "cause, with high confidence"),
    "runtime": ("thunks", "command buffers"),
}
"""The answers of each section that XLA's own were compared with."""
_TABLES = {
    headline.PEAK: ("differences-spaces", "differences-live"),
    headline.TIME: ("differences-times",),
    headline.FLOPS: ("comparison-flops",),
    headline.MOVED: ("differences-moved", "comparison-bytes"),
    headline.SENT: ("differences-sent",),
    headline.INSTRUCTIONS: ("comparison-counts",),
}
"""Tables of a comparison by the figure that they are about."""
_SCRIPTS = (
    "common.js",
    "tables.js",
    "operations.js",
    "charts.js",
    "icicle.js",
    "memory_chart.js",
    "bokeh_charts.js",
    "report.js",
)


@attrs.frozen
class Side:
    """One of the modules of a report."""

    key: str
    """`a`, and `b` for the second."""
    subject: ReportInput
    sections: Sequence[Section]
    missing: Sequence[Missing]
    tiles: Sequence[Tile]
    operations: Operations

    def section(self, id: str) -> Section | None:
        """Returns the section with an id; None if the side lacks it."""
        return next((section for section in self.sections if section.id == id), None)

    def why_not(self, id: str) -> str:
        """Returns the reason why a section is missing; empty if none is known."""
        return next((one.why for one in self.missing if one.id == id), "")


def report_page(*subjects: ReportInput, title: str | None = None) -> str:
    """Creates an HTML report of one module, or of two side by side.

    Output is deterministic. Sections for which the input is insufficient are replaced by a line with the reason.

    Args:
        *subjects: One or two inputs, from `report_input`.
        title: Title of the page; None uses the names of the modules.

    Raises:
        ValueError: There are no inputs, or more than two.
    """
    if not 1 <= len(subjects) <= 2:
        raise ValueError("a report is about one module, or two")
    with gc_control.gc_paused(collect_first=False):  # the module was just read, and has no garbage
        return _page(subjects, title)


def _page(subjects: Sequence[ReportInput], title: str | None) -> str:
    tiles: Sequence[Sequence[Tile]] = [tuple(headline.tiles(subject)) for subject in subjects]
    compared = None
    if len(subjects) == 2:
        tiles = headline.side_by_side(*tiles)
        compared = _compared(subjects, tiles)
    answered = list(answers(subjects[0])) if compared is None else []
    places = where.table(*subjects) if compared is not None else None
    leading = [_leading(answered, places), *([compared] if compared is not None else [])]
    sides = [
        _side(key, subject, own, leading) for key, subject, own in zip("ab", subjects, tiles, strict=False)
    ]
    ids = [id for id, _, _ in _SECTIONS if any(side.section(id) for side in sides)]
    left_out: dict[Missing, list[str]] = {}
    for side in sides:
        for one in side.missing:
            if one.id not in ids or len(sides) == 1:
                left_out.setdefault(one, []).append(side.key)
    platforms = [subject.platform for subject in subjects]
    own, bokeh = script(*_SCRIPTS), charts.script()
    has_charts = any(c.kind != "icicle" for side in sides for s in side.sections for c in s.charts)
    scripts = [bokeh, own] if has_charts else [own]
    names = " and ".join(dict.fromkeys(subject.module.name for subject in subjects))
    style = chart_style([chart for side in sides for section in side.sections for chart in section.charts])
    filters: dict[str, Callable[..., Any]] = {
        "chart_data": lambda chart: Markup(style.data(chart)),
        "name_of": name_of,
        "short_place": _places(subjects).short,
    }
    page = environment(**filters).get_template("report.html")
    return page.render(
        title=title or (names if compared is None else f"Comparison of {names}"),
        policy=Markup(policy(scripts)),
        style=Markup(asset("page.css") + asset("report.css")),
        scripts=[Markup(one) for one in scripts],
        sides=sides,
        operations={side.key: side.operations for side in sides},
        ids=ids,
        source_titles=SOURCE_FIGURES,
        titles={id: next(s for s in (side.section(id) for side in sides) if s).title for id in ids},
        comparison=compared,
        answers=answered,
        places=places,
        joined=headline.joined(*tiles) if compared is not None else (),
        pairs={id: SectionPair((sides[0].section(id), sides[1].section(id))) for id in ids}
        if compared is not None
        else {},
        measured={id: judged(_MEASURED.get(id, ()), platforms) for id in ids},
        accuracy=table(judged({a for id in ids for a in _MEASURED.get(id, ())}, platforms)),
        anchor=anchor,
        left_out=left_out,
        version=hlo.__version__,
        palette=(*PALETTE, TOP_LEVEL, OTHERS),
        live_height=charts.LIVE_HEIGHT,
    )


def _places(subjects: Sequence[ReportInput]) -> Places:
    files = {place.file for one in subjects for place, _ in source_locations(one.module).values()}
    return Places(short_names(files))


def _compared(subjects: Sequence[ReportInput], tiles: Sequence[Sequence[Tile]]) -> Section:
    """The section of differences, which begins with the figures that differ most in proportion."""
    before, after = subjects
    found = comparison.section(diff.compare(before.module, after.module))
    tables = {table.id: table for table in (*differences.tables(before, after), *found.tables)}
    order = headline.differences(*tiles)
    changes = [tables.pop(id) for id in ("comparison-changes",) if id in tables]
    parts = {title: [tables.pop(id) for id in _TABLES.get(title, ()) if id in tables] for title, _ in order}
    # The operations stand below the figure that differs most, which they explain; the pictures are of the peak.
    most = next((title for title, tables in parts.items() if tables or title == headline.PEAK), None)
    if most is not None:
        parts[most] += changes
    at = list(parts).index(headline.PEAK) if headline.PEAK in parts else len(parts)
    shown, rest = (
        [table for part in some for table in part]
        for some in (list(parts.values())[:at], list(parts.values())[at:])
    )
    return attrs.evolve(
        found,
        leading=shown,
        tables=[*rest, *tables.values()],
        pictures=list(differences.pictures(before, after)),
    )


def _leading(answered: Sequence[Sequence[Answer]], places: PageTable | None) -> Section:
    """The tables at the top as a section, for the operations that they name."""
    tables = [table for column in answered for one in column for table in one.tables]
    return Section("answers", "", "", tables=tables if places is None else [*tables, places])


def _side(key: str, subject: ReportInput, tiles: Sequence[Tile], leading: Sequence[Section]) -> Side:
    sections: list[Section] = []
    missing: list[Missing] = []
    for id, name, make in _SECTIONS:
        try:
            found = make(subject)
        except (hlo.InputError, hlo.HloSyntaxError, ValueError, LookupError, ArithmeticError) as error:
            found = Missing(id, name, brief(error))
        (sections if isinstance(found, Section) else missing).append(found)  # type: ignore[arg-type]
    return Side(key, subject, sections, missing, tiles, Operations(subject, [*leading, *sections]))


@attrs.frozen
class ChartStyle:
    """Scope colors shared by all charts of a page, and scales shared by both sides."""

    colours: Mapping[str, int]
    scales: Mapping[str, Mapping[str, float]]
    """By the name of a chart, the largest of each number."""

    def data(self, chart: Chart) -> str:
        """Returns the data for a chart's script."""
        content = {"chart": chart.kind, **chart.data, "scale": self.scales[chart.id]}
        if chart.kind == "icicle":
            content["colour"] = [colour_number(path, self.colours) for path in content.pop("path")]
        elif chart.kind == "memory":
            words = content["words"]
            numbers = {word: colour_number(words[word], self.colours) for word in set(content["folded"])}
            content["colour"] = [numbers[word] for word in content["folded"]]
            content["legend"] = sorted((name, number) for name, number in self.colours.items())
            del content["folded"]
        else:
            content["colours"] = KIND_COLOURS
        if chart.kind != "icicle":
            content["bokeh"] = charts.document(chart.kind)
        return packed(content)


def chart_style(drawn: Sequence[Chart]) -> ChartStyle:
    """Returns the shared style of all charts of a page."""
    scales: dict[str, dict[str, float]] = {}
    for chart in drawn:
        scale = scales.setdefault(chart.id, dict(chart.data["scale"]))
        for name, value in chart.data["scale"].items():
            scale[name] = max(scale[name], value)
    return ChartStyle(scope_colours(chart.scopes for chart in drawn), scales)
