"""The short form in which XLA names values: `<12 fusion.3{0} (phi) @1>` (`HloValue::ToShortString`)."""

from __future__ import annotations

import re

import attrs

from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.values import Value

SHORT = (
    r"<(?P<id>\d{1,18}) (?P<name>\S+?)(?P<index>\{[\d,]*\})?(?P<phi> \(phi\))?(?: @(?P<space>-?\d{1,18}))?>"
)


@attrs.frozen
class Short:
    """The name of a value in XLA's files, in parts."""

    number: int
    name: str
    index: ShapeIndex
    is_phi: bool
    memory_space: int

    @property
    def key(self) -> tuple[str, ShapeIndex]:
        return self.name, self.index


def short_of(match: re.Match[str]) -> Short:
    """Converts a match of an expression around `SHORT` to the name of a value."""
    return Short(
        int(match["id"]),
        match["name"],
        index_of(match["index"]),
        match["phi"] is not None,
        int(match["space"] or 0),
    )


def index_of(text: str | None) -> ShapeIndex:
    """Parses `{1,0}` as a shape index; None and empty text yield `()`. Raises ValueError for anything else."""
    return tuple([int(number) for number in text[1:-1].split(",") if number]) if text else ()


def index_text(index: ShapeIndex) -> str:
    """Formats a shape index: `{1,0}`."""
    return f"{{{','.join(map(str, index))}}}"


def short_text(value: Value, is_tuple: bool) -> str:
    """Returns XLA's name of a value, with the index if the instruction's shape is a tuple."""
    index = index_text(value.index) if is_tuple else ""
    return f"<{value.number} {value.name}{index}{' (phi)' if value.is_phi else ''} @{value.memory_space}>"


def human_bytes(count: int) -> str:
    """Formats a number of bytes as XLA does: `12B`, `2.5KiB`, `1.25MiB` (`HumanReadableNumBytes`)."""
    if count < 1024:
        return f"{count}B"
    units = "KMGTPE"
    unit = 0
    while count >= 1024 * 1024 and unit < len(units) - 1:
        count //= 1024
        unit += 1
    return f"{count / 1024:.{1 if unit == 0 else 2}f}{units[unit]}iB"
