"""Documents as the protocol sees them: lines end at LF, CRLF and CR only, columns count UTF-16 units or UTF-8 bytes.

The line starts are one array, mended by each edit, so that a position in a document of 26 MB costs microseconds.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import numpy as np
from lsprotocol import types
from pygls.uris import to_fs_path

_LINE_END = re.compile(r"\r\n?|\n")
_UNITS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_UNIT_BYTES = {"utf-8": 1, "utf-16": 2, "utf-32": 4}

Edit = tuple[int, int, int]
"""Start, end and length of the new text of one replacement."""


class Document:
    """The text of one open file, and the edits since the text that was read last."""

    def __init__(self, uri: str, text: str, version: int | None, encoding: str = "utf-16") -> None:
        self.uri = uri
        self.path: str | None = to_fs_path(uri)
        """The file on disk; None for an unsaved buffer."""
        self.version = version
        self._encoding = encoding
        self._edits: list[Edit] = []
        self._forgotten = 0
        self._floor = 0
        self._replace(text)

    def _replace(self, text: str) -> None:
        self.text = text
        self.__dict__.pop("_starts", None)

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        return _line_starts(self.text)

    # ---- positions

    def line_of(self, offset: int) -> int:
        """The line of an offset, from 0."""
        return int(np.searchsorted(self._starts, offset, side="right")) - 1

    def line_bounds(self, line: int) -> tuple[int, int]:
        """Offsets of a line's beginning and of its end without the line end; the end of the text for lines beyond it."""
        if line >= len(self._starts):
            return len(self.text), len(self.text)
        start = int(self._starts[line])
        end = int(self._starts[line + 1]) if line + 1 < len(self._starts) else len(self.text)
        while end > start and self.text[end - 1] in "\r\n":
            end -= 1
        return start, end

    def position(self, offset: int) -> types.Position:
        """The position of an offset in the client's units."""
        line = self.line_of(offset)
        return types.Position(line, self._units(self.text[int(self._starts[line]) : offset]))

    def range(self, start: int, end: int) -> types.Range:
        """The range between two offsets."""
        return types.Range(self.position(start), self.position(end))

    def offset(self, position: types.Position) -> int:
        """The offset of a position; a column past the end of its line means the end."""
        start, end = self.line_bounds(position.line)
        # Every character has at least one unit, so this piece holds the position however long the line is.
        piece = self.text[start : min(end, start + position.character)]
        if piece.isascii() or self._encoding == "utf-32":
            return start + len(piece)
        left = position.character
        for number, character in enumerate(piece):
            left -= self._units(character)
            if left < 0:
                return start + number
            if not left:
                return start + number + 1
        return start + len(piece)

    def _units(self, piece: str) -> int:
        if piece.isascii():
            return len(piece)
        encoded = piece.encode(_UNITS[self._encoding], "surrogatepass")
        return len(encoded) // _UNIT_BYTES[self._encoding]

    # ---- edits

    def apply(self, changes: Sequence[types.TextDocumentContentChangeEvent], version: int | None) -> None:
        """Applies what the client sends after an edit, in its order."""
        for change in changes:
            where = getattr(change, "range", None)
            if where is None:
                self._replace(change.text)
                self._forgotten = self._floor = self.edit_count + 1
                self._edits = []
            else:
                self._splice(self.offset(where.start), self.offset(where.end), change.text)
        self.version = version

    def _splice(self, start: int, end: int, new: str) -> None:
        end = max(start, end)
        old_starts = self._starts
        # The lines that the edit can change: those of its ends, and one more on each side where CR and LF may join or part.
        first = max(0, self.line_of(start) - 1)
        last = self.line_of(end) + 1
        begin = int(old_starts[first])
        stop = int(old_starts[last + 1]) if last + 1 < len(old_starts) else len(self.text)
        delta = len(new) - (end - start)
        self.text = self.text[:start] + new + self.text[end:]
        middle = begin + _line_starts(self.text[begin : stop + delta])
        rest = old_starts[last + 1 :] + delta
        if len(rest):
            middle = middle[middle < rest[0]]
        self._starts = np.concatenate((old_starts[:first], middle, rest))
        self._edits.append((start, end, len(new)))

    @property
    def edit_count(self) -> int:
        """Edits so far, to be remembered with a text."""
        return self._forgotten + len(self._edits)

    def edits_since(self, count: int) -> list[Edit] | None:
        """Edits since there were `count`; None if the whole text was replaced since then."""
        return None if count < self._floor else self._edits[count - self._forgotten :]

    def forget_edits(self, count: int) -> None:
        """Lets go of the first `count` edits, which no text needs any more."""
        del self._edits[: max(0, count - self._forgotten)]
        self._forgotten = max(self._forgotten, count)


def before(offset: int, edits: Sequence[Edit]) -> int:
    """The offset that an offset of the edited text had before these edits."""
    for start, end, length in reversed(edits):
        if offset >= start + length:
            offset -= length - (end - start)
        elif offset > start:
            offset = min(offset, end)
    return offset


def after(offset: int, edits: Sequence[Edit]) -> int:
    """The offset that an offset has after these edits."""
    for start, end, length in edits:
        if offset >= end:
            offset += length - (end - start)
        elif offset > start:
            offset = start
    return offset


def _line_starts(text: str) -> np.ndarray:
    if "\r" in text:
        return np.array([0, *(found.end() for found in _LINE_END.finditer(text))], dtype=np.int64)
    if text.isascii():
        ends = np.flatnonzero(np.frombuffer(text.encode("ascii"), dtype=np.uint8) == ord("\n"))
    else:
        encoded = text.encode("utf-32-le", "surrogatepass")
        ends = np.flatnonzero(np.frombuffer(encoded, dtype=np.uint32) == ord("\n"))
    return np.concatenate((np.zeros(1, dtype=np.int64), ends.astype(np.int64) + 1))
