"""One reading of a document: its modules, and the instruction, computation or word at an offset."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from typing import Any

import attrs

import hlotext as hlo
from hlotext.lsp.documents import Document, after, before

_WORD = re.compile(r"[%\w.\-]")
_MOST_WORD = 1_000
"""Characters of a word on each side of the cursor."""
_REFERRING = re.compile(r"(?:[\w\-]=|=\{[^{}=]{0,400})$")
"""Text before a name that an attribute holds: a computation where there is one of that name."""


@attrs.frozen
class Word:
    """A name, opcode or attribute in a text."""

    text: str
    start: int
    end: int


class Reading:
    """The modules of a text, with instructions by offset."""

    def __init__(self, text: str, name: str, edit_count: int, version: int | None) -> None:
        self.version = version
        self.edit_count = edit_count
        self.result = hlo.parse_tolerant(text, name=name)
        self.modules = self.result.modules
        self.facts: Any = None
        """Cost and memory (`hlotext.lsp.facts.Facts`), once they have been computed."""
        found = [(c.bounds, c) for m in self.modules for c in m.computations if c.bounds[0] >= 0]
        found.sort(key=lambda pair: pair[0])
        self.bounds = [bounds for bounds, _ in found]
        self.computations = [computation for _, computation in found]
        self._lines: dict[hlo.Computation, tuple[list[int], list[hlo.Instruction]]] = {}
        self._names: dict[int, dict[str, hlo.Computation]] = {}

    @property
    def text(self) -> str:
        """The text that was read."""
        source = self.result.module.source
        return source.text if source is not None else ""

    def computation_at(self, offset: int) -> hlo.Computation | None:
        """Returns the computation at an offset; None if there is none."""
        place = bisect.bisect_right(self.bounds, (offset, len(self.text) + 1)) - 1
        if place < 0 or offset > self.bounds[place][1]:
            return None
        return self.computations[place]

    def instruction_at(self, offset: int) -> hlo.Instruction | None:
        """Returns the instruction whose line is at an offset; None if there is none."""
        computation = self.computation_at(offset)
        if computation is None:
            return None
        starts, instructions = self._lines_of(computation)
        place = bisect.bisect_right(starts, offset) - 1
        if place < 0 or not instructions[place].bounds[0] <= offset <= instructions[place].bounds[1]:
            return None
        return instructions[place]

    def instructions_between(self, start: int, end: int) -> Iterator[hlo.Instruction]:
        """Yields the instructions whose lines overlap a range of offsets, in text order."""
        place = max(0, bisect.bisect_right(self.bounds, (start, len(self.text) + 1)) - 1)
        while place < len(self.computations) and self.bounds[place][0] <= end:
            starts, instructions = self._lines_of(self.computations[place])
            number = max(0, bisect.bisect_right(starts, start) - 1)
            while number < len(starts) and starts[number] <= end:
                if instructions[number].bounds[1] >= start:
                    yield instructions[number]
                number += 1
            place += 1

    def _lines_of(self, computation: hlo.Computation) -> tuple[list[int], list[hlo.Instruction]]:
        found = self._lines.get(computation)
        if found is None:
            pairs = [(i.bounds[0], number, i) for number, i in enumerate(computation) if i.bounds[0] >= 0]
            pairs.sort(key=lambda pair: pair[:2])
            found = [start for start, _, _ in pairs], [i for _, _, i in pairs]
            self._lines[computation] = found
        return found

    def computation_named(self, name: str, module: hlo.Module) -> hlo.Computation | None:
        """Returns the computation of a module with a name; None if there is none."""
        names = self._names.get(id(module))
        if names is None:
            names = self._names[id(module)] = {c.name: c for c in module.computations}
        return names.get(name)

    def named(self, name: str) -> hlo.Instruction | None:
        """Returns the instruction with a name in the first module that has one; None if there is none."""
        for module in self.modules:
            if isinstance(found := module.find(name), hlo.Instruction):
                return found
        return None


@attrs.frozen
class Target:
    """The construct under the cursor."""

    node: hlo.Instruction | hlo.Computation | None
    """The instruction or computation that is named; for other words the instruction of the line."""
    word: Word
    is_name: bool
    """True if the word is the node's name."""


class View:
    """A document with its last reading. Translates offsets between the current text and the text that was read."""

    def __init__(self, document: Document, reading: Reading) -> None:
        self.document = document
        self.reading = reading
        self._edits = document.edits_since(reading.edit_count)

    def before(self, offset: int) -> int:
        """Returns the offset in the text that was read of an offset in the current text."""
        return before(offset, self._edits) if self._edits else offset

    def after(self, offset: int) -> int:
        """Returns the offset in the current text of an offset in the text that was read."""
        return min(after(offset, self._edits), len(self.document.text)) if self._edits else offset

    @property
    def is_lost(self) -> bool:
        """True if the whole text was replaced since the reading, so that offsets cannot be translated."""
        return self._edits is None

    def target(self, position: Any) -> Target | None:
        """Returns node and word at a position of the document; None if there is no word, or no instruction."""
        if self.is_lost:
            return None
        offset = self.document.offset(position)
        word = word_at(self.document.text, offset)
        if word is None:
            return None
        place = self.before(offset)
        line = self.reading.instruction_at(place)
        home = self.reading.computation_at(place)
        module = home.module if home is not None else None
        if home is None or module is None:
            return None
        name = word.text.removeprefix("%")
        text = self.document.text
        following = text[word.end : word.end + 1]
        preceding = text[max(0, word.start - 500) : word.start]
        is_opcode = following == "(" and not word.text.startswith("%") and line is not None
        if not is_opcode and following != "=":
            computation = self.reading.computation_named(name, module)
            if computation is not None and (line is None or _REFERRING.search(preceding)):
                return Target(computation, word, True)
            if name in home:
                return Target(home[name], word, True)
            if computation is not None:
                return Target(computation, word, True)
        return Target(line, word, False) if line is not None else None

    def name_range(self, node: hlo.Instruction | hlo.Computation) -> Any:
        """Returns the range of a node's name in its definition, in the current text."""
        start, end = node.bounds
        place = find_name(self.reading.text, node.name, start, end)
        found = (start, start) if place is None else place
        return self.document.range(self.after(found[0]), self.after(found[1]))

    def range(self, node: hlo.Instruction | hlo.Computation) -> Any:
        """Returns the range of a node's whole text, in the current text."""
        start, end = node.bounds
        return self.document.range(self.after(start), self.after(end))


def word_at(text: str, offset: int) -> Word | None:
    """Returns the word around an offset, or the one that ends there; None if there is none."""
    start = end = offset
    while start > 0 and offset - start < _MOST_WORD and _WORD.match(text[start - 1]):
        start -= 1
    while end < len(text) and end - offset < _MOST_WORD and _WORD.match(text[end]):
        end += 1
    return Word(text[start:end], start, end) if end > start else None


def find_name(text: str, name: str, start: int, end: int) -> tuple[int, int] | None:
    """Returns the first occurrence of a name as a whole word between two offsets, without percent sign; None if there
    is none.
    """
    place = start
    while (place := text.find(name, place, end)) >= 0:
        stop = place + len(name)
        if not (place and re.match(r"[\w.\-]", text[place - 1])) and not re.match(
            r"[\w.\-]", text[stop : stop + 1]
        ):
            return place, stop
        place = stop
    return None
