"""The bracket that is not closed, in a text that ends too early."""

from __future__ import annotations

import re

from hlotext.syntax.boundaries import begins_line

# What is not closed ends with the text, so that it is not looked for again from each of its characters.
_BRACKET = re.compile(
    r"""\"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+(?:"|\\?\Z)|'[^'\\]*+(?:\\[\s\S][^'\\]*+)*+(?:'|\\?\Z)"""
    r"""|/\*[\s\S]*?(?:\*/|\Z)|//[^\r\n]*+|[(){}\[\]]"""
)
_CLOSING = {")": "(", "}": "{", "]": "["}


def unclosed(text: str, start: int, end: int) -> int | None:
    """The bracket that is most likely the one that was not closed; None when all are.

    A brace on a line of its own closes what another line's last character opened. Where it closes something in the middle of
    a line instead, that is the culprit.
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
