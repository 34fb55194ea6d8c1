"""`hlotext report DATASET`: builds as a page, as figures for other programs, or as a comment."""

from __future__ import annotations

import click

from hlotext import tables
from hlotext.analysis.formatting import pluralize
from hlotext.cli.common import Unreadable, say
from hlotext.cli.output import emit_report, printable
from hlotext.findings.errors import brief
from hlotext.ir.files import write_text
from hlotext.syntax.source.inputs import InputError
from hlotext.tables.figures import FIGURES, MISSING
from hlotext.view import report

FINDINGS = 1
"""Exit status where the newest build is worse than the last good one."""
ANY = "any"
NAMES = (*FIGURES, MISSING)
"""Words of `--fail-on` beside `any`: figures, and that a module is not there."""


def is_builds(path: str) -> bool:
    """True for a dataset written by `hlotext table`."""
    try:
        return tables.dataset.is_dataset(path)
    except (InputError, ImportError):
        return "://" in path


def figures(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Parses the metrics of `--fail-on`: `any`, or names separated by commas. Raises BadParameter."""
    if value is None:
        return ()
    names = NAMES if value == ANY else tuple(map(str.strip, value.split(",")))
    for name in names:
        if name not in NAMES:
            raise click.BadParameter(f"{name}; expected {', '.join(NAMES)} or any")
    return names


def write(
    path: str,
    place: str,
    output_format: str,
    accepted: str | None,
    percent: float,
    fail_on: tuple[str, ...],
    title: str | None,
) -> None:
    """Writes a dataset's page or metrics. Exits with status 1 if a metric of `fail_on` fails. Raises Unreadable."""
    try:
        lines = _lines(accepted)
        found = tables.history.history(path, lines, percent)
        if output_format == "benchmark":
            text = report.benchmark(found)
        elif output_format == "markdown":
            text = report.builds_comment(found, [one for one in fail_on if one in FIGURES] or tuple(FIGURES))
        else:
            text = report.builds_page(found, title or "Builds", percent, fail_on)
    except (InputError, ImportError) as error:
        raise Unreadable(brief(error)) from None
    if place == "-":
        emit_report(text)
    else:
        try:
            write_text(place, text)
        except OSError as error:
            raise Unreadable(f"{place} cannot be written: {error.strerror}") from None
        say(
            f"{place} written: {pluralize(len(found.builds), 'build')}, {pluralize(len(found.steps), 'changed figure')}"
        )
    worse = found.regressions(fail_on)
    for one in worse:
        before, now = report.figure_texts(one.figure, one.good, one.value)
        since = f"since {printable(one.good_build)}, the last good build"
        say(f"{printable(one.module)}: {FIGURES[one.figure][0]} {before} -> {now} {since}")
    lost = found.missing if fail_on else []
    for each in lost:
        what = MISSING if MISSING in fail_on else "not compared"
        say(f"{printable(each.module)}: {what}: {printable(each.why)}")
    if worse or (lost and MISSING in fail_on):
        raise click.exceptions.Exit(FINDINGS)


def _lines(accepted: str | None) -> list[str]:
    if accepted is None:
        return []
    try:
        with open(accepted, encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{accepted} cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}"
        ) from None
