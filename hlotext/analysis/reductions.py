"""Reductions that XLA's GPU reduction emitter handles, by the memory order of dimensions."""

from __future__ import annotations

from hlotext.ir.values.shape import Shape
from hlotext.layout import are_dimensions_consecutive, major_to_minor

_WARP = 32

Kind = tuple[bool, tuple[int, int, int]]
"""True for a row reduction, False for columns; sizes of the major, middle and minor dimensions."""


def kind_of(shape: Shape, reduced: tuple[int, ...]) -> Kind | None:
    """Returns (is row reduction, sizes) of a reduction, or None if the reduced or kept dimensions are not contiguous in
    memory.

    Corresponds to `GetReductionKindAndContiguousComponents` in `xla/service/gpu/reduction_utils.cc`.
    """
    kept = tuple(d for d in range(shape.rank) if d not in reduced)
    if not kept:
        return True, (1, 1, shape.element_count)
    if are_dimensions_consecutive(shape, kept):
        major, middle, minor = _split(shape, kept)
        if middle == 1:
            return True, (1, 1, major * minor)
        if minor == 1:
            return False, (1, major, middle)
        return True, (major, middle, minor)
    if not are_dimensions_consecutive(shape, reduced):
        return None
    major, middle, minor = _split(shape, reduced)
    return (True, (1, major, middle)) if minor == 1 else (False, (major, middle, minor))


def is_faster(is_row: bool, sizes: tuple[int, int, int]) -> bool:
    """Returns True if the reduction emitter is used for this kind of reduction
    (`IsReductionFromOrToContiguousDimensions`).
    """
    _, middle, minor = sizes
    if is_row:
        return minor >= _WARP or (minor > 0 and _WARP % minor == 0)
    return not (
        middle < _WARP
        or (middle < 2 * _WARP and minor < _WARP)
        or (middle < 4 * _WARP and minor < 8)
        or (middle < 8 * _WARP and minor < 3)
    )


def _split(shape: Shape, middle: tuple[int, ...]) -> tuple[int, int, int]:
    """Elements in the dimensions more major than these, in these, and more minor (`PartitionShapeByMiddleDimensions`)."""
    sizes, segment = [1, 1, 1], 0
    for dimension in major_to_minor(shape):
        inside = dimension in middle
        if segment == 0 and inside:
            segment = 1
        elif segment == 1 and not inside:
            segment = 2
        sizes[segment] *= shape.dimensions[dimension]
    return sizes[0], sizes[1], sizes[2]
