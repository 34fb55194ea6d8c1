"""Figures of builds without a page: for people in a line, for github-action-benchmark, as a comment of a pull request."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import format_change, format_count, seconds
from hlotext.findings import escape
from hlotext.tables.figures import FIGURES

if TYPE_CHECKING:
    from hlotext.tables.history import BuildStep, History

MARKER = "<!-- hlotext:builds -->"
"""First line of a comment, by which the next run finds and replaces it."""
MOST_COMMENT = 60_000
"""Characters of a comment: code hosts take some 65,000."""
_MOST_MISSING = 20
"""Modules that a comment names because the newest build lacks them."""


def figure_text(figure: str, value: float) -> str:
    """A figure for people."""
    unit = FIGURES[figure][1]
    if unit == "bytes":
        return byte_text(int(value))
    if unit == "seconds":
        return seconds(value)
    return format_count(value) if unit else f"{value:,.0f}"


def figure_texts(figure: str, *values: float) -> tuple[str, ...]:
    """Figures that stand beside each other: exact where rounded ones of different values would be one text."""
    texts = tuple(figure_text(figure, value) for value in values)
    if len(set(texts)) == len(set(values)):
        return texts
    unit = FIGURES[figure][1].replace("operations", "")
    return tuple(f"{value:,.15g} {unit}".rstrip() for value in values)


def change_of(before: float, value: float) -> tuple[float, str]:
    """The change in percent, and as text; of what was 0 the value itself."""
    if not before:
        return value, "new" if value else "none"
    change = (value - before) / before
    return 100 * change, format_change(change)


def benchmark(found: History) -> str:
    """Figures of the newest build as JSON for github-action-benchmark: name, unit, value; smaller is better."""
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
    """The newest build against the last good one as markdown, cut by whole rows to `MOST_COMMENT` characters."""
    newest = found.builds[-1]
    worse = found.regressions(figures)
    lines = [MARKER, f"**hlotext**: build {_cell(newest)}"]
    lines += [f"{_cell(one.module)}: not compared: {_cell(one.why)}" for one in found.missing[:_MOST_MISSING]]
    if not worse:
        all_compared = "" if found.missing else " of any module"
        lines.append(f"No figure{all_compared} is above the last good build.")
        return "\n\n".join(lines) + "\n"
    rows = [
        "| module | figure | last good | now | change | cause | line |",
        "| --- | --- | ---: | ---: | ---: | --- | --- |",
    ]
    for rise in worse:
        step = next(
            (
                one
                for one in reversed(found.steps)
                if (one.module, one.figure) == (rise.module, rise.figure) and one.is_worse
            ),
            None,
        )
        cause, place = _cause(step) if step is not None else ("", "")
        cells = (
            rise.module,
            FIGURES[rise.figure][0],
            *figure_texts(rise.figure, rise.good, rise.value),
            change_of(rise.good, rise.value)[1],
            cause,
            place,
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
        lines.append(f"and {left:,} more rows: the page of the builds has all of them.")
    return "\n\n".join(lines) + "\n"


def _cause(step: BuildStep) -> tuple[str, str]:
    """Cause of a rise, and its line: the operation that grew, or a finding that appeared."""
    new = next((one for one in step.findings if one.severity != "note"), None)
    grown = step.grown[0] if step.grown else None
    if new is not None and (step.figure == "findings" or grown is None):
        return f"{new.code}: {new.message}", _place(new.file, new.line)
    if grown is None:
        return "", ""
    alike = f"{grown.alike:,} {grown.label} of one scope, such as " if grown.alike > 1 else ""
    return f"{alike}{grown.name} {grown.shape}", _place(grown.file, grown.line)


def _place(file: str | None, line: int | None) -> str:
    return f"{file.rpartition('/')[2]}:{line}" if file else ""


def _cell(text: str) -> str:
    return escape.markdown(escape.line(text)[:300])
