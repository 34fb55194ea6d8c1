"""Findings as JSON, for programs. The names of the fields stay; new ones may come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.reports.entry import Entry, Place


def json_report(entries: Sequence[Entry], files: Sequence[str], tool_version: str) -> str:
    """One object: the files that were looked at, the findings in order, and how many there are of each severity."""
    counts = Counter(entry.severity for entry in entries)
    report = {
        "version": 1,
        "tool": {"name": "hlotext", "version": tool_version},
        "files": list(files),
        "findings": [finding_json(entry) for entry in entries],
        "summary": {f"{severity.value}s": counts[severity] for severity in Severity},
    }
    return escape.json(report)


def finding_json(entry: Entry) -> dict[str, Any]:
    """One finding as a JSON object."""
    found = {
        "code": entry.code,
        "title": entry.title,
        "severity": entry.severity.value,
        "message": entry.message,
        "help": entry.help,
        "file": entry.file,
        **_range(entry),
        "module": entry.module,
        "computation": entry.computation,
        "instruction": entry.instruction,
        "op_name": entry.op_name,
        "related": [{"message": place.message, **_range(place)} for place in entry.related],
    }
    if entry.fingerprint:
        found["fingerprint"] = entry.fingerprint
    return found | dict(entry.properties)


def _range(place: Entry | Place) -> dict[str, int]:
    return {
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
    }
