"""The reference reader: Lark over a whole module. Slow, obviously right, and the source of the precise syntax error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import lark

from hlotext.ir.source import Source
from hlotext.syntax import terms
from hlotext.syntax.errors import TermError
from hlotext.syntax.expectation import expected_words
from hlotext.syntax.reporter import Reporter


class ParseFailure(Exception):
    """The grammar rejects a piece of text; `is_at_end` when more text might have helped."""

    def __init__(self, code: str, message: str, start: int, end: int, help: str, is_at_end: bool) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.start = start
        self.end = end
        self.help = help
        self.is_at_end = is_at_end

    def report(self, reporter: Reporter) -> None:
        """Says it."""
        reporter.error(self.code, self.message, self.start, self.end, self.help)


def parse(source: Source, rule: str, start: int = 0, end: int | None = None) -> Any:
    """The record of a piece of the source, read by one rule. Offsets are the source's. Raises ParseFailure."""
    end = len(source.text) if end is None else end
    try:
        return terms.parse_slice(rule, source.text, start, end)
    except TermError as error:
        raise ParseFailure(error.code, error.message, error.position, error.position + 1, error.help, False) from None
    except lark.exceptions.UnexpectedToken as error:
        if error.token.type == "$END":
            words = expected_words(_names(error))
            raise ParseFailure("X101", f"the text ends here, but {words} is expected", end, end, "", True) from None
        at = error.token.start_pos or 0
        message, help = _describe(source.text, at, str(error.token), _names(error))
        raise ParseFailure("X101", message, at, at + len(error.token), help, False) from None
    except lark.exceptions.UnexpectedCharacters as error:
        at = error.pos_in_stream
        message, help = _describe(source.text, at, _word(source.text, at, end), error.allowed or ())
        is_open = source.text.startswith(("/*", '"', "'", "{"), at)
        raise ParseFailure("X101", message, at, at + len(_word(source.text, at, end)), help, is_open) from None


def _names(error: lark.exceptions.UnexpectedToken) -> Iterable[str]:
    return error.accepts or error.expected


def _word(text: str, start: int, end: int) -> str:
    """The word or the single character at an offset."""
    stop = start
    while stop < min(end, start + 80) and (text[stop].isalnum() or text[stop] in "_.-%"):
        stop += 1
    return text[start : max(stop, min(start + 1, end))]


def _describe(text: str, at: int, found: str, expected: Iterable[str]) -> tuple[str, str]:
    """Message and help for a token that cannot stand where it stands."""
    shown = found if found.isprintable() else found.encode("unicode_escape").decode("ascii")
    message = f"expected {expected_words(expected)}, found `{shown[:60]}`"
    return message, _fix(text, at, found)


def _fix(text: str, at: int, found: str) -> str:
    """What to do about the mistakes that people make most."""
    before, after = text[max(0, at - 40) : at], text[at + len(found) : at + len(found) + 4]
    if found == "=" and before.endswith((" ", "\t")):
        return "an attribute's name stands right before its `=`, with no blank between"
    if found.endswith("=") or (after.startswith("=") and not found.startswith("%")):
        return "put blanks around `=` after an instruction's name, or a `%` before the name"
    return ""
