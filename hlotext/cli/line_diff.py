"""Unified diffs of long texts, in time with their lines: `difflib` takes its time with their square where lines repeat."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

WINDOW = 128
"""Lines of each side that are compared at once."""
_AROUND = 3


def unified(old: Sequence[str], new: Sequence[str], name: str) -> Iterator[str]:
    """Yields the lines of a unified diff, as `difflib.unified_diff` does."""
    matcher = _Matcher(old, new)
    is_first = True
    for group in matcher.get_grouped_opcodes(_AROUND):
        if is_first:
            yield f"--- {name}\n"
            yield f"+++ {name}\n"
            is_first = False
        (_, a, _, b, _), (_, _, a_end, _, b_end) = group[0], group[-1]
        yield f"@@ -{_range(a, a_end)} +{_range(b, b_end)} @@\n"
        for what, start, end, new_start, new_end in group:
            if what == "equal":
                yield from (f" {line}" for line in old[start:end])
                continue
            yield from (f"-{line}" for line in old[start:end])
            yield from (f"+{line}" for line in new[new_start:new_end])


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


class _Matcher(difflib.SequenceMatcher[str]):
    """Finds what is equal in windows that move on together."""

    def __init__(self, a: Sequence[str], b: Sequence[str]) -> None:
        super().__init__(autojunk=False)
        self.a, self.b = a, b

    def get_matching_blocks(self) -> list[difflib.Match]:
        a, b = self.a, self.b
        found: list[difflib.Match] = []
        i = j = 0
        while i < len(a) and j < len(b):
            size = 0
            while i + size < len(a) and j + size < len(b) and a[i + size] == b[j + size]:
                size += 1
            if size:
                _append(found, i, j, size)
                i, j = i + size, j + size
                continue
            window = difflib.SequenceMatcher(None, a[i : i + WINDOW], b[j : j + WINDOW], autojunk=False)
            blocks = window.get_matching_blocks()[:-1]
            if not blocks:
                i, j = i + WINDOW, j + WINDOW
                continue
            if i + WINDOW < len(a) or j + WINDOW < len(b):
                blocks = blocks[: (len(blocks) + 1) // 2]  # the others are looked at again with what follows
            for block in blocks:
                _append(found, i + block.a, j + block.b, block.size)
            last = found[-1]
            i, j = last.a + last.size, last.b + last.size
        return [*found, difflib.Match(len(a), len(b), 0)]


def _append(found: list[difflib.Match], a: int, b: int, size: int) -> None:
    """Adds a block, to the one before where it goes on from there."""
    if found and found[-1].a + found[-1].size == a and found[-1].b + found[-1].size == b:
        before = found.pop()
        found.append(difflib.Match(before.a, before.b, before.size + size))
    else:
        found.append(difflib.Match(a, b, size))
