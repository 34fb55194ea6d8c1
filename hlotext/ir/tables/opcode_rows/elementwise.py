"""Rows of the opcode table: what works on each element by itself."""

from __future__ import annotations

from hlotext.ir.tables import opcode_attributes as a
from hlotext.ir.tables.opcode import Arity, Elements, Family, Opcode
from hlotext.ir.values.types import TypeKind

_Kinds = frozenset[TypeKind]

_FLOAT: _Kinds = frozenset({TypeKind.FLOAT})
_FLOAT_OR_COMPLEX: _Kinds = _FLOAT | {TypeKind.COMPLEX}
_INTEGRAL: _Kinds = frozenset({TypeKind.SIGNED, TypeKind.UNSIGNED})
_BITS: _Kinds = _INTEGRAL | {TypeKind.PREDICATE}
_SIGNED: _Kinds = _FLOAT_OR_COMPLEX | {TypeKind.SIGNED}
_ARITHMETIC: _Kinds = _FLOAT_OR_COMPLEX | _INTEGRAL
_ANY: _Kinds = _ARITHMETIC | {TypeKind.PREDICATE}


def _unary(
    name: str,
    doc: str,
    *,
    accuracy: bool = False,
    sample: str = "f32",
    new: bool = False,
    cost: str = "elementwise",
    types: _Kinds = _FLOAT_OR_COMPLEX,
    keeps_layout: bool = True,
) -> Opcode:
    """An elementwise opcode of one operand; `sample` is the element type of its example."""
    return Opcode(
        name,
        Family.ELEMENTWISE_UNARY,
        Arity(1, 1),
        doc,
        f"{sample}[4] {name}({sample}[4] x)",
        shape_rule="unary",
        cost_rule=cost,
        shape_optional=True,
        result_accuracy=accuracy,
        new=new,
        elements=Elements.POINTWISE,
        keeps_layout=keeps_layout,
        operand_types=types,
    )


def _binary(
    name: str,
    doc: str,
    sample: str = "f32",
    cost: str = "elementwise",
    *,
    types: _Kinds = _ANY,
    commutes: bool = False,
) -> Opcode:
    """An elementwise opcode of two operands of one shape; `sample` is the element type of its example."""
    return Opcode(
        name,
        Family.ELEMENTWISE_BINARY,
        Arity(2, 2),
        doc,
        f"{sample}[4] {name}({sample}[4] x, {sample}[4] y)",
        shape_rule="binary",
        cost_rule=cost,
        shape_optional=True,
        elements=Elements.POINTWISE,
        keeps_layout=True,
        operand_types=types,
        commutes=commutes,
    )


ROWS: tuple[Opcode, ...] = (
    _unary("abs", "Absolute value; magnitude of a complex number, so the result is real.", types=_SIGNED),
    _unary("acos", "Inverse cosine.", accuracy=True, cost="transcendental"),
    _unary("acosh", "Inverse hyperbolic cosine.", accuracy=True, cost="transcendental"),
    _binary("add", "Sum; logical or for pred.", commutes=True),
    _binary("and", "Bitwise and; logical and for pred.", "s32", types=_BITS, commutes=True),
    _unary("asin", "Inverse sine.", accuracy=True, cost="transcendental"),
    _unary("asinh", "Inverse hyperbolic sine.", accuracy=True, cost="transcendental"),
    # InstructionCanChangeLayout leaves it out.
    _unary("atan", "Inverse tangent.", accuracy=True, new=True, cost="transcendental", keeps_layout=False),
    _binary(
        "atan2", "Angle of the point (operand 1, operand 0).", cost="transcendental", types=_FLOAT_OR_COMPLEX
    ),
    _unary("atanh", "Inverse hyperbolic tangent.", accuracy=True, cost="transcendental"),
    _unary("cbrt", "Cube root.", accuracy=True, cost="transcendental", types=_FLOAT),
    _unary("ceil", "Rounds up to an integer.", types=_FLOAT),
    Opcode(
        "clamp",
        Family.ELEMENTWISE_TERNARY,
        Arity(3, 3),
        "Operand 1 limited to the range from operand 0 to operand 2, which may be scalars.",
        "f32[4] clamp(f32[] low, f32[4] x, f32[] high)",
        shape_rule="clamp",
        cost_rule="elementwise",
        shape_optional=True,
        elements=Elements.POINTWISE,
        keeps_layout=True,
    ),
    Opcode(
        "compare",
        Family.ELEMENTWISE_BINARY,
        Arity(2, 2),
        "Compares each pair of elements with the relation `direction`.",
        "pred[4] compare(f32[4] x, f32[4] y), direction=LT",
        attributes=(a.required("direction"), a.COMPARISON_ORDER, a.COMPARISON_TYPE),
        shape_rule="binary",
        cost_rule="elementwise",
        shape_optional=True,
        elements=Elements.POINTWISE,
        keeps_layout=True,
        operand_types=_ANY,
    ),
    Opcode(
        "complex",
        Family.ELEMENTWISE_BINARY,
        Arity(2, 2),
        "Complex numbers with these real and imaginary parts.",
        "c64[4] complex(f32[4] x, f32[4] y)",
        shape_rule="binary",
        cost_rule="elementwise",
        shape_optional=True,
        elements=Elements.POINTWISE,
        keeps_layout=True,
        operand_types=_FLOAT,
    ),
    Opcode(
        "convert",
        Family.ELEMENTWISE_UNARY,
        Arity(1, 1),
        "Converts the value of each element to another type.",
        "s32[4] convert(f32[4] x)",
        shape_rule="convert",
        cost_rule="elementwise",
        elements=Elements.CONVERT,
        keeps_layout=True,
    ),
    _unary("cosine", "Cosine.", accuracy=True, cost="transcendental"),
    _unary("cosh", "Hyperbolic cosine.", accuracy=True, cost="transcendental"),
    _unary(
        "count-leading-zeros",
        "Number of zero bits above the highest one bit.",
        sample="s32",
        types=_INTEGRAL,
    ),
    _binary("divide", "Quotient; integers round towards zero.", types=_ARITHMETIC),
    _unary("erf", "Error function.", accuracy=True, cost="transcendental", types=_FLOAT),
    _unary("exp2", "2 to the power of the operand.", accuracy=True, new=True, cost="transcendental"),
    _unary("exponential", "e to the power of the operand.", accuracy=True, cost="transcendental"),
    _unary(
        "exponential-minus-one",
        "e to the power of the operand, minus one; accurate near zero.",
        accuracy=True,
        cost="transcendental",
    ),
    _unary("floor", "Rounds down to an integer.", types=_FLOAT),
    _unary("imag", "Imaginary part; zero for real operands."),
    Opcode(
        "is-finite",
        Family.ELEMENTWISE_UNARY,
        Arity(1, 1),
        "True for elements that are neither infinite nor NaN.",
        "pred[4] is-finite(f32[4] x)",
        shape_rule="unary",
        cost_rule="elementwise",
        shape_optional=True,
        elements=Elements.POINTWISE,
        keeps_layout=True,
        operand_types=_FLOAT,
    ),
    _unary("log", "Natural logarithm.", accuracy=True, cost="transcendental"),
    _unary("log2", "Base-2 logarithm.", accuracy=True, new=True, cost="transcendental"),
    _unary(
        "log-plus-one",
        "Natural logarithm of one plus the operand; accurate near zero.",
        accuracy=True,
        cost="transcendental",
    ),
    _unary("logistic", "1 / (1 + exp(-x)).", accuracy=True, cost="transcendental"),
    _binary("maximum", "The greater element; NaN if either is.", commutes=True),
    _binary("minimum", "The lesser element; NaN if either is.", commutes=True),
    _binary("mulhi", "High half of the product of two integers.", "s32"),
    _binary("multiply", "Product; logical and for pred.", commutes=True),
    _unary("negate", "Negation.", types=_ARITHMETIC),
    _unary("not", "Bitwise complement; logical not for pred.", sample="s32", types=_BITS),
    _binary("or", "Bitwise or; logical or for pred.", "s32", types=_BITS, commutes=True),
    _unary("popcnt", "Number of one bits.", sample="s32", types=_INTEGRAL),
    _binary("power", "Operand 0 to the power of operand 1.", cost="transcendental", types=_ARITHMETIC),
    _unary("real", "Real part; a real operand unchanged."),
    Opcode(
        "reduce-precision",
        Family.ELEMENTWISE_UNARY,
        Arity(1, 1),
        "Rounds to a float with these exponent and mantissa widths, keeping the type.",
        "f32[4] reduce-precision(f32[4] x), exponent_bits=8, mantissa_bits=7",
        attributes=(a.required("exponent_bits"), a.required("mantissa_bits")),
        shape_rule="reduce_precision",
        cost_rule="elementwise",
        elements=Elements.POINTWISE,
        operand_types=_FLOAT,
        keeps_layout=True,
        mixes_precision=True,
    ),
    _binary("remainder", "Remainder of the division, with the sign of operand 0.", types=_ARITHMETIC),
    _unary("round-nearest-afz", "Rounds to the nearest integer, halves away from zero.", types=_FLOAT),
    _unary("round-nearest-even", "Rounds to the nearest integer, halves to even.", types=_FLOAT),
    _unary("rsqrt", "1 / square root.", accuracy=True, cost="transcendental"),
    Opcode(
        "select",
        Family.ELEMENTWISE_TERNARY,
        Arity(3, 3),
        "Elements of operand 1 where operand 0 is true, elsewhere of operand 2.",
        "f32[4] select(pred[4] p, f32[4] x, f32[4] y)",
        shape_rule="select",
        cost_rule="elementwise",
        shape_optional=True,
        elements=Elements.POINTWISE,
        keeps_layout=True,
    ),
    _binary(
        "shift-left", "Shifts bits left; zero if the amount reaches the width.", "s32", types=_ARITHMETIC
    ),
    _binary("shift-right-arithmetic", "Shifts bits right, repeating the sign bit.", "s32", types=_ARITHMETIC),
    _binary("shift-right-logical", "Shifts bits right, filling with zeros.", "s32", types=_ARITHMETIC),
    _unary("sign", "-1, 0 or 1; for a complex number its direction.", types=_SIGNED),
    _unary("sine", "Sine.", accuracy=True, cost="transcendental"),
    _unary("sinh", "Hyperbolic sine.", accuracy=True, cost="transcendental"),
    _unary("sqrt", "Square root.", accuracy=True, cost="transcendental"),
    Opcode(
        "stochastic-convert",
        Family.ELEMENTWISE_BINARY,
        Arity(2, 2),
        "Operand 0 in a narrower type, rounded up or down according to the random bits of operand 1.",
        "bf16[4] stochastic-convert(f32[4] x, u32[4] bits)",
        shape_rule="stochastic_convert",
        cost_rule="elementwise",
        elements=Elements.POINTWISE,
        operand_types=_FLOAT,
        keeps_layout=True,
    ),
    _binary("subtract", "Difference.", types=_ARITHMETIC),
    _unary("tan", "Tangent.", accuracy=True, cost="transcendental"),
    _unary("tanh", "Hyperbolic tangent.", accuracy=True, cost="transcendental"),
    _binary("xor", "Bitwise exclusive or; logical for pred.", "s32", types=_BITS, commutes=True),
)
