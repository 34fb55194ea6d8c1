"""What a writer writes down."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from hlotext.findings.codes import Code
from hlotext.findings.finding import Finding


@attrs.frozen
class FindingsReport:
    """What was found in some files."""

    findings: Sequence[Finding]
    files: Sequence[str]
    """What was looked at, also where nothing was found."""
    code_of: Callable[[str], Code]
    """What a code stands for; asked for titles, and by SARIF for pages."""
    version: str
    """Of hlotext."""
    gone: int = 0
    """Known findings that are no longer there."""
    total: int | None = None
    """Findings that there are, where a limit was given; `findings` are the first of them."""
    with_origin: bool = False
    """Whether people are also told which operation of the source program a finding comes from, and what it costs."""
