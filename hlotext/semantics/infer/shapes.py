"""Operations on shapes for inference: compatibility, common types, copies with other sizes.

Layouts play no part here; every shape is one without layouts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

from hlotext.ir.caches import weighted_cache
from hlotext.ir.values.shape import UNBOUNDED_SIZE, Shape
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType, TypeKind

Dimension = tuple[int, bool]
"""Size (the bound, or `UNBOUNDED_SIZE`) of one dimension, and whether it is known only at run time."""

PRED = ELEMENT_TYPES["pred"]
S32 = ELEMENT_TYPES["s32"]
U32 = ELEMENT_TYPES["u32"]
TOKEN_SHAPE = Shape(ELEMENT_TYPES["token"])


@weighted_cache(1 << 16)
def without_layout(shape: Shape) -> Shape:
    """`Shape.without_layout`, once for each distinct shape."""
    return shape.without_layout()


# ---- making shapes


def scalar(element_type: ElementType) -> Shape:
    """Returns the scalar shape of an element type."""
    return Shape(element_type)


def array(element_type: ElementType, dimensions: Iterable[Dimension]) -> Shape:
    """Returns the array shape of these (size, is dynamic) dimensions. Unbounded dimensions are always dynamic."""
    pairs = tuple(dimensions)
    return Shape(
        element_type,
        tuple(size for size, _ in pairs),
        tuple(dynamic or size == UNBOUNDED_SIZE for size, dynamic in pairs),
    )


def dimensions(shape: Shape) -> list[Dimension]:
    """Returns size and dynamic flag of every dimension."""
    return list(zip(shape.dimensions, shape.dynamic_dimensions, strict=True))


def with_type(shape: Shape, element_type: ElementType) -> Shape:
    """Returns the shape with another element type."""
    return Shape(element_type, shape.dimensions, shape.dynamic_dimensions)


def one_or_tuple(shapes: tuple[Shape, ...]) -> Shape:
    """Returns the only shape, or a tuple of all, as XLA does for operations on several arrays."""
    return shapes[0] if len(shapes) == 1 else Shape.tuple(shapes)


# ---- asking shapes


def is_scalar(shape: Shape) -> bool:
    """Returns True for an array without dimensions."""
    return shape.is_array and not shape.dimensions


def is_unbounded(size: int) -> bool:
    """Returns True for the size of an unbounded dimension, printed as `?`."""
    return size == UNBOUNDED_SIZE


def has_unbounded(shape: Shape) -> bool:
    """Returns True if any dimension is unbounded."""
    return UNBOUNDED_SIZE in shape.dimensions


def sizes_agree(a: int, b: int) -> bool:
    """Returns True if two sizes may be equal at run time (XLA's `CompatibleDimensionSizes`)."""
    return a in (b, UNBOUNDED_SIZE) or b == UNBOUNDED_SIZE


def same_sizes(a: Shape, b: Shape) -> bool:
    """Returns True for arrays of equal rank whose sizes may be equal at run time (`ShapeUtil::SameDimensions`)."""
    return len(a.dimensions) == len(b.dimensions) and all(map(sizes_agree, a.dimensions, b.dimensions))


def same_type_or_floats(a: ElementType, b: ElementType) -> bool:
    """Returns True for equal types, and for any two real floating-point types (`SameElementTypeIgnoringFpPrecision`)."""
    return a is b or (a.is_floating and b.is_floating)


def compatible(a: Shape, b: Shape, *, any_float: bool = False, any_type: bool = False) -> bool:
    """Returns True if two shapes are equal, ignoring layouts and dynamic flags (`ShapeUtil::Compatible`).

    `any_float` ignores floating-point precision (`CompatibleIgnoringFpPrecision`), `any_type` all element types.
    """
    if a == b:
        return True
    if a.tuple_shapes or b.tuple_shapes or not (a.is_array and b.is_array):
        return (
            a.element_type is b.element_type
            and len(a.tuple_shapes) == len(b.tuple_shapes)
            and all(
                compatible(x, y, any_float=any_float, any_type=any_type)
                for x, y in zip(a.tuple_shapes, b.tuple_shapes, strict=True)
            )
        )
    types_agree = (
        any_type
        or a.element_type is b.element_type
        or (any_float and same_type_or_floats(a.element_type, b.element_type))
    )
    return types_agree and same_sizes(a, b)


# ---- element types


@functools.cache
def _float_range(element_type: ElementType) -> tuple[int, int]:
    """Binary exponent of the greatest finite value plus one, and bits of significand, as in C++."""
    import ml_dtypes

    info = ml_dtypes.finfo(element_type.dtype)  # type: ignore[no-untyped-call]
    return math.frexp(float(info.max))[1], int(info.nmant) + 1


def component_type(element_type: ElementType) -> ElementType:
    """Returns the type of the parts of a complex type; other types are returned as they are."""
    return ELEMENT_TYPES[f"f{element_type.bits // 2}"] if element_type.is_complex else element_type


def _precedence(element_type: ElementType) -> tuple[bool, int, int, int, bool]:
    part = component_type(element_type)
    exponent, significand = _float_range(part) if part.is_floating else (-1, -1)
    return element_type.is_complex, exponent, significand, part.bits, part.kind is TypeKind.SIGNED


def higher_precision(a: ElementType, b: ElementType) -> ElementType | None:
    """Returns the type of the two that represents the other better (`primitive_util::HigherPrecisionType`).

    Complex before real, then greater range, more significand bits, greater width, signed before unsigned. Returns None
    for different types that tie in all of these.
    """
    if a is b:
        return a
    first, second = _precedence(a), _precedence(b)
    if first == second:
        return None
    return a if first > second else b
