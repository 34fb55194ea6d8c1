"""Errors of protos."""

from __future__ import annotations

from hlotext.findings import escape
from hlotext.findings.errors import HloSyntaxError, Severity
from hlotext.findings.finding import Finding
from hlotext.ir import sending
from hlotext.ir.nodes.source import Span


class ProtoError(HloSyntaxError):
    """Raised if a proto cannot be read, or a module cannot be written as one. `str()` is one line with the field path.

    A subclass of `HloSyntaxError`, so that callers need not distinguish formats. Line and column are meaningless.
    """

    def __init__(self, message: str, path: str = "", offset: int | None = None, name: str = "") -> None:
        place = f" at {path}" if path else ""
        place += f" (byte {offset:,})" if offset is not None else ""
        at = offset or 0
        super().__init__(Finding("X101", Severity.ERROR, message + place, Span(at, at, 1, 1, 1, 1)))
        self.bare_message = message
        """The message without the position."""
        self.path = path
        """Path of the message and field at fault: `computations[2].instructions[7].shape`; empty for the whole."""
        self.offset = offset
        """Byte offset of the error in the file; None if only the path is known."""
        self.file_name = name
        """Name of the file; empty if there is none."""

    def __str__(self) -> str:
        where = f"{self.file_name}: " if self.file_name else ""
        return escape.line(f"{where}{self.message}")


class MissingProtobuf(sending.Whole, ImportError):  # noqa: N818 - says what is missing
    """Raised if a proto is used and the package `protobuf` (`hlotext[proto]`) is not installed."""

    def __init__(self) -> None:
        super().__init__("protos need an extra: pip install 'hlotext[proto]'")
