"""Annotations for GitHub Actions: workflow commands, one line for each finding.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.findings.finding import Finding
from hlotext.reports.report import FindingsReport

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def github(report: FindingsReport) -> str:
    """Formats findings as GitHub workflow commands, such as `::error file=...,line=...::message`."""
    return "".join(f"{_command(finding, report)}\n" for finding in report.findings)


def _command(finding: Finding, report: FindingsReport) -> str:
    fields: dict[str, object] = {
        "file": finding.file,
        "line": finding.line,
        "endLine": finding.end_line,
        "col": finding.column,
        "endColumn": finding.end_column,
        "title": f"{finding.code} {report.code_of(finding.code).title}",
    }
    if finding.end_line != finding.line or finding.checkout is not None:
        # Columns of a range over several lines are refused, and those in the text are none in the program.
        del fields["col"], fields["endColumn"]
    if finding.checkout is not None:
        fields["file"], fields["line"] = finding.checkout
        fields["endLine"] = finding.checkout[1]
    properties = ",".join(f"{name}={escape.github_property(str(value))}" for name, value in fields.items())
    message = f"{finding.message}\n{finding.help}" if finding.help else finding.message
    if finding.checkout is not None:
        message += f"\nin {finding.place}"
    return f"::{_COMMANDS[finding.severity]} {properties}::{escape.github_data(message)}"
