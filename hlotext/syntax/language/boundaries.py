"""Where a module ends in a text that goes on: at the next module, or at text of none, such as a log's lines."""

from __future__ import annotations

import re

from hlotext.ir.caches import lazy_regex
from hlotext.syntax.language.patterns import IDENTIFIER, WORD_END

_COMPUTATION = lazy_regex(
    rf"ENTRY{WORD_END}|[%{{}},]|{IDENTIFIER}[ \t]*(?:\{{|\((?:\s*\)|\s*%?[\w.\-]+\s*:)|\Z)", re.ASCII
)
"""Beginning of a computation, even of a broken or truncated one."""
_OP_LINE = lazy_regex(
    rf"^[ \t]*(?:ROOT[ \t]+)?%?{IDENTIFIER}[ \t]*=[ \t]*(?:\(|[a-z][a-z0-9\-]*[\[(])",
    re.ASCII | re.MULTILINE,
)

_RARE = 1000
"""Maximum number of capital letters that are examined one by one."""
_BLANKS = (" ", "\t", "\r", "\n")


def is_module(text: str, start: int) -> bool:
    """True if a module begins at an offset, which only the beginning of a line can."""
    return text.startswith("HloModule", start) and (not start or text[start - 1] in "\r\n")


def next_module(text: str, start: int) -> int:
    """Returns the offset of the next module's header line; the end of the text if there is none."""
    # Most texts hold one module and few capital letters: one character is found in a tenth of the time that a word takes,
    # and an expression takes ten times as long as that.
    found = start
    for _ in range(_RARE):
        found = text.find("H", found + 1)
        if found < 0:
            return len(text)
        if _begins_module(text, found):
            return found
    while found >= 0:
        found = text.find("HloModule", found + 1)
        if _begins_module(text, found):
            return found
    return len(text)


def _begins_module(text: str, at: int) -> bool:
    """True if the header of a module begins at an offset; -1 is no offset."""
    return text.startswith("HloModule", at) and text[at - 1] in "\r\n" and text[at + 9 : at + 10] in _BLANKS


def is_behind(text: str, start: int, end: int) -> bool:
    """True if the text between the computations and the next module belongs to no module.

    False, which makes it an error, if it begins like a computation or has anything like an op line.
    """
    return (
        not begins_computation(text, start, end)
        and _OP_LINE().search(text, _before_blanks(text, start), end) is None
    )


def begins_computation(text: str, start: int, end: int) -> bool:
    """True if the text at an offset begins like a computation, even an invalid one."""
    return _COMPUTATION().match(text, start, end) is not None


def begins_line(text: str, position: int) -> bool:
    """True if only blanks precede an offset on its line."""
    position = _before_blanks(text, position)
    return not position or text[position - 1] in "\r\n"


def _before_blanks(text: str, position: int) -> int:
    while position and text[position - 1] in " \t":
        position -= 1
    return position
