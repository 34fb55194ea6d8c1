"""Shape rules of what works on each element by itself.

HLO has no implicit broadcasting (`HloVerifier`): operands have equal sizes, where an unbounded size equals
any. Real float types may mix; the result then has the more precise one.
"""

from __future__ import annotations

from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType, TypeKind
from hlotext.semantics.infer.errors import ShapeInferenceError
from hlotext.semantics.infer.op import Op
from hlotext.semantics.infer.rules import Open, rule
from hlotext.semantics.infer.shapes import (
    PRED,
    Dimension,
    array,
    compatible,
    component_type,
    dimensions,
    is_scalar,
    is_unbounded,
    same_type_or_floats,
    with_type,
)

_COMPLEX_OF = {ELEMENT_TYPES["f32"]: ELEMENT_TYPES["c64"], ELEMENT_TYPES["f64"]: ELEMENT_TYPES["c128"]}


def _check_kind(op: Op, number: int) -> None:
    """Raises ShapeInferenceError unless the opcode takes that operand's element type (its row says which kinds)."""
    found = op.operands[number].element_type
    kinds = OPCODES[op.opcode].operand_types or frozenset(TypeKind)
    if found.kind not in kinds and found.kind is not TypeKind.UNKNOWN:
        wanted = ", ".join(sorted(kind.value for kind in kinds))
        raise ShapeInferenceError(f"{op.opcode} takes {wanted}, not {found}", operand=number)


@rule("unary")
def infer_unary(op: Op) -> Shape:
    """Infers the shape of a unary operation: the operand's; `pred` for is-finite, real for parts of complex numbers.

    Corresponds to `ShapeInference::InferUnaryOpShape`.
    """
    operand = op.array(0)
    _check_kind(op, 0)
    if op.opcode == "is-finite":
        return with_type(operand, PRED)
    if op.opcode in ("abs", "imag", "real"):
        return with_type(operand, component_type(operand.element_type))
    return operand


@rule("binary")
def infer_binary(op: Op) -> Shape:
    """Infers the shape of a binary operation: the operands' common shape; `pred` for compare, complex for complex.

    Corresponds to `ShapeInference::InferBinaryOpShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    lhs, rhs = op.array(0), op.array(1)
    for number in (0, 1):
        _check_kind(op, number)
    if not same_type_or_floats(lhs.element_type, rhs.element_type):
        raise ShapeInferenceError(f"{op.opcode} of different element types: {lhs} and {rhs}")
    sizes = _common_dimensions(op, lhs, rhs)
    if op.opcode == "compare":
        return array(PRED, sizes)
    if op.opcode == "complex":
        return array(_complex_type(lhs.element_type, rhs.element_type), sizes)
    return array(op.common_type(lhs.element_type, rhs.element_type), sizes)


def _complex_type(real: ElementType, imaginary: ElementType) -> ElementType:
    if real is not imaginary or real not in _COMPLEX_OF:
        raise ShapeInferenceError(f"there is no complex type with parts {real} and {imaginary}")
    return _COMPLEX_OF[real]


def _common_dimensions(op: Op, lhs: Shape, rhs: Shape) -> list[Dimension]:
    """The sizes of both (`InferDegenerateDimensionBroadcastShape` less its broadcasting of size 1)."""
    if not compatible(lhs, rhs, any_type=True):
        raise ShapeInferenceError(
            f"{op.opcode} of different sizes: {lhs} and {rhs}", help=_broadcast_first(lhs, rhs)
        )
    return [_common_dimension(a, b) for a, b in zip(dimensions(lhs), dimensions(rhs), strict=True)]


def _broadcast_first(lhs: Shape, rhs: Shape) -> str:
    """Returns the broadcast that other libraries add implicitly; empty if neither array fits into the other one."""
    small, large = sorted((lhs, rhs), key=lambda shape: shape.rank)
    for first in range(large.rank - small.rank, -1, -1) if small.rank < large.rank else ():
        places = range(first, first + small.rank)
        if all(large.dimensions[place] == size for place, size in zip(places, small.dimensions, strict=True)):
            sizes = ",".join(map(str, large.dimensions))
            listed = ",".join(map(str, places))
            return (
                f"HLO does not broadcast implicitly: `{small.element_type}[{sizes}] broadcast(...), dimensions={{{listed}}}`"
                f" makes the {small} as large"
            )
    return ""


def _common_dimension(a: Dimension, b: Dimension) -> Dimension:
    if a[0] == b[0]:
        return a[0], a[1] or b[1]
    if 1 in (a[0], b[0]):  # one of them is unbounded, and XLA lets it win over a 1
        return b if a[0] == 1 else a
    return b if is_unbounded(a[0]) else a


@rule("clamp")
def infer_clamp(op: Op) -> Shape:
    """Infers the shape of a clamp: that of operand 1. The limits are scalars or have that shape.

    Corresponds to `ShapeInference::InferClampShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand = op.array(1)
    for number in (0, 2):
        limit = op.array(number)
        if not same_type_or_floats(limit.element_type, operand.element_type) or not (
            is_scalar(limit) or compatible(limit, operand, any_float=True)
        ):
            raise ShapeInferenceError(
                f"a limit of clamp must be a scalar of the type of {operand}, or have its shape, not {limit}",
                operand=number,
            )
    return operand


@rule("select")
def infer_select(op: Op) -> Shape:
    """Infers the shape of a select: that of operands 1 and 2. Operand 0 is `pred`, a scalar or of the same sizes.

    Corresponds to `ShapeInference::InferSelectShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    chooser, on_true, on_false = op.array(0), op.array(1), op.array(2)
    if chooser.element_type is not PRED:
        raise ShapeInferenceError(f"operand 0 of select must be of type pred, not {chooser}", operand=0)
    if not compatible(on_true, on_false, any_float=True):
        raise ShapeInferenceError(f"select between different shapes: {on_true} and {on_false}")
    for choice in (on_true, on_false):
        if not is_scalar(chooser) and not compatible(chooser, choice, any_type=True):
            raise ShapeInferenceError(f"{chooser} cannot select elements of {choice}", operand=0)
    element_type = op.common_type(on_true.element_type, on_false.element_type)
    full = on_true if is_scalar(chooser) else chooser
    sizes = []
    for i, (size, dynamic) in enumerate(dimensions(full)):
        a, b = on_true.dimensions[i], on_false.dimensions[i]
        flags = on_true.dynamic_dimensions[i], on_false.dynamic_dimensions[i]
        if is_unbounded(a) or is_unbounded(b):
            sizes.append((b if is_unbounded(a) else a, all(flags)))
        else:
            sizes.append((size, dynamic or any(flags)))
    return array(element_type, sizes)


@rule("convert", Open.ELEMENT_TYPE)
def infer_convert(op: Op) -> Shape:
    """Infers the shape of a convert: the operand's sizes with the stated element type (`InferConvertShape`)."""
    return with_type(op.array(0), op.open_array("element type").element_type)


@rule("reduce_precision")
def infer_reduce_precision(op: Op) -> Shape:
    """Infers the shape of a reduce-precision: that of the operand, which must be floating-point.

    Corresponds to `ShapeInference::InferReducePrecisionShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand = op.array(0)
    _check_kind(op, 0)
    for name, least in (("exponent_bits", 1), ("mantissa_bits", 0)):
        if op.get(name, int) < least:
            raise ShapeInferenceError(f"{name} must be at least {least}", attribute=name)
    return operand


@rule("stochastic_convert", Open.ELEMENT_TYPE)
def infer_stochastic_convert(op: Op) -> Shape:
    """Infers the shape of a stochastic-convert: operand 0's sizes with the stated element type.

    Corresponds to `ShapeInference::InferStochasticConvertShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand, bits = op.array(0), op.array(1)
    _check_kind(op, 0)
    if bits.element_type.kind is not TypeKind.UNSIGNED or bits.element_type.bits != operand.element_type.bits:
        raise ShapeInferenceError(
            f"the random bits for {operand} must be unsigned and of the same width, not {bits}", operand=1
        )
    if bits.dimensions != operand.dimensions or bits.dynamic_dimensions != operand.dynamic_dimensions:
        raise ShapeInferenceError(f"the random bits {bits} differ in size from {operand}", operand=1)
    return with_type(operand, op.open_array("element type").element_type)


@rule("bitcast_convert", Open.ELEMENT_TYPE)
def infer_bitcast_convert(op: Op) -> Shape:
    """Infers the shape of a bitcast-convert: the operand's with the stated element type.

    A narrower type appends a minor-most dimension, and a wider one removes it. Corresponds to
    `ShapeInference::InferBitcastConvertShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand = op.array(0)
    old, new = operand.element_type, op.open_array("element type").element_type
    if old.is_complex != new.is_complex:
        raise ShapeInferenceError(f"the bits of {old} cannot be reinterpreted as {new}", operand=0)
    # A pred takes a whole byte here (`primitive_util::StorageBitWidth`).
    old_bits, new_bits = (8 if t is PRED else t.bits for t in (old, new))
    if not old_bits or not new_bits or max(old_bits, new_bits) % min(old_bits, new_bits):
        raise ShapeInferenceError(f"the bits of {old} do not divide evenly into {new}", operand=0)
    if old_bits > new_bits:
        return array(new, [*dimensions(operand), (old_bits // new_bits, False)])
    if old_bits == new_bits:
        return with_type(operand, new)
    if not operand.dimensions or operand.dimensions[-1] != new_bits // old_bits:
        raise ShapeInferenceError(
            f"the last dimension of {operand} must have size {new_bits // old_bits} to become one {new}",
            operand=0,
        )
    return array(new, dimensions(operand)[:-1])
