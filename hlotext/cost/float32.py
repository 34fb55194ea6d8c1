"""Arithmetic in float32, in which XLA adds up costs. Exactly representable integers stay integers."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence

EXACT = 1 << 24
"""Whole numbers up to this are themselves in float32."""
_SINGLE = struct.Struct("f")


def round_to_float32(value: float) -> float:
    """The number as float32 holds it."""
    if -EXACT <= value <= EXACT and value == int(value):
        return value
    try:
        return float(_SINGLE.unpack(_SINGLE.pack(value))[0])
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def float32_sum(values: Iterable[float], start: float = 0) -> float:
    """The sum, rounded after each step."""
    total = start
    for value in values:
        total = round_to_float32(total + value)
    return total


def is_exact(values: Sequence[float]) -> bool:
    """True if adding up in float32 rounds nothing, in whatever order: whole numbers that are not negative and stay small."""
    return not values or (min(values) >= 0 and isinstance(total := sum(values), int) and total <= EXACT)
