"""Input of a writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from hlotext.findings.codes import Code
from hlotext.findings.finding import Finding


@attrs.frozen
class FindingsReport:
    """Findings of one run over files, as input of the writers."""

    findings: Sequence[Finding]
    files: Sequence[str]
    """Files that were checked, including those without findings."""
    code_of: Callable[[str], Code]
    """Description of a code; used for titles, and by SARIF for pages."""
    version: str
    """Version of hlotext."""
    gone: int = 0
    """Baselined findings that no longer occur."""
    total: int | None = None
    """Total number of findings if `findings` was truncated by a limit; otherwise None."""
    with_origin: bool = False
    """True to show the operation of the source program and the cost with each finding."""
