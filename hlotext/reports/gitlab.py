"""Findings as a Code Quality report of GitLab, shown in merge requests.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.ir.lazy_imports import late_module
from hlotext.reports.report import FindingsReport

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = late_module("hashlib")

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def gitlab(report: FindingsReport) -> str:
    """Formats findings as a GitLab code-quality report, a JSON array.

    Duplicate fingerprints are numbered, since GitLab requires unique ones.
    """
    seen: Counter[str] = Counter()
    rows = []
    for finding in report.findings:
        base = finding.fingerprint or "\0".join((finding.code, finding.name, finding.message))
        path, first = finding.checkout or (finding.file, finding.line)
        last = first if finding.checkout is not None else max(finding.line, finding.end_line)
        place = f"{finding.file}\0{base}"
        seen[place] += 1
        key = f"{place}\0{seen[place]}"
        rows.append(
            {
                "description": f"{finding.code}: {finding.message}",
                "check_name": finding.code,
                "fingerprint": hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest(),
                "severity": _SEVERITIES[finding.severity],
                "location": {"path": path, "lines": {"begin": first, "end": last}},
            }
        )
    return escape.json(rows) + "\n"
