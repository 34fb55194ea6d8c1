"""Annotations for GitHub Actions: workflow commands, one line for each finding.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Iterable

from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.reports.entry import Entry

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def github(entries: Iterable[Entry]) -> str:
    """One `::error file=...,line=...::message` for each finding."""
    return "".join(f"{_command(entry)}\n" for entry in entries)


def _command(entry: Entry) -> str:
    fields: dict[str, object] = {
        "file": entry.file,
        "line": entry.line,
        "endLine": entry.end_line,
        "col": entry.column,
        "endColumn": entry.end_column,
        "title": f"{entry.code} {entry.title}",
    }
    if entry.end_line != entry.line:
        # Columns of a range over several lines are refused.
        del fields["col"], fields["endColumn"]
    properties = ",".join(f"{name}={escape.github_property(str(value))}" for name, value in fields.items())
    message = f"{entry.message}\n{entry.help}" if entry.help else entry.message
    return f"::{_COMMANDS[entry.severity]} {properties}::{escape.github_data(message)}"
