"""The text that a module was read from, and places in it."""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

import attrs

from hlotext.ir.tables.opcodes import SPELLINGS
from hlotext.ir.values.value import Value

if TYPE_CHECKING:
    import array

    from hlotext.ir.nodes.computation import Computation


_STRIDE = 1 << 14
"""Characters between the places to which line ends are counted for good."""


@attrs.frozen(repr=False)
class Span(Value):
    """A range of the source text. Lines and columns start at 1; columns count characters."""

    start: int
    """Offset of the first character."""
    end: int
    """Offset after the last character."""
    line: int
    column: int
    end_line: int
    end_column: int
    """Column after the last character."""

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@attrs.frozen(eq=False, slots=False)
class Source:
    """Immutable source text with a name. Line endings may be LF, CRLF or CR."""

    lets_go: ClassVar[bool] = False
    """True if instructions may be unloaded and parsed again later as new objects (`Module.walk`)."""
    text: str = attrs.field(repr=False)
    name: str = "<text>"
    """File name for messages."""

    @functools.cached_property
    def spellings(self) -> dict[str, str]:
        """Attributes spelled as in another XLA release: maps the current name to the name in the text."""
        return {name: spelling for spelling, name in SPELLINGS.items() if f"{spelling}=" in self.text}

    @functools.cached_property
    def _line_starts(self) -> array.array[int]:
        import array  # only errors and places ask for lines

        if "\r" not in self.text:
            # Four times as quick as looking for each line end with an expression.
            lengths = map(len, self.text.split("\n"))
            starts = array.array("q", itertools.accumulate(map((1).__add__, lengths), initial=0))
            starts.pop()
            return starts
        starts = array.array("q", [0])
        starts.extend(match.end() for match in re.finditer(r"\r\n?|\n", self.text))
        return starts

    @functools.cached_property
    def _lines_counted(self) -> list[int] | None:
        """Line ends before each multiple of `_STRIDE`, as far as they were asked for; None if some are CR."""
        return None if "\r" in self.text else [0]

    @functools.cached_property
    def _lines_behind(self) -> dict[int, array.array[int]]:
        return {}

    def line_behind(self, offset: int, number: int) -> tuple[int, int]:
        """Returns the start and end offsets of the line that is `number` lines after `offset`.

        Leading spaces and the line ending are excluded. For `number` 0 this is the rest of the line, from `offset` on.
        Lines are separated by LF; their starts are cached.

        Raises:
            IndexError: The text has fewer lines.
        """
        text = self.text
        starts = self._lines_behind.get(offset)
        if starts is None:
            import array

            starts = self._lines_behind[offset] = array.array("q", [max(offset, 0)])
        find, last = text.find, starts[-1]
        for _ in range(number + 2 - len(starts)):
            last = find("\n", last) + 1 or len(text) + 1
            starts.append(last)
        start, end = starts[number], starts[number + 1] - 1
        while text[start] == " ":
            start += 1
        other = text.find("\r", start, end)
        return start, end if other < 0 else other

    def forget_lines(self, offset: int) -> None:
        """Drops the line starts that `line_behind` cached for an offset."""
        self._lines_behind.pop(offset, None)

    def position(self, offset: int) -> tuple[int, int]:
        """Returns the line and column (from 1) of an offset."""
        text, counted = self.text, self._lines_counted
        if counted is None:
            line = bisect.bisect_right(self._line_starts, offset)
            return line, offset - self._line_starts[line - 1] + 1
        # Noting all line ends takes ten times as long as counting them.
        block = max(0, min(offset, len(text))) // _STRIDE
        for number in range(len(counted) - 1, block):
            more = text.count("\n", number * _STRIDE, (number + 1) * _STRIDE)
            if len(counted) == number + 1:  # no other thread has counted it meanwhile
                counted.append(counted[number] + more)
        line = counted[block] + text.count("\n", block * _STRIDE, offset) + 1
        return line, offset - text.rfind("\n", 0, offset)

    def line_numbers(self, offsets: Iterable[int]) -> list[int]:
        """Returns the line numbers (from 1) of many offsets."""
        starts, find = self._line_starts, bisect.bisect_right
        return [find(starts, offset) for offset in offsets]

    def span(self, start: int, end: int) -> Span:
        """Returns the span between two offsets."""
        return Span(start, end, *self.position(start), *self.position(end))

    def line(self, number: int) -> str:
        """Returns the text of a line (from 1), without its line ending; empty if there is no such line."""
        start, end = self.bounds(number)
        return self.text[start:end]

    def bounds(self, number: int) -> tuple[int, int]:
        """Returns the start and end offsets of a line (from 1), without its line ending.

        Both are the length of the text if there is no such line.
        """
        starts = self._line_starts
        if not 0 < number <= len(starts):
            return len(self.text), len(self.text)
        start, end = starts[number - 1], starts[number] if number < len(starts) else len(self.text)
        while end > start and self.text[end - 1] in "\r\n":
            end -= 1
        return start, end

    def bounds_at(self, offset: int) -> tuple[int, int]:
        """Returns the start and end offsets of the line that contains an offset, without its line ending."""
        text = self.text
        offset -= text[max(0, offset - 1) : offset + 1] == "\r\n"
        start = text.rfind("\n", 0, offset) + 1
        start = max(start, text.rfind("\r", start, offset) + 1)
        end = text.find("\n", offset)
        end = len(text) if end < 0 else end
        other = text.find("\r", offset, end)
        return start, end if other < 0 else other

    def line_at(self, offset: int) -> str:
        """Returns the text of the line that contains an offset, without its line ending."""
        start, end = self.bounds_at(offset)
        return self.text[start:end]

    def read_all(self, computations: Iterable[Computation]) -> None:
        """Parses the remaining computations; does nothing for this source, which is already parsed."""

    def walk(self, computations: Iterable[Computation], only_callers: bool) -> Iterator[Computation]:
        """Yields computations as `Module.walk` does, without parsing, since this source is already parsed."""
        return iter(tuple(computations))

    def defining(self, computations: Iterable[Computation], name: str) -> Iterator[Computation]:
        """Yields the computations that may contain an instruction with this name; all, if they are parsed already."""
        return iter(tuple(computations))
