"""Counts of findings by code, in the formats that can hold them."""

from __future__ import annotations

from typing import Any

from hlotext.findings import escape
from hlotext.reports.json import document
from hlotext.reports.markdown import counts, statistics
from hlotext.reports.report import FindingsReport


def counted_document(report: FindingsReport) -> dict[str, Any]:
    """Converts the report to a JSON object as `document` does, with an empty `findings` and their counts in `statistics`."""
    return {**document(report), "findings": [], "statistics": _rows(report)}


def _json(report: FindingsReport) -> str:
    return escape.json(counted_document(report)) + "\n"


def _json_lines(report: FindingsReport) -> str:
    return "".join(f"{escape.json(row, None)}\n" for row in _rows(report))


def _markdown(report: FindingsReport) -> str:
    rows = [
        f"| {row['code']} | {row['count']:,} | {escape.markdown(row['title'])} |\n" for row in _rows(report)
    ]
    return "".join(["| code | count | title |\n", "|---|---:|---|\n", *rows])


def _rows(report: FindingsReport) -> list[dict[str, Any]]:
    """An object for each code, the most frequent first."""
    return [
        {"code": code, "title": report.code_of(code).title, "count": count}
        for code, count in counts(report.findings)
    ]


STATISTICS = {
    "full": statistics,
    "concise": statistics,
    "json": _json,
    "json-lines": _json_lines,
    "markdown": _markdown,
}
"""The formats that have such counts; the others list findings and nothing else."""
