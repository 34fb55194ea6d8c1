"""One finding as a plain value: all that any format writes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from hlotext.findings.diagnostic import Diagnostic
from hlotext.findings.errors import Severity


@attrs.frozen
class Place:
    """A range in the file of the entry, and why it matters. Lines and columns count from 1; columns count characters."""

    message: str
    line: int
    column: int
    end_line: int
    end_column: int


@attrs.frozen
class Entry:
    """One finding."""

    code: str
    title: str
    """What the code stands for, in one line."""
    severity: Severity
    message: str
    file: str
    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1
    help: str = ""
    """What to do about it; empty when there is nothing to say."""
    module: str = ""
    """The module's name; empty where there is none. So are the next two."""
    computation: str = ""
    instruction: str = ""
    op_name: str = ""
    """The operation of the source program; empty where the text names none."""
    related: tuple[Place, ...] = ()
    fingerprint: str = ""
    """Equal for the same finding in the next version of the file; empty where nothing makes one."""
    properties: Mapping[str, Any] = attrs.field(factory=dict)
    """Further facts for programs, as JSON values."""
    text: str = ""
    """The report for people: place, message, the line of the source with a caret, help."""


def from_diagnostic(diagnostic: Diagnostic, title: str, module: str = "") -> Entry:
    """What the reader or the verifier found, as an entry."""
    span, instruction = diagnostic.span, diagnostic.instruction
    computation = instruction.computation if instruction is not None else None
    metadata = instruction.metadata if instruction is not None else None
    return Entry(
        code=diagnostic.code,
        title=title,
        severity=diagnostic.severity,
        message=diagnostic.message,
        file=diagnostic.source.name if diagnostic.source is not None else "<text>",
        line=span.line,
        column=span.column,
        end_line=span.end_line,
        end_column=span.end_column,
        help=diagnostic.help,
        module=module,
        computation=computation.name if computation is not None else "",
        instruction=instruction.name if instruction is not None else "",
        op_name=metadata.op_name if metadata is not None else "",
        related=tuple(
            Place(what, where.line, where.column, where.end_line, where.end_column)
            for what, where in diagnostic.related
        ),
        text=str(diagnostic),
    )
