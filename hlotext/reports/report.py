"""Input of a writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from hlotext.findings.codes import Code
from hlotext.findings.finding import Finding


@attrs.frozen
class FindingsReport:
    """Findings in some files."""

    findings: Sequence[Finding]
    files: Sequence[str]
    """Files that were checked, including those without findings."""
    code_of: Callable[[str], Code]
    """Description of a code; used for titles, and by SARIF for pages."""
    version: str
    """Of hlotext."""
    gone: int = 0
    """Known findings that are no longer there."""
    total: int | None = None
    """Findings that there are, where a limit was given; `findings` are the first of them."""
    with_origin: bool = False
    """True to show people the operation of the source program behind a finding, and its cost."""
