"""When a transpose or a reshape moves no byte, and what a bitcast does, as XLA's `ShapeUtil`: tiles ignored.

Shapes with tiles are compared by their order of dimensions alone, as XLA does; a caller that may not assume
equal tiling has to look at the tiles itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from hlotext.ir.values.shape import Layout, Shape
from hlotext.layout.checks import array_of, layout_of, product
from hlotext.layout.equality import equal_ignoring_element_type
from hlotext.layout.index import dimension_strides
from hlotext.layout.permutations import Permutation, compose, descending, inverse
from hlotext.layout.shapes import normalize


def _same_type(a: Shape, b: Shape, ignore_element_type: bool) -> bool:
    return ignore_element_type or a.element_type is b.element_type


def transpose_is_bitcast(
    source: Shape, target: Shape, permutation: Sequence[int], *, ignore_element_type: bool = False
) -> bool:
    """Returns True if the transpose with `target.dimensions[i] = source.dimensions[permutation[i]]` moves no element.

    Corresponds to XLA's `TransposeIsBitcast`. Returns False if the sizes do not match such a transpose, or if element
    types differ, unless `ignore_element_type` is set. Raises LayoutError for invalid layouts.
    """
    order, target_order = (
        layout_of(array_of(source)).minor_to_major,
        layout_of(array_of(target)).minor_to_major,
    )
    if not _same_type(source, target, ignore_element_type) or sorted(permutation) != list(range(source.rank)):
        return False
    if target.rank != source.rank or compose(source.dimensions, permutation) != target.dimensions:
        return False
    return compose(permutation, target_order) == order


def reshape_is_bitcast(source: Shape, target: Shape, *, ignore_element_type: bool = False) -> bool:
    """Returns True if a reshape from `source` to `target` leaves every element in place.

    Corresponds to XLA's `ReshapeIsBitcast`, and takes time linear in the rank. In either shape, one step along each
    dimension longer than 1 must have the same stride in memory as the same row-major step in the other shape. Returns
    False if element counts differ, or element types unless `ignore_element_type` is set; otherwise True for arrays
    without elements. Raises LayoutError for invalid layouts.
    """
    layout_of(array_of(source))
    layout_of(array_of(target))
    if not _same_type(source, target, ignore_element_type):
        return False
    count = product("the shape", source.dimensions, source)
    if count != product("the shape", target.dimensions, target):
        return False
    return count == 0 or (_steps_agree(source, target) and _steps_agree(target, source))


def _steps_agree(a: Shape, b: Shape) -> bool:
    """True if one step along each dimension of `a` has the same offset in `b`."""
    physical_a, physical_b = dimension_strides(a), dimension_strides(b)
    logical_a, logical_b = (_row_major_strides(shape.dimensions) for shape in (a, b))
    for dimension, size in enumerate(a.dimensions):
        if size <= 1:
            continue
        number, offset = logical_a[dimension], 0
        for stride, distance in zip(logical_b, physical_b, strict=True):
            offset += number // stride * distance
            number %= stride
        if offset != physical_a[dimension]:
            return False
    return True


def _row_major_strides(dimensions: tuple[int, ...]) -> list[int]:
    strides = [1]
    for size in dimensions[:0:-1]:
        strides.append(strides[-1] * size)
    return strides[: len(dimensions)][::-1]


def deduce_transpose_dimensions(source: Shape, target: Shape) -> Permutation | None:
    """Returns the permutation for which the transpose from `source` to `target` is a bitcast, or None if there is none.

    Corresponds to XLA's `DeduceTransposeDimensionsForBitcast`. Element types are not compared. Raises LayoutError for
    invalid layouts.
    """
    order, target_order = (
        layout_of(array_of(source)).minor_to_major,
        layout_of(array_of(target)).minor_to_major,
    )
    if source.rank != target.rank:
        return None
    permutation = compose(order, inverse(target_order))
    return permutation if compose(source.dimensions, permutation) == target.dimensions else None


def is_bitcast(source: Shape, target: Shape, *, ignore_element_type: bool = False) -> bool:
    """Returns True if a single reshape or transpose converts `source` to `target` without moving data.

    Corresponds to XLA's `IsReshapeOrTransposeBitcast`. There are other bitcasts; see `decompose_bitcast`. Returns False
    if element types differ, unless `ignore_element_type` is set. Raises LayoutError for invalid layouts.
    """
    if not _same_type(source, target, ignore_element_type):
        return False
    return (
        reshape_is_bitcast(source, target, ignore_element_type=True)
        or deduce_transpose_dimensions(source, target) is not None
        or equal_ignoring_element_type(source, target)
    )


@attrs.frozen
class BitcastReshape:
    """A bitcast that is equivalent to a reshape."""


@attrs.frozen
class BitcastTranspose:
    """A bitcast that is equivalent to a transpose."""

    dimensions: Permutation
    """Dimension i of the result is dimension `dimensions[i]` of the operand."""


@attrs.frozen
class BitcastTransposeReshapeTranspose:
    """A bitcast that is equivalent to a transpose to row-major order, a reshape, and another transpose."""

    transpose1_dimensions: Permutation
    transpose1_shape: Shape
    reshape_shape: Shape
    transpose2_dimensions: Permutation


BitcastDecomposition = BitcastReshape | BitcastTranspose | BitcastTransposeReshapeTranspose


def decompose_bitcast(source: Shape, target: Shape) -> BitcastDecomposition | None:
    """Decomposes a bitcast into one reshape, one transpose, or a transpose, a reshape and a second transpose.

    Corresponds to XLA's `DecomposeBitcast`. Element types and tiles are not compared. Returns None if the element
    counts differ, in which case there is no bitcast (XLA aborts). Raises LayoutError for invalid layouts.
    """
    if reshape_is_bitcast(source, target, ignore_element_type=True):
        return BitcastReshape()
    permutation = deduce_transpose_dimensions(source, target)
    if permutation is not None:
        return BitcastTranspose(permutation)
    if math.prod(source.dimensions) != math.prod(target.dimensions):
        return None
    order, target_order = (
        layout_of(array_of(source)).minor_to_major,
        layout_of(array_of(target)).minor_to_major,
    )
    return BitcastTransposeReshapeTranspose(
        compose(order, descending(source.rank)),
        normalize(source),
        normalize(target),
        compose(descending(target.rank), inverse(target_order)),
    )


# ---- layouts that make a reshape a bitcast


def align_layouts(source: Shape, target: Shape) -> Shape | None:
    """Returns `target` with the layout that makes the reshape from `source` a bitcast, or None if there is none.

    As in XLA's `AlignLayouts`, dimensions of size 1 become the most major, in descending order. Only the order of
    dimensions is set, and the existing layout of `target` is ignored. Returns None if the element counts differ, and
    the descending layout for arrays without elements. Raises LayoutError if the layout of `source` is invalid.
    """
    source_layout = layout_of(array_of(source))
    target = array_of(target).without_layout().with_default_layout()
    layout_of(target)
    count = product("the shape", source.dimensions, source)
    if count != product("the shape", target.dimensions, target):
        return None
    if not count:
        return target
    long = [number for number in range(target.rank) if target.dimensions[number] != 1]
    ones = [number for number in range(target.rank - 1, -1, -1) if target.dimensions[number] == 1]
    order: list[int] = []
    physical = [number for number in source_layout.minor_to_major if source.dimensions[number] != 1]
    parts = _common_factors(source, target, sorted(physical), long)
    while physical:
        members, matching = next(part for part in parts if physical[0] in part[0])
        # Dimensions that share a factor with the target must lie together and in row-major order.
        if physical[: len(members)] != members[::-1]:
            return None
        order += matching[::-1]
        physical = physical[len(members) :]
    return target.with_layout(Layout((*order, *ones)))


def _common_factors(
    a: Shape, b: Shape, numbers_a: list[int], numbers_b: list[int]
) -> list[tuple[list[int], list[int]]]:
    """The two lists of dimensions cut into the shortest pieces that hold equal numbers of elements (XLA's
    `CommonFactors`).
    """
    parts = []
    i = j = 0
    while i < len(numbers_a):
        start_a, start_b = i, j
        size_a, size_b = a.dimensions[numbers_a[i]], b.dimensions[numbers_b[j]]
        i, j = i + 1, j + 1
        while size_a != size_b:
            if size_a < size_b:
                size_a *= a.dimensions[numbers_a[i]]
                i += 1
            else:
                size_b *= b.dimensions[numbers_b[j]]
                j += 1
        parts.append((numbers_a[start_a:i], numbers_b[start_b:j]))
    return parts
