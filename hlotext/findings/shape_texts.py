"""Texts of shapes that are too long for where they go: without comments, without layouts, the first elements of a tuple."""

from __future__ import annotations

import re
from collections.abc import Iterator

DOTS = "…"
_LAYOUT = re.compile(r"\{[^{}]*?(S\(\d+\))?\}")
_COMMENT = re.compile(r"/\*.*?\*/ ?")


def uncommented(text: str) -> str:
    """Returns a shape's text without comments that number elements."""
    return _COMMENT.sub("", text)


def with_space(text: str) -> str:
    """Returns a shape's text without layouts, keeping memory spaces."""
    return _LAYOUT.sub(lambda match: f"{{{DOTS}{match[1]}}}" if match[1] else "", uncommented(text))


def bare_shape(text: str) -> str:
    """Returns a shape's text without layouts."""
    return _LAYOUT.sub("", uncommented(text))


def shape_forms(text: str, width: int) -> Iterator[str]:
    """Yields forms of a shape by decreasing detail: without comments, without layouts, with the first tuple elements
    only.
    """
    yield uncommented(text)
    yield with_space(text)
    bare = bare_shape(text)
    yield bare
    if bare.startswith("("):
        elements = _elements(bare)
        for count in range(min(len(elements) - 1, width // 3), 0, -1):  # each takes three columns at least
            yield f"({', '.join(elements[:count])}, {DOTS} {len(elements) - count} more)"
        yield f"({len(elements)} element{'s' if len(elements) != 1 else ''})"
        return
    yield f"{bare[: max(width - 1, 1)]}{DOTS}"


def _elements(text: str) -> list[str]:
    """The elements of a tuple's shape as text, nested ones whole."""
    found, depth, start = [], 0, 1
    for place, character in enumerate(text):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        if (character == "," and depth == 1) or (character == ")" and depth == 0):
            found.append(text[start:place].strip())
            start = place + 1
    return found


def short_shape(text: str, width: int) -> str:
    """Returns the first form of a shape with at most `width` characters; the last one if none fits."""
    form = text
    for form in [text] if len(text) <= width else shape_forms(text, width):
        if len(form) <= width:
            break
    return form
