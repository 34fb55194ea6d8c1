"""One line for each finding: for people and editors, and as JSON for streams."""

from __future__ import annotations

from collections.abc import Iterable

from hlotext.findings import escape
from hlotext.reports.entry import Entry
from hlotext.reports.json import finding_json


def concise(entries: Iterable[Entry]) -> str:
    """`file:line:column: warning[C101]: message`."""
    return "".join(f"{concise_line(entry)}\n" for entry in entries)


def concise_line(entry: Entry) -> str:
    """One finding, without line end."""
    text = f"{entry.file}:{entry.line}:{entry.column}: {entry.severity.value}[{entry.code}]: {entry.message}"
    return escape.line(" ".join(text.split()))


def json_lines(entries: Iterable[Entry]) -> str:
    """One JSON object a line, each as `json_report` has it in `findings`."""
    return "".join(f"{escape.json(finding_json(entry), None)}\n" for entry in entries)
