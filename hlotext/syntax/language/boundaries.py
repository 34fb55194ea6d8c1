"""Where a module ends in a text that goes on: at the next module, or at text of none, such as a log's lines."""

from __future__ import annotations

import re

from hlotext.ir.memo import late
from hlotext.syntax.language.patterns import IDENTIFIER, WORD_END

_COMPUTATION = late(
    rf"ENTRY{WORD_END}|[%{{}},]|{IDENTIFIER}[ \t]*(?:\{{|\((?:\s*\)|\s*%?[\w.\-]+\s*:)|\Z)", re.ASCII
)
"""How a computation begins, be it the beginning of a broken or truncated one."""
_OP_LINE = late(
    rf"^[ \t]*(?:ROOT[ \t]+)?%?{IDENTIFIER}[ \t]*=[ \t]*(?:\(|[a-z][a-z0-9\-]*[\[(])",
    re.ASCII | re.MULTILINE,
)


def is_module(text: str, start: int) -> bool:
    """Whether a further module begins here; in the text of a recovery table the word is not the first on its line."""
    return text.startswith("HloModule", start) and (not start or text[start - 1] in "\r\n")


def next_module(text: str, start: int) -> int:
    """Where the line of the next module's header begins; the end of the text when there is none."""
    # An expression would take ten times as long, and most texts hold one module.
    found = text.find("HloModule", start + 1)
    while found >= 0:
        if text[found - 1] in "\r\n" and text[found + 9 : found + 10] in (" ", "\t", "\r", "\n"):
            return found
        found = text.find("HloModule", found + 9)
    return len(text)


def is_behind(text: str, start: int, end: int) -> bool:
    """Whether what stands between computations and the next module belongs to no module.

    It does when it begins like a computation, or holds anything like an op line: that is an error then.
    """
    return (
        not begins_computation(text, start, end)
        and _OP_LINE().search(text, _before_blanks(text, start), end) is None
    )


def begins_computation(text: str, start: int, end: int) -> bool:
    """Whether what stands at an offset begins like a computation, be it a broken one."""
    return _COMPUTATION().match(text, start, end) is not None


def begins_line(text: str, position: int) -> bool:
    """Whether only blanks stand before an offset on its line."""
    position = _before_blanks(text, position)
    return not position or text[position - 1] in "\r\n"


def _before_blanks(text: str, position: int) -> int:
    while position and text[position - 1] in " \t":
        position -= 1
    return position
