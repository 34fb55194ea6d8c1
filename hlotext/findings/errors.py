"""Errors in a text."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NoReturn

from hlotext.ir import sending

if TYPE_CHECKING:
    from hlotext.findings.finding import Diagnostic
    from hlotext.ir.nodes.source import Span


class Severity(enum.Enum):
    """Severity of a finding of the parser, the verifier or the linter."""

    ERROR = "error"
    """The input is not HLO, or XLA rejects it."""
    WARNING = "warning"
    """Accepted by XLA, but probably unintended."""
    NOTE = "note"
    """Useful information, or syntax unknown to this release that is kept verbatim."""

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        known = [one.value for one in cls]
        raise ValueError(f"{value!r} is not a severity; known: {', '.join(known)}")


class TermError(Exception):
    """A term cannot be parsed. `position` is the offset in its text; callers convert this to an `HloSyntaxError`."""

    def __init__(self, message: str, position: int, help: str = "", code: str = "X112") -> None:
        super().__init__(message)
        self.message = message
        self.position = position
        self.help = help
        self.code = code


class HloSyntaxError(sending.Whole, ValueError):
    """Raised for invalid HLO text. `str()` is the full report: location, message, source line with a caret, and help."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic

    @property
    def code(self) -> str:
        """Stable code of the error, such as `X101`."""
        return self.diagnostic.code

    @property
    def message(self) -> str:
        """The error message, in one sentence without a location."""
        return self.diagnostic.message

    @property
    def line(self) -> int:
        """Line of the offending token, from 1."""
        return self.diagnostic.line

    @property
    def column(self) -> int:
        """Column of the offending token in characters, from 1."""
        return self.diagnostic.column

    @property
    def source_line(self) -> str:
        """The source line that contains the offending token."""
        return self.diagnostic.source_line

    @property
    def span(self) -> Span:
        """Position of the offending token."""
        return self.diagnostic.span


def brief(error: BaseException) -> str:
    """Returns an error as one line: with location and help for HLO text, else the first line of its message."""
    if isinstance(error, HloSyntaxError):
        return error.diagnostic.brief
    return next(iter(str(error).splitlines()), type(error).__name__)
