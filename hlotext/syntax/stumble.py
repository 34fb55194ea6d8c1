"""A place in a text that the grammar cannot read, as the messages about it see it."""

from __future__ import annotations

import re

import attrs

_WORD = re.compile(r"[%\-]?[A-Za-z0-9_.][A-Za-z0-9_.\-]*|->|<=|\.\.\.", re.ASCII)


@attrs.frozen
class Stumble:
    """A place that the grammar cannot read."""

    text: str
    start: int
    """Offset of the first thing that cannot stand there."""
    limit: int
    """Where the piece of text ends that was read."""
    expected: frozenset[str]
    """Terminals that could."""
    within: str = ""
    """The attribute in whose value it is; empty outside."""

    @property
    def word(self) -> str:
        """The word or the single character there."""
        match = _WORD.match(self.text, self.start, self.limit)
        return match[0] if match is not None else self.text[self.start : self.start + 1]

    @property
    def after(self) -> int:
        """The offset behind the word."""
        return self.start + len(self.word)

    @property
    def behind(self) -> int:
        """The offset behind the last character before the word that is no blank."""
        end = self.start
        while end and self.text[end - 1] in " \t\r\n":
            end -= 1
        return end

    @property
    def previous(self) -> str:
        """The last character before the word that is no blank; empty at the beginning."""
        return self.text[self.behind - 1 : self.behind] if self.behind else ""

    @property
    def line_start(self) -> int:
        """Where the line begins; for a line that is long before the word, an offset near it."""
        nearest = max(0, self.start - 200)
        return max(nearest, *(self.text.rfind(end, nearest, self.start) + 1 for end in "\r\n"))

    def follows(self, pattern: str) -> bool:
        """Whether something stands right behind the word."""
        return re.compile(pattern).match(self.text, self.after, self.limit) is not None

    def precedes(self, pattern: str) -> bool:
        """Whether something stands right before the word, on the same line."""
        return re.search(rf"(?:{pattern})\Z", self.text[self.line_start : self.start]) is not None
