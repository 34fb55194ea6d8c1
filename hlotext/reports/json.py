"""Findings as JSON, for programs. The names of the fields stay; new ones may come."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs

from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.findings.finding import Finding
from hlotext.ir.nodes.source import Span
from hlotext.reports.report import FindingsReport


def json(report: FindingsReport) -> str:
    """Formats the `document` as JSON text."""
    return escape.json(document(report)) + "\n"


def document(report: FindingsReport) -> dict[str, Any]:
    """Converts the report to a JSON object: the checked files, the findings, and their number by severity."""
    counts = Counter(finding.severity for finding in report.findings)
    cut = {} if report.total is None else cut_json(report)
    return {
        "version": 1,
        "tool": {"name": "hlotext", "version": report.version},
        "files": list(report.files),
        "findings": [finding_json(finding, report) for finding in report.findings],
        "summary": {f"{severity.value}s": counts[severity] for severity in Severity},
        **cut,
    }


def cut_json(report: FindingsReport) -> dict[str, Any]:
    """Returns the total number of findings, and whether the report omits some."""
    return {"total": report.total, "truncated": report.total != len(report.findings)}


def json_lines(report: FindingsReport) -> str:
    """Formats findings as JSON Lines, each as in `findings` of `json`."""
    return "".join(f"{escape.json(finding_json(finding, report), None)}\n" for finding in report.findings)


def finding_json(finding: Finding, report: FindingsReport) -> dict[str, Any]:
    """Converts a finding to a JSON object, with the title of its code from `report`."""
    facts = finding.facts
    found = {
        "code": finding.code,
        "title": report.code_of(finding.code).title,
        "severity": finding.severity.value,
        "message": finding.message,
        "help": finding.help,
        "file": facts.file,
        **_range(finding.span),
        "module": finding.module,
        "computation": facts.computation,
        "instruction": facts.name,
        "op_name": facts.op_name,
        "related": [{"message": what, **_range(span)} for what, span in finding.related],
    }
    if finding.fingerprint:
        found["fingerprint"] = finding.fingerprint
    return found | properties(finding)


def properties(finding: Finding) -> dict[str, Any]:
    """Returns the optional fields of a finding as JSON values."""
    found: dict[str, Any] = {}
    if finding.rule:
        found["rule"] = finding.rule
    if finding.bytes is not None:
        found["bytes"] = finding.bytes
    if finding.flops is not None:
        found["flops"] = finding.flops
    if finding.waste:
        found["waste"] = finding.waste
        found["seconds"] = finding.seconds
        found["peak_bytes"] = finding.peak_bytes
        if finding.is_at_most:
            found["is_at_most"] = True
        found["share"] = finding.share
        found["basis"] = finding.basis
    if finding.places > 1:
        found["places"] = finding.places
        found["other_lines"] = list(finding.other_lines)
    if finding.is_held:
        found["is_held"] = True
    if finding.frame is not None:
        frame = finding.frame
        found["frame"] = {"file": frame.file, "line": frame.line, "function": frame.function}
    if finding.what_if is not None:
        found["what_if"] = attrs.asdict(finding.what_if)
    if finding.fix:
        found["fix"] = {"pass": finding.fix, "safety": "safe"}
    return found


def _range(span: Span) -> dict[str, int]:
    return {
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }
