"""Where the computations of a file begin and end, found in one pass that reads none of them.

It is the form in which XLA writes text that makes this possible: computations are separated by empty lines, and each op line
begins a line.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator

from hlotext.findings.errors import HloSyntaxError
from hlotext.findings.finding import Diagnostic
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.source import Source
from hlotext.ir.tables import opcodes
from hlotext.syntax.fast.header_reader import read_head
from hlotext.syntax.language import patterns
from hlotext.syntax.language.words import unquote
from hlotext.syntax.source.file_text import FileText
from hlotext.syntax.source.reporter import Reporter

_PIECE = 1 << 22
"""Bytes that are looked through at a time."""

_UNFIT = ("\r", "\t", "\nHloModule", " map(")
"""Text that a file must not contain. (XLA's condition on `map` looks into the computation that is called.)"""
_COMMENT = re.compile(r"/\*(?!index=[0-9]{1,9}\*/)")
"""A comment that may go on below, or hold anything."""
_BODIES = (
    re.compile(
        rf"=\{{+(?:[\s/]|\Z|ROOT\b|%[\w.\-]+\s*=|{patterns.IDENTIFIER}\s*=\s*(?:\(|%|[a-z][\w\-]*[\[(]))",
        re.ASCII,
    ),
    re.compile(r"computations=\{[^{}\n]*\{"),
)
"""Text that may be a body in place of a computation's name. (Each begins with plain characters, which Python finds fast.)"""
_START = re.compile(r"-start\(")
_IN_OPCODES = f"{string.ascii_lowercase}{string.digits}-"
_CALLEE = re.compile(r", calls=%?([\w.\-]+)", re.ASCII)
_EMPTY = re.compile(r"\n*+")
_NO_LINES = ("\n   ", "\n  }")
"""Beginnings of lines that are not op lines of a computation."""
_CLOSING = re.compile(r"\n\}(?:, execution_thread=(\"[^\"\\\n]*\"))?(?=\n|\Z)")


class UnfitFileError(Exception):
    """Raised for a file that cannot be read computation by computation."""


class Index:
    """Finds the computations of a file and adds them to its module, unread."""

    def __init__(
        self, text: FileText, module: Module, new: Callable[[str, Module, int], Computation]
    ) -> None:
        self.text = text
        self.module = module
        self.head = ""
        """The text before the first computation, and that one."""
        self.computations: dict[str, Computation] = {}
        """By name."""
        self._new = new
        self._started: set[str] = set()
        """Computations that an async-start calls."""

    def make(self, *, strict: bool) -> list[Diagnostic]:
        """Fills the module and returns notes on the header. Raises UnfitFileError."""
        module = self.module
        if self.text.read(0, min(9, len(self.text))) != b"HloModule":
            raise UnfitFileError
        pieces = self._pieces()
        offset, text = next(pieces, (0, ""))
        notes = self._read_head(text, strict)
        position = module._header_end - offset
        current: Computation | None = None
        # Each piece ends where a line ends; what cannot be decided yet is looked at again with the next one.
        while True:
            position, current = self._index(text, offset, position, current)
            following = next(pieces, None)
            if following is None:
                break
            rest, begin = text[position:], offset + position
            text, offset, position = rest + following[1], begin, 0
        if current is not None or text[position:].strip("\n") or not module._computations:
            raise UnfitFileError
        return notes

    def _pieces(self) -> Iterator[tuple[int, str]]:
        """The text in pieces of whole lines, each from a line end on, with their offsets."""
        offset = 0
        kept = b""
        end = len(self.text)
        while offset + len(kept) < end:
            start = offset + len(kept)
            # Doubled where a line is longer than that, so that nothing is copied often.
            data = kept + self.text.read(start, min(end, start + max(_PIECE, len(kept))))
            limit = data.rfind(b"\n") if offset + len(data) < end else len(data)
            if limit <= 0 or (not offset and offset + len(data) < end and data.find(b"\n}", 0, limit) < 0):
                kept = data  # the first piece holds the header, and a computation
                continue
            piece = data[:limit]
            if not piece.isascii():
                raise UnfitFileError
            text = piece.decode("ascii")
            self._check(text, is_first=not offset)
            yield offset, text
            offset, kept = offset + limit, data[limit:]

    def _check(self, text: str, *, is_first: bool) -> None:
        """Checks line by line that a file can be indexed. Raises UnfitFileError."""
        if any(word in text for word in _UNFIT) or _COMMENT.search(text):
            raise UnfitFileError
        if any(body.search(text, 0 if not is_first else text.find("\n")) for body in _BODIES):
            raise UnfitFileError
        for match in _START.finditer(text):
            before = text[max(0, match.start() - 40) : match.start()]
            opcode = f"{before[len(before.rstrip(_IN_OPCODES)) :]}-start"
            if opcodes.async_wrapped(opcode) is not None:
                raise UnfitFileError
            if (
                opcode in opcodes.NATIVE_ASYNC
                and "((" in text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            ):
                raise UnfitFileError  # perhaps the short spelling of an async-start
            if opcode == "async-start":
                line_end = text.find("\n", match.end())
                callee = _CALLEE.search(text, match.end(), line_end if line_end >= 0 else len(text))
                if callee is None or callee[1] in self._started:
                    raise UnfitFileError
                self._started.add(callee[1])

    def _read_head(self, text: str, strict: bool) -> list[Diagnostic]:
        """Reads the header and the tables. Raises UnfitFileError, also for an error there."""
        module, end = self.module, text.find("\n}") + 2
        if end < 2 or "origin_recovery_table" in text[: text.find("\n")]:
            raise UnfitFileError
        self.head = text[:end]
        reporter = Reporter(Source(self.head), strict)
        try:
            module._header_end = read_head(module, reporter, 0)
        except HloSyntaxError:
            raise UnfitFileError from None
        return reporter.diagnostics

    def _index(
        self, text: str, offset: int, position: int, current: Computation | None
    ) -> tuple[int, Computation | None]:
        """Notes the computations of a piece; gives where to go on, and the computation whose end is still to come."""
        header, length = patterns.computation_header().match, len(text)
        while True:
            if current is not None:
                end = text.find("\n}", position)
                stop = length if end < 0 else end
                lines = text.count("\n", position, stop)
                if lines != text.count("\n  ", position, stop):
                    raise UnfitFileError
                if any(text.find(begin, position, stop) >= 0 for begin in _NO_LINES):
                    raise UnfitFileError
                position = stop
                if end < 0:
                    return position, current
                closing = _CLOSING.match(text, position)
                if closing is None:
                    raise UnfitFileError
                position = closing.end()
                current._end = offset + position
                if closing[1] is not None:
                    current._execution_thread = unquote(closing[1])
                current = None
            empty = _EMPTY.match(text, position)
            assert empty is not None
            if empty.end() == length:
                return position, None  # the end, or an empty line at the end of the piece
            match = header(text, empty.end())
            if match is None or empty.end() < position + 2:
                raise UnfitFileError
            if match[3] is not None and " {" in match[3][:-1].rstrip():
                raise UnfitFileError  # a whole computation stands on the line, and another begins there
            current = self._add(match[2].removeprefix("%"), offset + match.start(), match[1] is not None)
            position = match.end()
            current._brace = offset + position - 1

    def _add(self, name: str, start: int, is_entry: bool) -> Computation:
        """Puts an unread computation into the module."""
        module = self.module
        if name in self.computations or (is_entry and module._entry is not None):
            raise UnfitFileError
        computation = self._new(name, module, start)
        if is_entry:
            module._entry = computation
        module._computations.append(computation)
        self.computations[name] = computation
        return computation
