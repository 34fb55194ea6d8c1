"""A text that stays in its file: what is asked for is read, a few blocks are kept."""

from __future__ import annotations

import array
import bisect
import functools
import os
import weakref
from collections.abc import Callable
from typing import Any, SupportsIndex, overload

import attrs

from hlotext.ir.nodes.source import Source
from hlotext.syntax.source.inputs import InputError

BLOCK = 1 << 18
"""Characters of a block."""
_KEPT = 32
"""Blocks that are kept."""


class FileText:
    """The text of an ASCII file that stays on disk, with the string methods that a module's source needs.

    Regular expressions need a slice of it. Reading raises InputError if the file was changed since it was opened; a
    deleted or replaced file remains readable.
    """

    def __init__(self, path: str) -> None:
        file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, file)
        self._file = file
        self._state = _State(file, path)
        self._length = self._state.length
        # The block reader must not hold this object, which would live until the collector comes by.
        self._block: Callable[[int], str] = functools.lru_cache(_KEPT)(
            functools.partial(_read_block, file, self._state)
        )

    def read(self, start: int, end: int) -> bytes:
        """Returns the bytes between two offsets, bypassing the cache."""
        return _read(self._file, self._state, start, end)

    def __len__(self) -> int:
        return self._length

    def __str__(self) -> str:
        return self[:]

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> str: ...
    @overload
    def __getitem__(self, place: slice, /) -> str: ...
    def __getitem__(self, place: SupportsIndex | slice, /) -> str:
        if not isinstance(place, slice):
            index = place.__index__()
            index += self._length if index < 0 else 0
            if not 0 <= index < self._length:
                raise IndexError("index out of the text")
            return self._block(index // BLOCK)[index % BLOCK]
        start, end, step = place.indices(self._length)
        if step != 1:
            raise ValueError("a file's text has no slices with steps")
        if end - start > BLOCK:
            return self.read(start, end).decode("ascii", "surrogateescape")
        if end <= start:
            return ""
        first, last = start // BLOCK, (end - 1) // BLOCK
        text = self._block(first)
        if first != last:
            text += self._block(last)
        return text[start - first * BLOCK : end - first * BLOCK]

    def __contains__(self, word: str) -> bool:
        return self.find(word) >= 0

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, str | FileText) and str(self) == str(other))

    def __hash__(self) -> int:
        return hash(str(self))

    def __getattr__(self, name: str) -> Any:
        """Whatever else a string can do, done with all of the text."""
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(str(self), name)

    def find(self, word: str, start: int = 0, end: int | None = None) -> int:
        """Like `str.find`."""
        start, end, _ = slice(start, end).indices(self._length)
        size = 1 << 10
        while end - start >= len(word):
            stop = min(end, start + size)
            found = self[start:stop].find(word)
            if found >= 0:
                return start + found
            if stop == end:
                break
            start, size = stop - len(word) + 1, BLOCK
        return -1

    def rfind(self, word: str, start: int = 0, end: int | None = None) -> int:
        """Like `str.rfind`."""
        start, end, _ = slice(start, end).indices(self._length)
        size = 1 << 10  # most often the beginning of the same line is looked for
        while end - start >= len(word):
            first = max(start, end - size)
            found = self[first:end].rfind(word)
            if found >= 0:
                return first + found
            if first == start:
                break
            end, size = first + len(word) - 1, BLOCK
        return -1

    def startswith(self, word: str | tuple[str, ...], start: int = 0) -> bool:
        """Like `str.startswith`."""
        longest = max(map(len, (word,) if isinstance(word, str) else word), default=0)
        return self[start : start + longest].startswith(word)


class _State:
    """State of a file, to detect changes since it was opened.

    Who writes may set the time of the last write back, but not that of the last change of any kind. Changes of owner,
    permissions and names are such ones too, and leave the text as it is.
    """

    def __init__(self, file: int, path: str) -> None:
        found = os.fstat(file)
        self.length = found.st_size
        self._path = path
        self._written = found.st_mtime_ns
        self._changed = found.st_ctime_ns
        self._outside = _outside(found)

    def check(self, file: int) -> None:
        """Raises InputError if the file was changed."""
        found = os.fstat(file)
        if (found.st_size, found.st_mtime_ns) == (self.length, self._written):
            if found.st_ctime_ns == self._changed:
                return
            if _outside(found) != self._outside or self._is_elsewhere(found):
                self._changed, self._outside = found.st_ctime_ns, _outside(found)
                return
        raise InputError(f"{self._path} changed while a module read from it was in use")

    def _is_elsewhere(self, found: os.stat_result) -> bool:
        """True if the file was renamed."""
        try:
            named = os.stat(self._path)
        except OSError:
            return True
        return (named.st_dev, named.st_ino) != (found.st_dev, found.st_ino)

    def ended(self) -> InputError:
        return InputError(f"{self._path} ended too early")


def _outside(found: os.stat_result) -> tuple[int, ...]:
    return found.st_mode, found.st_uid, found.st_gid, found.st_nlink


def _read(file: int, state: _State, start: int, end: int) -> bytes:
    state.check(file)
    pieces = []
    while start < end and (piece := os.pread(file, min(end - start, 1 << 30), start)):
        pieces.append(piece)
        start += len(piece)
    if start < end:
        raise state.ended()
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _read_block(file: int, state: _State, number: int) -> str:
    start = number * BLOCK
    return _read(file, state, start, min(start + BLOCK, state.length)).decode("ascii", "surrogateescape")


@attrs.frozen(eq=False, slots=False)
class FileSource(Source):
    """A source whose text stays in its file. Its line ends are LF."""

    _lines: array.array[int] = attrs.field(factory=lambda: array.array("q", [0]), repr=False)
    """The line ends before each block, as far as somebody asked for a line."""

    def _read_lines(self, is_enough: Callable[[], bool]) -> None:
        """Counts the line ends of further blocks until that is enough, or the text ends."""
        lines, length = self._lines, len(self.text)
        while (start := (len(lines) - 1) * BLOCK) < length and not is_enough():
            count = self.text[start : start + BLOCK].count("\n")
            # Two threads may have counted the same block.
            if start == (len(lines) - 1) * BLOCK:
                lines.append(lines[-1] + count)

    def position(self, offset: int) -> tuple[int, int]:
        offset = max(0, min(offset, len(self.text)))
        block = offset // BLOCK
        self._read_lines(lambda: len(self._lines) > block)
        before = self.text[block * BLOCK : offset].count("\n")
        return self._lines[block] + before + 1, offset - self.text.rfind("\n", 0, offset)

    def bounds(self, number: int) -> tuple[int, int]:
        lines, text = self._lines, self.text
        self._read_lines(lambda: lines[-1] >= number - 1)
        if not 0 < number <= lines[-1] + 1:
            return len(text), len(text)
        if number == 1:
            start = 0
        else:
            # The line begins behind line end `number - 1`, which is in the last block that has fewer before it.
            block = bisect.bisect_left(lines, number - 1) - 1
            piece, start = text[block * BLOCK : (block + 1) * BLOCK], 0
            for _ in range(number - 1 - lines[block]):
                start = piece.find("\n", start) + 1
            start += block * BLOCK
        end = text.find("\n", start)
        return start, len(text) if end < 0 else end
