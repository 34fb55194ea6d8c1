"""Arithmetic in float32, in which XLA adds up costs. Exactly representable integers stay integers."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence

EXACT = 1 << 24
"""Whole numbers up to this are themselves in float32."""
_SINGLE = struct.Struct("f")


def round_to_float32(value: float) -> float:
    """Rounds a number to float32."""
    if -EXACT <= value <= EXACT and value == int(value):
        return value
    try:
        return float(_SINGLE.unpack(_SINGLE.pack(value))[0])
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def float32_sum(values: Iterable[float], start: float = 0) -> float:
    """Returns the sum in float32, rounded after each addition."""
    total = start
    for value in values:
        total = round_to_float32(total + value)
    return total


def is_exact(values: Sequence[float]) -> bool:
    """Returns True if the float32 sum is exact in any order: all numbers are nonnegative integers, and the sum is
    small.
    """
    return not values or (min(values) >= 0 and isinstance(total := sum(values), int) and total <= EXACT)
