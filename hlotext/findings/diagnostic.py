"""One thing to say about one place of a text, and how the place is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.source import Source, Span
from hlotext.ir.values.value import Value

if TYPE_CHECKING:
    from hlotext.ir.nodes.instruction import Instruction


@attrs.frozen(repr=False)
class Diagnostic(Value):
    """One thing to say about one place of a text."""

    code: str
    """Stable code such as `X101`."""
    severity: Severity
    message: str
    span: Span
    help: str = ""
    """What to do about it; empty when there is nothing to say."""
    related: tuple[tuple[str, Span], ...] = ()
    """Other places that matter, such as where a name was first defined."""
    source: Source | None = attrs.field(default=None, repr=False, eq=False)
    """The text that the spans are in; for what was edited or built, the one line as it prints now."""
    instruction: Instruction | None = attrs.field(default=None, repr=False, eq=False)
    """The instruction at fault; None for what the readers find, and for what is about no single one."""
    related_instructions: tuple[Instruction, ...] = attrs.field(default=(), repr=False, eq=False)
    """Other instructions that matter, such as the operand that does not fit; empty for the readers."""

    @property
    def line(self) -> int:
        return self.span.line

    @property
    def column(self) -> int:
        return self.span.column

    @property
    def source_line(self) -> str:
        """The whole line of the source text where it starts."""
        return self.source.line(self.span.line) if self.source is not None else ""

    def __str__(self) -> str:
        name = escape.line(self.source.name) if self.source is not None else "<text>"
        message = escape.line(self.message)
        out = [f"{name}:{self.line}:{self.column}: {self.severity.value}[{self.code}]: {message}"]
        out += self._excerpt(self.span)
        for what, span in self.related:
            out.append(f"{name}:{span.line}:{span.column}: {escape.line(what)}")
            if self.source is not None:
                out += self._excerpt(span)
        if self.help:
            out.append(f"  help: {escape.lines(self.help)}")
        return "\n".join(out)

    def _excerpt(self, span: Span) -> list[str]:
        """The line of a span with a caret, without a copy of the whole line: there may be a thousand errors on a huge one."""
        text = self.source.text if self.source is not None else ""
        start, end = self.source.bounds(span.line) if self.source is not None else (0, 0)
        return _excerpt(
            lambda first, last: text[start + first : min(end, start + last)], end - start, span.line, span
        )


_WIDTH = 160
"""Longest piece of a source line that is shown; dumps have lines of megabytes."""


def excerpt(line: str, number: int, span: Span) -> list[str]:
    """The source line and a caret under the span, cut around the span where the line is long."""
    return _excerpt(lambda first, last: line[first:last], len(line), number, span)


def _excerpt(piece: Callable[[int, int], str], length: int, number: int, span: Span) -> list[str]:
    """The same of a line of so many characters; `piece` gives those between two columns, from 0."""
    column = span.column - 1
    first = max(0, column - _WIDTH // 2) if length > _WIDTH else 0
    # Blank for blank: the caret stands below the character that is meant.
    shown = escape.lines(piece(first, first + _WIDTH).replace("\t", " ").replace("\n", escape.REPLACEMENT))
    left = "... " if first else ""
    right = " ..." if first + _WIDTH < length else ""
    width = span.end_column - span.column if span.end_line == span.line else length - column
    carets = "^" * max(1, min(width, _WIDTH - (column - first)))
    gutter = f"{number} | "
    pad = " " * (len(gutter) - 2) + "| "
    return [f"  {gutter}{left}{shown}{right}", f"  {pad}{' ' * (len(left) + column - first)}{carets}"]
