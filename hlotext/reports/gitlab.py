"""Findings as a Code Quality report of GitLab, shown in merge requests.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.reports.entry import Entry

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def gitlab(entries: Iterable[Entry]) -> str:
    """A JSON list. GitLab wants each fingerprint once, so equal ones are numbered."""
    seen: Counter[str] = Counter()
    rows = []
    for entry in entries:
        base = entry.fingerprint or "\0".join((entry.code, entry.instruction, entry.message))
        place = f"{entry.file}\0{base}"
        seen[place] += 1
        key = f"{place}\0{seen[place]}"
        rows.append(
            {
                "description": f"{entry.code}: {entry.message}",
                "check_name": entry.code,
                "fingerprint": hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest(),
                "severity": _SEVERITIES[entry.severity],
                "location": {
                    "path": entry.file,
                    "lines": {"begin": entry.line, "end": max(entry.line, entry.end_line)},
                },
            }
        )
    return escape.json(rows)
