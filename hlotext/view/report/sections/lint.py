"""Findings of the linter: `hlotext lint`."""

from __future__ import annotations

from collections.abc import Sequence

from hlotext.analysis.formatting import pluralize
from hlotext.lint import Finding
from hlotext.reports.human import by_severity
from hlotext.view.report.parts import Missing, PageTable, Section, columns_of, cut
from hlotext.view.report.report_input import ReportInput

_COLUMNS = columns_of("report.lint_rows")


def section(subject: ReportInput) -> Section | Missing:
    """Returns the section on findings of the default rules, in the order of `hlotext lint`: by decreasing saving."""
    found = subject.findings
    if not found:
        return Missing("lint", "Findings", "no findings with the default rules")
    rows = [
        (
            one.severity.value,
            one.code,
            one.message,
            one.help or "",
            f"{one.frame.file.rsplit('/', 1)[-1]}:{one.frame.line}" if one.frame is not None else "",
            one.instruction.name if one.instruction is not None else "",
            one.seconds,
            one.peak_bytes,
            one.share or None,
            one.bytes if one.bytes != one.peak_bytes else None,
            one.flops,
            one.places,
        )
        for one in cut(found)
    ]
    bases = dict.fromkeys(one.basis for one in found if one.seconds is not None and one.basis)
    return Section(
        "lint",
        "Findings",
        "Wasted time and memory, with remedies; `hlotext help rule CODE` explains a code.",
        facts=[
            ("found", _counted(found)),
            *(("times", f"estimated for {basis}") for basis in bases),
        ],
        tables=[PageTable("lint-findings", "Findings", _COLUMNS, rows, len(found))],
    )


def _counted(found: Sequence[Finding]) -> str:
    """Errors, warnings and notes apart, as `hlotext lint` counts them, and in how many places they are."""
    places = sum(one.places for one in found)
    where = f", in {pluralize(places, 'place')}" if places > len(found) else ""
    return f"{by_severity(found)}{where}"
