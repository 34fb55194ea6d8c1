"""The text of a step as computations and lines, cut but not read: enough to see what differs from the text before.

Most steps of a compilation change little. Computations whose text is the same in both texts are told by comparing the texts
themselves; only the lines of the others are looked at.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

import hlotext as hlo
from hlotext.syntax.language import patterns


class Line:
    """One operation, as its line says it."""

    __slots__ = ("computation", "head", "is_root", "name", "operands", "tail")

    def __init__(
        self, name: str, head: str, operands: tuple[str, ...], tail: str, computation: str, is_root: bool
    ) -> None:
        self.name = name
        self.head = head
        """Shape and opcode."""
        self.operands = operands
        """The names of the operands; of a parameter its number, of a constant its value."""
        self.tail = tail
        """The attributes, without metadata."""
        self.computation = computation
        self.is_root = is_root

    @property
    def opcode(self) -> str:
        """The opcode, as it is written."""
        return self.head.rpartition(" ")[2]

    @property
    def shape(self) -> str:
        """The shape, as it is written."""
        return self.head.rpartition(" ")[0]


@functools.cache
def _op_line() -> re.Pattern[str]:
    return patterns.op_line("\n  ", "%", bounded=True)


@functools.cache
def _metadata() -> re.Pattern[str]:
    return re.compile(rf", metadata={patterns.braces()}")


_NAME = re.compile(r"%([A-Za-z_][\w.\-]*)", re.ASCII)
_HEADER = re.compile(r"(?:\A|\n)(?:ENTRY )?%?([A-Za-z_][\w.\-]*) [^\n]*\{(?=\n|\Z)", re.ASCII)


_END = "\n}"
"""Where a computation ends."""


def computations(text: str) -> list[str]:
    """The texts of the computations, each with what stands before its header."""
    return text.split(_END)


def differing(old: str, new: str) -> tuple[str, str]:
    """Two texts without the computations that both begin and both end with.

    Halves are compared, which copies memory and reads none of it: a pass that changes one computation of many costs no more
    than that.
    """
    shorter = min(len(old), len(new))
    begin = _common(shorter, lambda low, high: old[low:high] == new[low:high])
    start = old.rfind(_END, 0, begin) + len(_END)
    start = start if start >= len(_END) else 0
    old_size, new_size = len(old), len(new)
    end = _common(
        shorter - begin,
        lambda low, high: old[old_size - high : old_size - low] == new[new_size - high : new_size - low],
    )
    stop = old.find(_END, old_size - end)
    stop = stop if stop >= 0 else old_size
    return old[start:stop], new[start : stop + new_size - old_size]


def _common(most: int, is_equal: Callable[[int, int], bool]) -> int:
    """How far two texts are equal, at most so far."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if is_equal(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def name_of(computation: str) -> str | None:
    """The name of a computation, by its text; None for what is none."""
    match = _HEADER.search(computation)
    return None if match is None else match[1]


def lines_of(computation: str) -> Iterator[Line]:
    """The lines of a computation. Lines of another form than XLA's dumps have are left out."""
    name = name_of(computation) or ""
    for match in _op_line().finditer(computation):
        root, own, head, operands, inner, tail = match.groups()
        if operands is not None:
            names = tuple(_NAME.findall(f"%{operands}"))
        elif "%" in inner:
            names = tuple(_NAME.findall(inner))
        else:
            names = (inner,)
        if "metadata=" in tail:
            tail = _metadata().sub("", tail)
        yield Line(own, head, names, tail, name, root is not None)


def has_usual_form(text: str) -> bool:
    """Whether a text is written as XLA writes dumps: names with `%`, each operation on a line of its own."""
    return "\n  %" in text or "\n  ROOT %" in text


def usual_form(text: str) -> str:
    """A text of any form in that form: itself, or what XLA would print of the module in it. Raises HloSyntaxError."""
    return text if has_usual_form(text) else hlo.parse(text, only=True).to_text()
