"""Shape rules of values without operands, of tuples, and of what moves or regroups elements."""

from __future__ import annotations

import math

from hlotext.ir.values.shape import UNBOUNDED_SIZE, Shape
from hlotext.ir.values.types import ELEMENT_TYPES, TypeKind
from hlotext.ir.values.window import PaddingConfig, SliceDimensions
from hlotext.semantics.infer.errors import CannotInfer, ShapeInferenceError
from hlotext.semantics.infer.op import Op
from hlotext.semantics.infer.rules import Open, rule
from hlotext.semantics.infer.shapes import (
    S32,
    TOKEN_SHAPE,
    U32,
    array,
    dimensions,
    has_unbounded,
    is_scalar,
    is_unbounded,
    same_type_or_floats,
    scalar,
    sizes_agree,
)

INT32_MAX = 2**31 - 1


# ---- values without operands, tokens, tuples


@rule("constant")
def infer_constant(op: Op) -> Shape:
    """Infers the shape of a constant: that of its literal. Raises CannotInfer if the literal is unknown."""
    if op.literal is None:
        raise CannotInfer("the constant's literal is unknown")
    return op.literal


@rule("iota", Open.ALL)
def infer_iota(op: Op) -> Shape:
    """Infers the shape of an iota: the stated one, a numeric array of rank 1 or more (`ShapeVerifier::HandleIota`).

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    shape = op.open_array("shape")
    op.check_dimension("iota_dimension", op.get("iota_dimension", int), shape.rank)
    if shape.element_type.kind is TypeKind.PREDICATE:
        raise ShapeInferenceError(f"iota needs a numeric type, not {shape.element_type}")
    return shape


@rule("u32_scalar")
def infer_u32_scalar(op: Op) -> Shape:
    """Infers the shape of replica-id and partition-id: `u32[]`."""
    return scalar(U32)


@rule("rng_state")
def infer_rng_state(op: Op) -> Shape:
    """Infers the shape of an rng-get-and-update-state: `u64[2]` (`ShapeVerifier::HandleRngGetAndUpdateState`)."""
    return Shape(ELEMENT_TYPES["u64"], (2,))


@rule("token")
def infer_token(op: Op) -> Shape:
    """Infers the shape of an instruction that only orders others: a token."""
    return TOKEN_SHAPE


@rule("tuple")
def infer_tuple(op: Op) -> Shape:
    """Infers the shape of a tuple: the tuple of the operands' shapes."""
    return Shape.tuple(op.operands)


@rule("get_tuple_element")
def infer_get_tuple_element(op: Op) -> Shape:
    """Infers the shape of a get-tuple-element: the element at `index` (`InferGetTupleElementShape`).

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand, index = op.operand(0), op.get("index", int)
    if not operand.is_tuple:
        raise ShapeInferenceError(f"{operand} is not a tuple, so it has no element {index}", operand=0)
    if not 0 <= index < len(operand.tuple_shapes):
        raise ShapeInferenceError(f"index={index} is out of range for {operand}", attribute="index")
    return operand.tuple_shapes[index]


# ---- unchanged shape


@rule("same_as_operand")
def infer_same_as_operand(op: Op) -> Shape:
    """Infers the shape of an instruction that has that of its only operand."""
    return op.operand(0)


@rule("add_dependency")
def infer_add_dependency(op: Op) -> Shape:
    """Infers the shape of an add-dependency: that of operand 0. Operand 1 must be a token.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    if not op.operand(1).is_token:
        raise ShapeInferenceError(
            f"operand 1 of add-dependency must be a token, not {op.operands[1]}", operand=1
        )
    return op.operands[0]


@rule("reordered")
def infer_reordered(op: Op) -> Shape:
    """Infers the shape of an instruction that reorders elements along dimensions: the operand's.

    Corresponds to `ShapeInference::InferReverseShape`.
    """
    operand = op.array(0)
    op.dimension_numbers("dimensions", operand.rank)
    return operand


@rule("rotated")
def infer_rotated(op: Op) -> Shape:
    """Infers the shape of a shuffle: the operand's, with a shift for each of one or more dimensions
    (`InferShuffleShape`).

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand = op.array(0)
    dimensions = op.dimension_numbers("dimensions", operand.rank)
    if not dimensions:
        raise ShapeInferenceError("a shuffle needs at least one dimension", attribute="dimensions")
    shifts = op.get("shifts", tuple, ())
    if len(shifts) != len(dimensions):
        raise ShapeInferenceError(
            f"shuffle needs one shift per dimension ({len(dimensions)}), not {len(shifts)}",
            attribute="shifts",
        )
    return operand


# ---- the stated sizes


@rule("bitcast", Open.ALL)
def infer_bitcast(op: Op) -> Shape:
    """Infers the shape of a bitcast: the stated one. Its number of bytes is checked with layouts."""
    op.operand(0)
    return op.open_shape("shape")


@rule("broadcast", Open.DIMENSIONS)
def infer_broadcast(op: Op) -> Shape:
    """Infers the shape of a broadcast: the stated sizes, which must match the operand's mapped dimensions.

    Without a stated shape, the result is the operand's if `dimensions` is empty, and CannotInfer is raised otherwise.
    Corresponds to `ShapeVerifier::HandleBroadcast`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand = op.array(0)
    if op.stated is None and not op.integers("dimensions", ()):
        return operand
    stated = op.open_array("dimensions")
    numbers = op.dimension_numbers("dimensions", stated.rank, ())
    if len(numbers) != operand.rank:
        raise ShapeInferenceError(
            f"broadcast needs one entry in dimensions per dimension of {operand}",
            attribute="dimensions",
        )
    sizes = dimensions(stated)
    for i, number in enumerate(numbers):
        if is_unbounded(operand.dimensions[i]):
            continue
        if operand.dimensions[i] != sizes[number][0]:
            raise ShapeInferenceError(
                f"dimension {i} of {operand} does not match dimension {number} of {stated}", operand=0
            )
        sizes[number] = operand.dimensions[i], operand.dynamic_dimensions[i]
    return array(operand.element_type, sizes)


@rule("reshape", Open.DIMENSIONS)
def infer_reshape(op: Op) -> Shape:
    """Infers the shape of a reshape: the stated sizes, with as many elements as the operand
    (`ShapeVerifier::HandleReshape`).
    """
    return _regrouped(op)


@rule("dynamic_reshape", Open.DIMENSIONS)
def infer_dynamic_reshape(op: Op) -> Shape:
    """Infers the shape of a dynamic-reshape: the stated bounds, with an s32 operand for each dimension's size.

    Corresponds to `ShapeVerifier::HandleDynamicReshape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    result = _regrouped(op)
    if len(op.operands) != result.rank + 1:
        raise ShapeInferenceError(
            f"dynamic-reshape to {result} needs one size per dimension, not {len(op.operands) - 1}"
        )
    for number in range(1, len(op.operands)):
        if op.array(number).element_type is not S32:
            raise ShapeInferenceError(f"a size must be s32[], not {op.operands[number]}", operand=number)
    return result


def _regrouped(op: Op) -> Shape:
    """The operand's elements in the stated sizes."""
    operand, stated = op.array(0), op.open_array("dimensions")
    counts = [None if has_unbounded(s) else s.element_count for s in (operand, stated)]
    if None not in counts and counts[0] != counts[1]:
        raise ShapeInferenceError(
            f"{op.opcode} of {counts[0]} elements ({operand}) to {counts[1]} ({stated})", operand=0
        )
    return array(operand.element_type, dimensions(stated))


# ---- sizes from operands and attributes


@rule("transpose")
def infer_transpose(op: Op) -> Shape:
    """Infers the shape of a transpose: the operand's dimensions, permuted (`ShapeInference::InferTransposeShape`).

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand = op.array(0)
    permutation = op.dimension_numbers("dimensions", operand.rank)
    if len(permutation) != operand.rank:
        raise ShapeInferenceError(
            f"transpose of {operand} needs a permutation of its dimensions",
            attribute="dimensions",
        )
    sizes = dimensions(operand)
    return array(operand.element_type, [sizes[number] for number in permutation])


@rule("concatenate")
def infer_concatenate(op: Op) -> Shape:
    """Infers the shape of a concatenate: sizes add up along one dimension and agree in all others.

    A dynamic operand makes the dimension dynamic, bounded by the sum of bounds, or unbounded if any is. Corresponds to
    `ShapeInference::InferConcatOpShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operands = op.arrays()
    first = operands[0]
    along = op.dimension(first.rank)
    element_type = first.element_type
    for number, operand in enumerate(operands):
        if operand.rank != first.rank or not same_type_or_floats(operand.element_type, first.element_type):
            raise ShapeInferenceError(f"cannot concatenate {operand} to {first}", operand=number)
        element_type = op.common_type(element_type, operand.element_type)
    sizes = []
    for i in range(first.rank):
        found = [operand.dimensions[i] for operand in operands]
        dynamic = any(operand.dynamic_dimensions[i] for operand in operands)
        if i == along:
            sizes.append((UNBOUNDED_SIZE if UNBOUNDED_SIZE in found else sum(found), dynamic))
        else:
            sizes.append(_agreed(op, i, found, operands))
    return array(element_type, sizes)


def _agreed(op: Op, dimension: int, sizes: list[int], operands: tuple[Shape, ...]) -> tuple[int, bool]:
    """The size that all operands have in a dimension; bounded ones decide over unbounded ones."""
    bounded = {size for size in sizes if not is_unbounded(size)}
    if len(bounded) > 1:
        number = next(n for n, size in enumerate(sizes) if not sizes_agree(size, sizes[0]))
        raise ShapeInferenceError(
            f"{operands[number]} and {operands[0]} differ in dimension {dimension}",
            operand=number,
        )
    if not bounded:
        return UNBOUNDED_SIZE, True
    return bounded.pop(), any(
        o.dynamic_dimensions[dimension] and not is_unbounded(o.dimensions[dimension]) for o in operands
    )


@rule("pad")
def infer_pad(op: Op) -> Shape:
    """Infers the shape of a pad: each size plus edge and interior padding (`ShapeInference::InferPadShape`).

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand, value, config = op.array(0), op.array(1), op.get("padding", PaddingConfig)
    if not is_scalar(value) or not same_type_or_floats(value.element_type, operand.element_type):
        raise ShapeInferenceError(
            f"the padding value of {operand} must be a scalar of its type, not {value}", operand=1
        )
    if len(config.dimensions) != operand.rank:
        raise ShapeInferenceError(
            f"padding={config} does not match the rank of {operand}", attribute="padding"
        )
    sizes = []
    for (size, dynamic), edge in zip(dimensions(operand), config.dimensions, strict=True):
        if edge.interior_padding < 0:
            raise ShapeInferenceError("interior padding cannot be negative", attribute="padding")
        if not is_unbounded(size):
            between = max(size - 1, 0) * edge.interior_padding
            size += edge.edge_padding_low + edge.edge_padding_high + between
            if size < 0:
                raise ShapeInferenceError(
                    f"padding={config} gives {operand} a negative size", attribute="padding"
                )
        sizes.append((size, dynamic))
    return array(op.common_type(operand.element_type, value.element_type), sizes)


@rule("slice")
def infer_slice(op: Op) -> Shape:
    """Infers the shape of a slice: one element per stride from start to limit (`ShapeInference::InferSliceShape`).

    A bounded dynamic dimension stays dynamic unless one element is left; an unbounded one becomes static.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand, ranges = op.array(0), op.get("slice", SliceDimensions).dimensions
    if len(ranges) != operand.rank:
        raise ShapeInferenceError(f"slice needs one range per dimension of {operand}", attribute="slice")
    sizes = []
    for (size, dynamic), part in zip(dimensions(operand), ranges, strict=True):
        if (
            part.start < 0
            or part.stride <= 0
            or part.start > part.limit
            or (part.limit > size and not is_unbounded(size))
        ):
            raise ShapeInferenceError(
                f"[{part.start}:{part.limit}:{part.stride}] is not a valid range for a dimension of size {size}",
                attribute="slice",
            )
        length = math.ceil((part.limit - part.start) / part.stride)
        sizes.append((length, dynamic and not is_unbounded(size) and length != 1))
    return array(operand.element_type, sizes)


# ---- run-time sizes


@rule("get_dimension_size")
def infer_get_dimension_size(op: Op) -> Shape:
    """Infers the shape of a get-dimension-size: `s32[]` (`ShapeInference::InferGetDimensionSizeShape`)."""
    _sized_dimension(op)
    return scalar(S32)


@rule("set_dimension_size")
def infer_set_dimension_size(op: Op) -> Shape:
    """Infers the shape of a set-dimension-size: operand 0's with that dimension dynamic (`InferSetDimensionSizeShape`).

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand, along = op.array(0), _sized_dimension(op)
    if op.operand(1) != scalar(S32):
        raise ShapeInferenceError(f"the size must be s32[], not {op.operands[1]}", operand=1)
    return array(operand.element_type, [(s, d or i == along) for i, (s, d) in enumerate(dimensions(operand))])


def _sized_dimension(op: Op) -> int:
    """The dimension whose size is asked or set; its bound must fit s32."""
    operand = op.array(0)
    along = op.dimension(operand.rank)
    if operand.dimensions[along] > INT32_MAX:
        raise ShapeInferenceError(f"dimension {along} of {operand} is too large for s32", operand=0)
    return along
