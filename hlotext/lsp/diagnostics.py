"""Findings of the readers, the verifier and the linter as diagnostics, each with a link to the page of its code."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from lsprotocol import types

from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.findings.finding import Finding
from hlotext.lint.codes import code_of
from hlotext.lsp.reading import View

MOST = 1_000
"""Diagnostics of one document."""

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


def diagnostics(view: View, findings: Iterable[Finding], left_out: int = 0) -> list[types.Diagnostic]:
    """Returns diagnostics in text order, at most `MOST`, and one more that states how many are left out."""
    ordered = sorted(findings, key=lambda finding: finding.span.start)
    shown = [_diagnostic(view, finding) for finding in ordered[:MOST]]
    more = len(ordered) - len(shown) + left_out
    if more and shown:
        shown.append(
            types.Diagnostic(
                shown[-1].range,
                f"{more:,} more findings not shown here (`hlotext check`, `verify` and `lint` list them)",
                severity=types.DiagnosticSeverity.Information,
                source="hlotext",
            )
        )
    return shown


def _diagnostic(view: View, finding: Finding) -> types.Diagnostic:
    start = view.after(finding.span.start)
    # Of a finding about many lines the first is marked: an underlined computation hides all others.
    _, line_end = view.document.line_bounds(view.document.line_of(start))
    end = max(start, min(view.after(finding.span.end), line_end))
    message = finding.message + (f"\n{finding.help}" if finding.help else "")
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(
                view.document.uri, view.document.range(view.after(span.start), view.after(span.end))
            ),
            escape.line(what),
        )
        for what, span in finding.related[:10]
    ]
    page = page_address(finding.code)
    return types.Diagnostic(
        view.document.range(start, end),
        escape.lines(message),
        severity=_SEVERITIES.get(finding.severity, types.DiagnosticSeverity.Information),
        code=finding.code,
        code_description=types.CodeDescription(page) if page else None,
        source="hlotext",
        related_information=related or None,
    )


@functools.cache
def page_address(code: str) -> str:
    """Address of the page of a code, a file of the installed package; empty if there is none."""
    known = code_of(code)
    try:
        page = resources.files(known.package).joinpath(f"pages/{known.name}.md")
        return page.as_uri() if isinstance(page, Path) and page.is_file() else ""
    except ModuleNotFoundError:
        return ""
