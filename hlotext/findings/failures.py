"""A check that fails is a finding too: of the text that it failed on, so that the other checks and texts go on."""

from __future__ import annotations

import traceback

from hlotext.findings.codes import Code
from hlotext.findings.errors import Severity
from hlotext.findings.finding import Finding
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.source import Source, Span

INTERNAL = "X900"
"""The code of a check or rule that failed. It is always reported."""
FAILED = Code(INTERNAL, Severity.ERROR, "a check crashed: a bug in hlotext", "hlotext.findings")
NOWHERE = Span(0, 0, 1, 1, 1, 1)
"""The place of what has none."""


def failure(
    what: str,
    error: Exception,
    *,
    source: Source | None = None,
    span: Span | None = None,
    instruction: Instruction | None = None,
    module: str = "",
) -> Finding:
    """Returns the finding `X900` that something, such as `rule D101`, raised an exception. Its help is the traceback."""
    message = " ".join(f"{what} failed: {type(error).__name__}: {error}".split())
    return Finding(
        INTERNAL,
        Severity.ERROR,
        message[:1000],
        NOWHERE if span is None else span,
        "".join(traceback.format_exception(error)),
        source=source,
        instruction=instruction,
        rule="rule-failed",
        module=module,
    )
