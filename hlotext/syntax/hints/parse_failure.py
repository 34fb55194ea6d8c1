"""A place in a text that the grammar cannot read, as the messages about it see it, and the bracket that is not closed."""

from __future__ import annotations

import re

import attrs

from hlotext.syntax.language.boundaries import begins_line

_WORD = re.compile(r"[%\-]?[A-Za-z0-9_.][A-Za-z0-9_.\-]*|->|<=|\.\.\.", re.ASCII)
_LINE_END = re.compile(r"[\r\n]")
_FAR = 5_000
"""Characters of a line in which the end of a bracket is looked for."""
CLOSERS = {"(": ")", "{": "}", "[": "]"}


@attrs.frozen
class ParseFailure:
    """A position where parsing failed."""

    text: str
    start: int
    """Offset of the first thing that cannot stand there."""
    limit: int
    """Where the piece of text ends that was read."""
    expected: frozenset[str]
    """Terminals that could."""
    within: str = ""
    """The attribute in whose value it is; empty outside."""
    opened: int | None = None
    """Offset of the innermost bracket that is open there; None outside of brackets."""

    word: str = attrs.field(init=False)
    """The word or the single character there."""

    @word.default
    def _(self) -> str:
        return word_at(self.text, self.start, self.limit)

    @property
    def after(self) -> int:
        """Offset after the word."""
        return self.start + len(self.word)

    @property
    def behind(self) -> int:
        """Offset after the last non-blank character before the word."""
        end = self.start
        while end and self.text[end - 1] in " \t\r\n":
            end -= 1
        return end

    @property
    def previous(self) -> str:
        """The last non-blank character before the word; empty if there is none."""
        return self.text[self.behind - 1 : self.behind] if self.behind else ""

    @property
    def line_start(self) -> int:
        """Offset at which the line begins; in a long line, an offset near the word."""
        nearest = max(0, self.start - 200)
        return max(nearest, *(self.text.rfind(end, nearest, self.start) + 1 for end in "\r\n"))

    @property
    def is_line_end(self) -> bool:
        """True if what was read ends with its line, so that the word is on a later one."""
        return _LINE_END.search(self.text, self.behind, self.start) is not None

    @property
    def closer(self) -> str:
        """The bracket that closes the innermost open one; empty outside of brackets."""
        return CLOSERS.get(self.text[self.opened], "") if self.opened is not None else ""

    @property
    def is_unclosed(self) -> bool:
        """True if the innermost open bracket is not closed on the line of the word."""
        if self.opened is None:
            return False
        end = _LINE_END.search(self.text, self.start, min(self.limit, self.start + _FAR))
        return (
            self.is_line_end
            or unclosed(self.text, self.opened, end.start() if end else self.start + _FAR) is not None
        )

    def follows(self, pattern: str) -> bool:
        """True if a pattern matches directly after the word."""
        return re.compile(pattern).match(self.text, self.after, self.limit) is not None

    @property
    def before(self) -> str:
        """Text before the word on the same line, without trailing blanks; only the end of it in a long line."""
        return self.text[self.line_start : self.start].rstrip(" \t")

    def precedes(self, pattern: str) -> bool:
        """True if a pattern matches directly before the word, on the same line."""
        return re.search(rf"(?:{pattern})\Z", self.text[self.line_start : self.start]) is not None


def word_at(text: str, start: int, limit: int) -> str:
    """Returns the word or single character at an offset."""
    match = _WORD.match(text, start, limit)
    return match[0] if match is not None else text[start : start + 1]


# An unclosed string or comment ends with the text, so that its end is not searched for from each character.
_BRACKET = re.compile(
    r"""\"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+(?:"|\\?\Z)|'[^'\\]*+(?:\\[\s\S][^'\\]*+)*+(?:'|\\?\Z)"""
    r"""|/\*[\s\S]*?(?:\*/|\Z)|//[^\r\n]*+|[(){}\[\]]"""
)
_CLOSING = {close: opening for opening, close in CLOSERS.items()}


def unclosed(text: str, start: int, end: int) -> int | None:
    """Returns the offset of the bracket that is most likely unclosed; None if all are closed.

    A brace on a line of its own closes a bracket at the end of a line. If instead it closes one in the middle of a
    line, that bracket is taken to be unclosed.
    """
    stack: list[int] = []
    for match in _BRACKET.finditer(text, start, end):
        bracket = match[0]
        if bracket in "({[":
            stack.append(match.start())
        elif bracket in _CLOSING and stack:
            opening = stack.pop()
            is_alone = begins_line(text, match.start())
            is_last = text[opening + 1 : opening + 2] in ("\r", "\n")
            if text[opening] != _CLOSING[bracket] or (is_alone and not is_last):
                return opening
    return stack[-1] if stack else None


@attrs.frozen
class Mistake:
    """A description of a mistake. Offsets refer to the source; help may be empty."""

    message: str
    start: int
    end: int
    help: str = ""
    code: str = "X101"
    opened: int | None = None
    """Offset of a bracket that is not closed."""
