"""Findings in the Static Analysis Results Interchange Format, SARIF 2.1.0 (OASIS), as code hosts and editors read it."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from hlotext.findings import escape
from hlotext.findings.codes import Code
from hlotext.findings.errors import Severity
from hlotext.findings.finding import Finding
from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.source import Span
from hlotext.reports.json import cut_json, properties
from hlotext.reports.report import FindingsReport

if TYPE_CHECKING:
    from urllib import parse
else:
    parse = late_module("urllib.parse")

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def sarif(report: FindingsReport) -> str:
    """Formats findings as a SARIF log with a single run."""
    codes = list(dict.fromkeys(finding.code for finding in report.findings))
    numbers = {code: number for number, code in enumerate(codes)}
    run = {
        "tool": {
            "driver": {
                "name": "hlotext",
                "version": report.version,
                "rules": [_rule(report.code_of(code)) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, numbers[finding.code]) for finding in report.findings],
    }
    if report.total is not None:
        run["properties"] = cut_json(report)
    return escape.json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def _rule(code: Code) -> dict[str, Any]:
    page = code.page()
    return {
        "id": code.name,
        "shortDescription": {"text": code.title},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
    }


def _result(finding: Finding, rule_index: int) -> dict[str, Any]:
    message = f"{finding.message}\n{finding.help}" if finding.help else finding.message
    facts = finding.facts
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": _LEVELS[finding.severity],
        "message": {"text": escape.sarif(message)},
        "locations": [_location(finding.span, facts.file)],
        "partialFingerprints": {"hlotext/v1": finding.fingerprint or _fingerprint(finding)},
    }
    related = [*finding.related]
    if finding.checkout is not None:
        path, line = finding.checkout
        result["locations"] = [_location(Span(0, 0, line, 1, line, 1), path)]
        del result["locations"][0]["physicalLocation"]["region"]["endColumn"]
        related.insert(0, (f"the line of {facts.file}", finding.span))
    if facts.name:
        result["locations"][0]["logicalLocations"] = [
            {"name": facts.name, "fullyQualifiedName": f"{facts.computation}/{facts.name}"}
        ]
    if related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": escape.sarif(what)}, **_location(span, facts.file)}
            for number, (what, span) in enumerate(related, 1)
        ]
    if more := properties(finding):
        result["properties"] = more
    return result


def _location(span: Span, file: str) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(file)},
            "region": {
                "startLine": span.line,
                "startColumn": span.column,
                "endLine": span.end_line,
                "endColumn": max(span.end_column, 1),
            },
        }
    }


def _uri(file: str) -> str:
    """A path as a reference: relative paths stay relative, so that the host finds the file in its checkout."""
    text = file.replace(os.sep, "/").encode("utf-8", "surrogateescape")
    return f"file://{parse.quote(text)}" if os.path.isabs(file) else parse.quote(text)


def _fingerprint(finding: Finding) -> str:
    """Equal as long as the code, the instruction and the message stay; the line may move."""
    parts = (finding.code, finding.file, finding.computation, finding.name, finding.message)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
