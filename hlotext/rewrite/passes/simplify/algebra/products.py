"""Rules about products, quotients and remainders."""

from __future__ import annotations

import numpy as np

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import xla_changes
from hlotext.ir.values.enums import ComparisonDirection
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.types import TypeKind
from hlotext.rewrite.kit.builder import retyped
from hlotext.rewrite.kit.facts import (
    PRED,
    array_of,
    constant_value,
    dims,
    is_all,
    is_constant,
    is_one_element,
    is_pred,
    is_scalar,
    is_whole,
    one_use,
    shape_of,
    sizes,
    splat_constant,
    type_of,
)
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite
from hlotext.rewrite.passes.simplify.algebra.sums import is_non_negative, may_join, spread, two_constants

# ---- multiply


@pattern("multiply", handler="HandleMultiply")
def multiply_one(r: AlgebraRewrite) -> Result:
    """multiply(x, f1) => x"""
    return r.drop_neutral(1)


@pattern("multiply", handler="HandleMultiply")
def multiply_zero(r: AlgebraRewrite) -> Result:
    """multiply(i, i0) => i0"""
    i = r.instruction
    x, y = i.operands
    if not (is_whole(i) or r.options.enable_fast_math):
        return False
    return (is_all(x, 0) and r.replace_if_compatible(i, x)) or (
        is_all(y, 0) and r.replace_if_compatible(i, y)
    )


@pattern("multiply", handler="HandleMultiply")
def multiply_negated(r: AlgebraRewrite) -> Result:
    """c = negate(x); d = negate(y); multiply(c, d) => multiply(x, y)"""
    x, y = r.instruction.operands
    if x.opcode != "negate" or y.opcode != "negate":
        return False
    return r.set_operands(r.instruction, (x.operands[0], y.operands[0]))


@pattern("multiply", handler="HandleMultiply")
def multiply_abs(r: AlgebraRewrite) -> Result:
    """c = abs(x); multiply(c, c) => multiply(x, x)"""
    x, y = r.instruction.operands
    if x is not y or x.opcode != "abs" or type_of(x.operands[0]).is_complex:
        return False
    return r.set_operands(r.instruction, (x.operands[0], x.operands[0]))


@pattern("multiply", handler="HandleMultiply")
def multiply_truth(r: AlgebraRewrite) -> Result:
    """c = f32[4,3] convert(p); multiply(x, c) => select(p, x, f0)"""
    i = r.instruction
    for x, y in (i.operands, i.operands[::-1]):
        if y.opcode == "convert" and is_pred(y.operands[0]):
            return r.replace_with_new(i, "select", (y.operands[0], x, r.zeros(shape_of(i))))
    return False


def _times_constant(i: Instruction) -> tuple[Instruction, Instruction] | None:
    """A factor that is no constant and one that is."""
    if i.opcode == "multiply":
        for x, c in (i.operands, i.operands[::-1]):
            if is_constant(c) and not is_constant(x):
                return x, c
    return None


@pattern("multiply", handler="HandleMultiply")
def multiply_two_products(r: AlgebraRewrite) -> Result:
    """c = s32[] constant(3); d = s32[] multiply(n, c); s32[] multiply(d, d)
    => c = s32[] constant(3); e = s32[] multiply(n, n); g = s32[] multiply(c, c); s32[] multiply(e, g)"""
    i = r.instruction
    first, second = map(_times_constant, i.operands)
    if first is None or second is None or not may_join(r, i):
        return False
    product = spread(r, i, r.binary("multiply", first[1], second[1]))
    return r.replace_with_new(
        i, "multiply", (r.create_like(i, "multiply", shape_of(i), (first[0], second[0])), product)
    )


@pattern("multiply", handler="HandleMultiply")
def multiplytwo_constants(r: AlgebraRewrite) -> Result:
    """c = s32[] constant(3); k = s32[] constant(5); d = s32[] multiply(n, c); s32[] multiply(d, k)
    => c = s32[] constant(3); k = s32[] constant(5); g = s32[] multiply(c, k); s32[] multiply(n, g)"""
    i = r.instruction
    if not may_join(r, i):
        return False
    for x, c in (i.operands, i.operands[::-1]):
        first = _times_constant(x)
        if first is not None and is_constant(c):
            return r.replace_with_new(
                i, "multiply", (first[0], spread(r, i, r.binary("multiply", first[1], c)))
            )
    return False


@pattern("multiply", handler="HandleMultiply")
def multiply_constant_and_broadcast(r: AlgebraRewrite) -> Result:
    """fast math: b = f32[4,3] broadcast(s), dimensions={}; m = multiply(x, f2); multiply(m, b)
    => c = f32[] multiply(s, f2.c); b = f32[4,3] broadcast(c), dimensions={}; multiply(x, b)"""
    i = r.instruction
    if not may_join(r, i):
        return False
    for x, op in (i.operands, i.operands[::-1]):
        if x.opcode != "multiply" or op.opcode != "broadcast" or is_constant(op.operands[0]):
            continue
        for a, c in (x.operands, x.operands[::-1]):
            constant = c if is_constant(c) else c.operands[0] if c.opcode == "broadcast" else None
            if is_constant(a) or constant is None or not is_constant(constant) or not is_scalar(constant):
                continue
            b = op.operands[0]
            if not is_scalar(b):
                constant = r.create_like(i, "broadcast", shape_of(b), (constant,), dimensions=())
            product = r.create_like(i, "multiply", shape_of(b), (b, constant))
            wide = r.create_like(i, "broadcast", shape_of(i), (product,), dimensions=dims(op))
            return r.replace_with_new(i, "multiply", (a, wide))
    return False


@pattern("multiply", handler="HandleMultiply")
def multiply_two_splats(r: AlgebraRewrite) -> Result:
    """fast math: m = multiply(x, fhalf); multiply(m, f2)
    => c = f32[] multiply(fhalf.c, f2.c); b = f32[4,3] broadcast(c), dimensions={}; multiply(x, b)"""
    i = r.instruction
    x, y = i.operands
    if x.opcode != "multiply" or not may_join(r, i):
        return False
    both = two_constants(x.operands[1], y)
    if both is None or (is_constant(y) and is_constant(x.operands[0])):
        return False
    return r.replace_with_new(i, "multiply", (x.operands[0], spread(r, i, r.binary("multiply", *both))))


@pattern("multiply", handler="HandleMultiply")
def multiply_exponentials(r: AlgebraRewrite) -> Result:
    """fast math: c = exponential(x); d = exponential(y); multiply(c, d) => a = add(x, y); exponential(a)"""
    i = r.instruction
    x, y = i.operands
    if (
        x.opcode != "exponential"
        or y.opcode != "exponential"
        or not r.is_loose(xla_changes.ALGSIMP_EXPONENTIALS)
    ):
        return False
    total = r.create_like(i, "add", shape_of(i), (x.operands[0], y.operands[0]))
    return r.replace_with_new(i, "exponential", (total,))


@pattern("multiply", handler="HandleMultiply")
def multiply_roots(r: AlgebraRewrite) -> Result:
    """e = exponential(x); c = sqrt(e); multiply(c, c) => exponential(x)"""
    x, y = r.instruction.operands
    if x.opcode != y.opcode or x.opcode not in ("sqrt", "rsqrt") or x.operands[0] is not y.operands[0]:
        return False
    inner = x.operands[0]
    if not is_non_negative(r, inner):
        return False
    if x.opcode == "sqrt":
        return inner
    return r.replace_with_new(r.instruction, "divide", (r.scalar_like(inner, 1), inner))


# ---- divide


def _power_of_two(i: Instruction) -> int | None:
    """The power of two that divides everywhere, if it is one."""
    c = i.operands[0] if i.opcode == "broadcast" else i
    value = constant_value(c) if is_constant(c) and is_one_element(c) else None
    if not isinstance(value, int) or value <= 0 or value & (value - 1):
        return None
    return value


@pattern("divide", handler="HandleDivide")
def divide_by_one(r: AlgebraRewrite) -> Result:
    """divide(x, f1) => x"""
    i = r.instruction
    return is_all(i.operands[1], 1) and r.replace_if_compatible(i, i.operands[0])


@pattern("divide", handler="HandleDivide")
def divide_by_power_of_two(r: AlgebraRewrite) -> Result:
    """c = u32[] constant(8); d = u32[4,3] broadcast(c), dimensions={}; divide(a, d)
    => c = u32[] constant(3); d = u32[4,3] broadcast(c), dimensions={}; shift-right-logical(a, d)"""
    i = r.instruction
    x, y = i.operands
    value = _power_of_two(y) if is_whole(i) else None
    if value is None:
        return False
    if type_of(i).kind is TypeKind.UNSIGNED:
        return r.replace_with_new(i, "shift-right-logical", (x, r.scalar_like(x, value.bit_length() - 1)))
    negative, absolute = _sign_and_abs(r, i, x, r.scalar_like(x, 0))
    shift = r.scalar_like(absolute, value.bit_length() - 1)
    quotient = r.create_like(i, "shift-right-logical", shape_of(i), (absolute, shift))
    negated = r.create_like(i, "negate", shape_of(quotient), (quotient,))
    return r.replace_with_new(i, "select", (negative, negated, quotient))


def _sign_and_abs(
    r: AlgebraRewrite, i: Instruction, x: Instruction, zero: Instruction
) -> tuple[Instruction, Instruction]:
    """Where a whole number is negative, and its absolute value."""
    truth = retyped(shape_of(x), PRED)
    negative = r.create_like(i, "compare", truth, (x, zero), direction=ComparisonDirection("LT"))
    negated = r.create_like(i, "negate", shape_of(x), (x,))
    return negative, r.create_like(i, "select", shape_of(x), (negative, negated, x))


@pattern("divide", handler="HandleDivide")
def divide_exponentials(r: AlgebraRewrite) -> Result:
    """fast math: c = exponential(x); d = exponential(y); divide(c, d) => a = subtract(x, y); exponential(a)"""
    i = r.instruction
    x, y = i.operands
    if (
        x.opcode != "exponential"
        or y.opcode != "exponential"
        or not r.is_loose(xla_changes.ALGSIMP_EXPONENTIALS)
    ):
        return False
    return r.replace_with_new(
        i, "exponential", (r.create_like(i, "subtract", shape_of(i), (x.operands[0], y.operands[0])),)
    )


@pattern("divide", handler="HandleDivide")
def divide_by_exponential(r: AlgebraRewrite) -> Result:
    """fast math: d = exponential(y); divide(x, d) => m = negate(y); e = exponential(m); multiply(x, e)"""
    i = r.instruction
    x, y = i.operands
    if y.opcode != "exponential" or not r.is_loose(xla_changes.ALGSIMP_EXPONENTIALS):
        return False
    negated = r.create_like(i, "negate", shape_of(i), (y.operands[0],))
    return r.replace_with_new(i, "multiply", (x, r.create_like(y, "exponential", shape_of(i), (negated,))))


@pattern("divide", handler="HandleDivide")
def divide_by_power(r: AlgebraRewrite) -> Result:
    """d = power(y, z); divide(x, d) => m = negate(z); e = power(y, m); multiply(x, e)"""
    x, y = r.instruction.operands
    if y.opcode != "power":
        return False
    base, exponent = y.operands
    negated = r.create_like(y, "negate", shape_of(exponent), (exponent,))
    return r.replace_with_new(
        r.instruction, "multiply", (x, r.create_like(y, "power", shape_of(base), (base, negated)))
    )


@pattern("divide", handler="HandleDivide")
def divide_by_root(r: AlgebraRewrite) -> Result:
    """d = sqrt(y); divide(x, d) => e = rsqrt(y); multiply(x, e)"""
    i = r.instruction
    x, y = i.operands
    other = {"sqrt": "rsqrt", "rsqrt": "sqrt"}.get(y.opcode)
    if other is None or not one_use(y):
        return False
    return r.replace_with_new(i, "multiply", (x, r.create_like(y, other, shape_of(i), y.operands)))


@pattern("divide", handler="HandleDivide")
def divide_by_constant(r: AlgebraRewrite) -> Result:
    """divide(x, f2) => c = f32[] constant(0.5); b = f32[4,3] broadcast(c), dimensions={}; multiply(x, b)"""
    x, y = r.instruction.operands
    c = y.operands[0] if y.opcode == "broadcast" else y
    array = array_of(c)
    if (
        is_whole(r.instruction)
        or is_constant(x)
        or array is None
        or not (type_of(c).is_floating or type_of(c).is_complex)
    ):
        return False
    wide = array.astype(np.float32) if array.dtype.itemsize < 4 else array
    with np.errstate(all="ignore"):
        values = np.asarray(wide.dtype.type(1) / wide).astype(array.dtype).reshape(array.shape)
    shape = shape_of(c)
    inverse = r.create_like(c, "constant", shape, argument=Literal.from_array(values, shape))
    if y is not c:
        inverse = r.create_like(y, "broadcast", shape_of(y), (inverse,), dimensions=dims(y))
    return r.binary("multiply", x, inverse)


@pattern("divide", handler="HandleDivide")
def divide_by_broadcast(r: AlgebraRewrite) -> Result:
    """cpu: b = f32[4,3] broadcast(s), dimensions={}; divide(x, b)
    => c = f32[] constant(1); d = f32[] divide(c, s); b = f32[4,3] broadcast(d), dimensions={}; multiply(x, b)"""
    i = r.instruction
    x, y = i.operands
    if is_whole(i) or not r.options.executing_on_cpu or type_of(i).is_complex:
        return False
    if y.opcode != "broadcast" or not one_use(y.operands[0]):
        return False
    inner = y.operands[0]
    inverse = r.create_like(y, "divide", shape_of(inner), (r.scalar_like(inner, 1), inner))
    return r.replace_with_new(
        i, "multiply", (x, r.create_like(y, "broadcast", shape_of(i), (inverse,), dimensions=dims(y)))
    )


@pattern("divide", handler="HandleDivide")
def divide_quotients(r: AlgebraRewrite) -> Result:
    """c = divide(x, y); divide(c, z) => m = multiply(y, z); divide(x, m)"""
    x, y = r.instruction.operands
    if is_whole(r.instruction) or (x.opcode != "divide" and y.opcode != "divide"):
        return False
    if x.opcode == "divide" and y.opcode == "divide":
        over, under = (
            r.binary("multiply", x.operands[0], y.operands[1]),
            r.binary("multiply", x.operands[1], y.operands[0]),
        )
    elif x.opcode == "divide":
        over, under = x.operands[0], r.binary("multiply", x.operands[1], y)
    else:
        over, under = r.binary("multiply", x, y.operands[1]), y.operands[0]
    return r.binary("divide", over, under)


@pattern("divide", handler="HandleDivide")
def divide_truth(r: AlgebraRewrite) -> Result:
    """b = f32[4,3] broadcast(s), dimensions={}; c = f32[4,3] convert(p); divide(c, b)
    => k = f32[] constant(1); d = f32[] divide(k, s); b = f32[4,3] broadcast(d), dimensions={};
    c = f32[4,3] convert(p); multiply(b, c)"""
    i = r.instruction
    x, y = i.operands
    if is_whole(i) or x.opcode != "convert" or not is_pred(x.operands[0]):
        return False
    if y.opcode != "broadcast" or not is_scalar(y.operands[0]):
        return False
    inner = y.operands[0]
    inverse = r.binary("divide", r.scalar_like(inner, 1), inner)
    wide = r.create_like(y, "broadcast", shape_of(i), (inverse,), dimensions=())
    return r.binary("multiply", wide, x)


# ---- remainder


@pattern("remainder", handler="HandleRemainder")
def remainder_twice(r: AlgebraRewrite) -> Result:
    """r = remainder(i, j); remainder(r, j) => remainder(i, j)"""
    x, y = r.instruction.operands
    return x.opcode == "remainder" and x.operands[1] is y and x


@pattern("remainder", handler="HandleRemainder")
def remainder_of_power_of_two(r: AlgebraRewrite) -> Result:
    """c = u32[] constant(8); d = u32[4,3] broadcast(c), dimensions={}; remainder(a, d)
    => c = u32[] constant(7); d = u32[4,3] broadcast(c), dimensions={}; and(a, d)"""
    i = r.instruction
    x, y = i.operands
    value = _power_of_two(y) if is_whole(i) else None
    if value is None:
        return False
    if type_of(i).kind is TypeKind.UNSIGNED:
        mask = r.number(i, value - 1, type_of(i))
        if not is_scalar(y):
            mask = r.create_like(i, "broadcast", shape_of(y), (mask,), dimensions=())
        return r.replace_with_new(i, "and", (x, mask))
    negative, absolute = _sign_and_abs(r, i, x, r.zeros(shape_of(x)) if sizes(x) else r.scalar_like(x, 0))
    rest = r.create_like(i, "and", shape_of(i), (absolute, r.scalar_like(absolute, value - 1)))
    negated = r.create_like(i, "negate", shape_of(rest), (rest,))
    return r.replace_with_new(i, "select", (negative, negated, rest))


@pattern("remainder", handler="HandleRemainder")
def remainder_of_iota(r: AlgebraRewrite) -> Result:
    """c = s32[] constant(9); b = s32[4,3] broadcast(c), dimensions={}; k = s32[4,3] iota(), iota_dimension=0;
    remainder(k, b) => s32[4,3] iota(), iota_dimension=0"""
    x, y = r.instruction.operands
    c = splat_constant(y)
    value = constant_value(c) if c is not None else None
    if not isinstance(value, int) or x.opcode != "iota":
        return False
    return value >= sizes(x)[x.attributes["iota_dimension"]] and x
