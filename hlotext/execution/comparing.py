"""Results side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_FLOOR = 0.01
"""Elements smaller than this part of the largest one count as if they were as large: what is left of sums that cancel."""


def difference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """Returns the largest difference between corresponding elements of two arrays, relative to their magnitude.

    Small elements are measured relative to 1% of the largest one. The result is 0 for identical bits. It is infinite for
    different sizes or types, for integers and booleans that differ, and if only one of two elements is finite or they are
    different infinities. NaN equals NaN.
    """
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if a.tobytes() == b.tobytes():
        return 0.0
    if a.dtype.kind in "biu" or "int" in a.dtype.name:
        return float("inf") if (a != b).any() else 0.0
    wide: Any = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    finite = np.isfinite(x)
    if (finite != np.isfinite(y)).any() or not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return float("inf")
    x, y = np.abs(x[finite] - y[finite]), np.maximum(np.abs(x[finite]), np.abs(y[finite]))
    if not x.size:
        return 0.0
    scale = float(y.max())
    return float((x / np.maximum(y, scale * _FLOOR)).max()) if scale else 0.0


def device_difference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], devices: int) -> float:
    """Returns the largest difference on any device, as `difference` defines it.

    With several devices, the first dimension of each array is the device.
    """
    if devices == 1 or a.shape != b.shape:
        return difference(a, b)
    return max(difference(a[number, ...], b[number, ...]) for number in range(devices))


def distance(
    a: Sequence[Sequence[np.ndarray[Any, Any]]], b: Sequence[Sequence[np.ndarray[Any, Any]]]
) -> float:
    """Returns the largest `difference` over all results and sets of arguments.

    The result is infinite if `a` and `b` have different numbers of results or argument sets.
    """
    if len(a) != len(b) or any(len(x) != len(y) for x, y in zip(a, b, strict=True)):
        return float("inf")
    return max(
        (difference(p, q) for x, y in zip(a, b, strict=True) for p, q in zip(x, y, strict=True)),
        default=0.0,
    )
