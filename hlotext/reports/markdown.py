"""A summary in Markdown, short enough for a comment on a pull request, and the counts by code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hlotext.findings import escape
from hlotext.findings.finding import Finding
from hlotext.reports.human import summary
from hlotext.reports.report import FindingsReport

_SHOWN = 20
"""Findings that are listed one by one."""


def markdown(report: FindingsReport) -> str:
    """Formats a Markdown summary: number of findings by code, and the first findings."""
    findings, gone = report.findings, report.gone
    out = [f"### hlotext: {summary(findings, len(report.files))}", ""]
    if gone:
        out += [
            f"{gone:,} known finding{'' if gone == 1 else 's'} no longer occur{'s' if gone == 1 else ''}.",
            "",
        ]
    if findings:
        out += ["| code | count | what |", "|---|---:|---|"]
        for code, count in counts(findings):
            out.append(f"| {code} | {count:,} | {escape.markdown(report.code_of(code).title)} |")
        out += ["", "<details><summary>Findings</summary>", "", "| where | what |", "|---|---|"]
        out += map(_row, findings[:_SHOWN])
        if len(findings) > _SHOWN:
            out.append(f"| ... | and {len(findings) - _SHOWN:,} more |")
        out += ["", "</details>"]
    return "\n".join(out).rstrip() + "\n"


def _row(finding: Finding) -> str:
    facts = finding.facts
    where = (
        escape.markdown_code(f"{facts.file}:{finding.line}" if facts.is_in_text else facts.file),
        escape.markdown_code(facts.name),
    )
    what = f"{finding.code}: {escape.markdown(finding.message)}", escape.markdown_code(facts.op_name)
    return f"| {' '.join(filter(None, where))} | {' '.join(filter(None, what))} |"


def counts(findings: Sequence[Finding]) -> list[tuple[str, int]]:
    """Returns the number of findings by code, most frequent first."""
    return sorted(Counter(finding.code for finding in findings).items(), key=lambda row: (-row[1], row[0]))


def statistics(report: FindingsReport) -> str:
    """Formats one line per code: count, code, title."""
    rows = counts(report.findings)
    width = max((len(f"{count:,}") for _, count in rows), default=0)
    return "".join(f"{count:>{width},}  {code}  {report.code_of(code).title}\n" for code, count in rows)
