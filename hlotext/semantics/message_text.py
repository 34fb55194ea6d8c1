"""Small words of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlotext.ir.values.aliasing import ShapeIndex


def plural(count: int, noun: str) -> str:
    """Formats a count with a noun: `1 operand`, `2 operands`. The plural is formed with s."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def index_text(index: ShapeIndex) -> str:
    """Formats a shape index in HLO notation: `{1,0}`."""
    return "{" + ",".join(map(str, index)) + "}"


def some(numbers: list[int]) -> str:
    """Formats the first few numbers of a list."""
    return ", ".join(map(str, numbers[:4])) + (", ..." if len(numbers) > 4 else "")


def shown(value: object) -> str:
    """Formats a value for a message, truncated if it is long."""
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
