"""Findings of the linter with default settings."""

from __future__ import annotations

from typing import Any

from hlotext import lint
from hlotext.tables.rows.subject import Subject
from hlotext.tables.table import Table, from_rows


def findings(subject: Subject) -> Table:
    """Builds the table `findings`."""
    found = lint.run(subject.module) if subject.module.computations else []
    return from_rows("findings", [_row(subject, one) for one in found], subject.build)


def _row(subject: Subject, one: lint.Finding) -> dict[str, Any]:
    facts, frame = one.facts, one.frame
    return {
        "module": subject.key,
        "code": one.code,
        "rule": one.rule,
        "severity": one.severity.value,
        "message": one.message,
        "help": one.help,
        "id": subject.ids.get(one.instruction) if one.instruction is not None else None,
        "name": facts.name,
        "computation": facts.computation,
        "op_name": facts.op_name,
        "text_line": one.line,
        "text_column": one.column,
        "file": frame.file if frame is not None else None,
        "line": frame.line if frame is not None else None,
        "function": frame.function if frame is not None else None,
        "bytes": one.bytes,
        "is_held": one.is_held,
        "flops": one.flops,
        "places": one.places,
        "fix": one.fix or None,
        "fingerprint": one.fingerprint,
        "other_fingerprints": one.other_fingerprints,
    }
