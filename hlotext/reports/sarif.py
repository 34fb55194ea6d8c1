"""Findings in the Static Analysis Results Interchange Format, SARIF 2.1.0 (OASIS), as code hosts and editors read it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.reports.entry import Entry, Place

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def sarif(entries: Sequence[Entry], tool_version: str, page: Callable[[str], str]) -> str:
    """A log of one run. `page` gives the documentation of a code, in Markdown."""
    codes = list(dict.fromkeys(entry.code for entry in entries))
    first = {entry.code: entry for entry in reversed(entries)}
    run = {
        "tool": {
            "driver": {
                "name": "hlotext",
                "version": tool_version,
                "rules": [_rule(first[code], page(code)) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(entry, codes.index(entry.code)) for entry in entries],
    }
    return escape.json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(entry: Entry, page: str) -> dict[str, Any]:
    return {
        "id": entry.code,
        "shortDescription": {"text": entry.title},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": _LEVELS[entry.severity]},
    }


def _result(entry: Entry, rule_index: int) -> dict[str, Any]:
    message = f"{entry.message}\n{entry.help}" if entry.help else entry.message
    result: dict[str, Any] = {
        "ruleId": entry.code,
        "ruleIndex": rule_index,
        "level": _LEVELS[entry.severity],
        "message": {"text": escape.sarif(message)},
        "locations": [_location(entry, entry.file)],
        "partialFingerprints": {"hlotext/v1": entry.fingerprint or _fingerprint(entry)},
    }
    if entry.instruction:
        result["locations"][0]["logicalLocations"] = [
            {"name": entry.instruction, "fullyQualifiedName": f"{entry.computation}/{entry.instruction}"}
        ]
    if entry.related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": escape.sarif(place.message)}, **_location(place, entry.file)}
            for number, place in enumerate(entry.related, 1)
        ]
    if entry.properties:
        result["properties"] = dict(entry.properties)
    return result


def _location(place: Entry | Place, file: str) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(file)},
            "region": {
                "startLine": place.line,
                "startColumn": place.column,
                "endLine": place.end_line,
                "endColumn": max(place.end_column, 1),
            },
        }
    }


def _uri(file: str) -> str:
    """A path as a reference: relative paths stay relative, so that the host finds the file in its checkout."""
    text = file.replace(os.sep, "/").encode("utf-8", "surrogateescape")
    return f"file://{quote(text)}" if os.path.isabs(file) else quote(text)


def _fingerprint(entry: Entry) -> str:
    """Equal as long as the code, the instruction and the message stay; the line may move."""
    parts = (entry.code, entry.file, entry.computation, entry.instruction, entry.message)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
