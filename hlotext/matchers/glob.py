"""Shell patterns of `*` and `?` alone, matched without going back."""

from __future__ import annotations


def is_like(text: str, pattern: str) -> bool:
    """Returns True if text matches a glob: `*` is any text, `?` one character, and all others, also brackets,
    themselves.

    The first place where the part between two stars fits is as good as any later one, so nothing is tried twice: the time
    grows with the text times the longest part.

    >>> is_like("f32[4]{0}", "f32[*]{?}"), is_like("f32[4]", "f32[4]{*}")
    (True, False)
    """
    first, *others = pattern.split("*")
    if not others:
        return len(text) == len(pattern) and _fits(text, 0, pattern)
    *middle, last = others
    end = len(text) - len(last)
    position = len(first)
    if end < position or not _fits(text, 0, first) or not _fits(text, end, last):
        return False
    for part in middle:
        found = _find(text, part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True


def _fits(text: str, start: int, part: str) -> bool:
    """True if a part without stars matches at that offset; the text is long enough."""
    if "?" not in part:
        return text.startswith(part, start)
    return all(
        wanted in ("?", given) for given, wanted in zip(text[start : start + len(part)], part, strict=True)
    )


def _find(text: str, part: str, start: int, end: int) -> int:
    """Where a part first stands between two places; -1 where it does not."""
    if "?" not in part:
        return text.find(part, start, end)
    return next((i for i in range(start, end - len(part) + 1) if _fits(text, i, part)), -1)
