"""Rules about sums, differences, products, quotients, powers and functions of numbers."""

from __future__ import annotations

import math

import numpy as np

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.enums import ComparisonDirection
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import TypeKind
from hlotext.rewrite.builder import retyped
from hlotext.rewrite.passes.algebra.engine import (
    PRED,
    Simplifier,
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
    one_user,
    rule,
    shape_of,
    sizes,
    splat_constant,
    type_of,
)

# ---- negative or not


def is_non_negative(i: Instruction) -> bool:
    """Whether a value is surely not negative (`IsNonNegative`)."""
    while i.opcode in ("broadcast", "power") and not any(type_of(o).is_complex for o in i.operands):
        i = i.operands[0]
    if any(type_of(o).is_complex for o in i.operands):
        return False
    if i.opcode == "multiply":
        return i.operands[0] is i.operands[1]
    if i.opcode in ("abs", "exponential", "iota"):
        return True
    if i.opcode == "constant":
        value = constant_value(i) if is_one_element(i) else None
        return value is not None and not math.isnan(value) and math.copysign(1, value) > 0
    return False


# ---- abs


@rule("abs", handler="HandleAbs")
def abs_of_non_negative(s: Simplifier, i: Instruction) -> bool:
    """e = exponential(x); abs(e) => exponential(x)"""
    return is_non_negative(i.operands[0]) and s.into(i, i.operands[0])


# ---- add


@rule("add", handler="HandleAdd")
def add_zero(s: Simplifier, i: Instruction) -> bool:
    """add(x, f0) => x"""
    x, y = i.operands
    return (is_all(y, 0) and s.into_same(i, x)) or (is_all(x, 0) and s.into_same(i, y))


@rule("add", handler="HandleAdd")
def add_constant_first(s: Simplifier, i: Instruction) -> bool:
    """c = s32[] constant(3); s32[] add(c, n) => c = s32[] constant(3); s32[] add(n, c)"""
    x, y = i.operands
    return is_constant(x) and not is_constant(y) and s.into_new(i, "add", (y, x))


def _two_constants(x: Instruction, y: Instruction) -> tuple[Instruction, Instruction] | None:
    """Two constants, or the scalars of two splats."""
    if is_constant(x) and is_constant(y):
        return x, y
    a, b = splat_constant(x), splat_constant(y)
    return (a, b) if a is not None and b is not None else None


def _spread(s: Simplifier, i: Instruction, value: Instruction) -> Instruction:
    """A scalar in the shape of an instruction."""
    if is_scalar(value) and not is_scalar(i):
        return s.derive(i, "broadcast", shape_of(i), (value,), dimensions=())
    return value


@rule("add", handler="HandleAdd")
def add_two_constants(s: Simplifier, i: Instruction) -> bool:
    """a = add(x, f1); add(a, f2) => c = f32[] add(f1.c, f2.c); b = f32[4,3] broadcast(c), dimensions={}; add(x, b)"""
    x, y = i.operands
    if x.opcode != "add" or is_constant(x.operands[0]):
        return False
    both = _two_constants(x.operands[1], y)
    if both is None:
        return False
    return s.into_new(i, "add", (x.operands[0], _spread(s, i, s.binary("add", *both))))


@rule("add", handler="HandleAdd")
def add_constant_to_difference(s: Simplifier, i: Instruction) -> bool:
    """a = subtract(f1, x); add(a, f2)
    => c = f32[] add(f1.c, f2.c); b = f32[4,3] broadcast(c), dimensions={}; subtract(b, x)"""
    x, y = i.operands
    if x.opcode != "subtract" or is_constant(x.operands[1]):
        return False
    both = _two_constants(x.operands[0], y)
    if both is None:
        return False
    return s.into_new(i, "subtract", (_spread(s, i, s.binary("add", *both)), x.operands[1]))


@rule("add", handler="HandleAdd")
def add_to_difference(s: Simplifier, i: Instruction) -> bool:
    """d = subtract(i, j); add(j, d) => i"""
    if not (is_whole(i) or s.options.enable_fast_math):
        return False
    for x, y in (i.operands, i.operands[::-1]):
        if y.opcode == "subtract" and y.operands[1] is x:
            return s.into_same(i, y.operands[0])
    return False


@rule("add", handler="HandleAdd")
def add_to_update_of_zero(s: Simplifier, i: Instruction) -> bool:
    """v = f32[1,3] slice(y), slice={[0:1], [0:3]};
    d = f32[4,3] dynamic-update-slice(f0, v, n, n); add(x, d) => v = f32[1,3] slice(y), slice={[0:1], [0:3]};
    e = f32[1,3] dynamic-slice(x, n, n), dynamic_slice_sizes={1,3}; g = f32[1,3] add(e, v);
    f32[4,3] dynamic-update-slice(x, g, n, n)"""
    for x, y in (i.operands, i.operands[::-1]):
        if y.opcode != "dynamic-update-slice" or y.operands[0].opcode != "broadcast":
            continue
        zero = y.operands[0].operands[0]
        if not (is_constant(zero) and is_one_element(zero) and is_all(zero, 0)):
            continue
        part, starts = y.operands[1], y.operands[2:]
        sliced = s.derive(x, "dynamic-slice", shape_of(part), (x, *starts), dynamic_slice_sizes=sizes(part))
        total = s.derive(y, "add", shape_of(part), (sliced, part))
        return s.into_new(i, "dynamic-update-slice", (x, total, *starts), shape_of(x))
    return False


@rule("add", handler="HandleAdd")
def add_products(s: Simplifier, i: Instruction) -> bool:
    """k = multiply(i, j); l = multiply(j, j); add(k, l) => a = add(i, j); multiply(a, j)"""
    x, y = i.operands
    if x.opcode != "multiply" or y.opcode != "multiply" or not (one_user(x) and one_user(y)):
        return False
    for a, c in (x.operands, x.operands[::-1]):
        if c not in y.operands or not (is_whole(i) or is_power_of_two(c)):
            continue
        b = y.operands[1] if y.operands[0] is c else y.operands[0]
        total = s.derive(x, "add", shape_of(i), (a, b))
        return s.into_new(i, "multiply", (total, c))
    return False


def is_power_of_two(i: Instruction) -> bool:
    """Whether a value is everywhere one power of two (`IsAllFpConstantPowerOf2`)."""
    c = i.operands[0] if i.opcode == "broadcast" else i
    value = constant_value(c) if is_constant(c) and is_one_element(c) else None
    return value is not None and math.isfinite(value) and abs(math.frexp(value)[0]) == 0.5


@rule("add", handler="HandleAdd")
def add_into_scatter(s: Simplifier, i: Instruction) -> bool:
    """k = s32[2,1] constant({{0}, {1}}); u = f32[2,3] slice(y), slice={[0:2], [0:3]};
    c = scatter(f0, k, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
    index_vector_dim=1, to_apply=sum; add(x, c)
    => k = s32[2,1] constant({{0}, {1}}); u = f32[2,3] slice(y), slice={[0:2], [0:3]};
    a = add(x, f0); scatter(a, k, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
    index_vector_dim=1, to_apply=sum"""
    if s.options.is_layout_sensitive:
        return False
    x, y = i.operands
    of_x, of_y = _is_sum_scatter(x), _is_sum_scatter(y)
    if of_x and of_y:
        return False
    scatter, other = (y, x) if of_y else (x, y)
    if not (of_x or of_y):
        return False
    pair = (other, scatter.operands[0]) if of_y else (scatter.operands[0], other)
    total = s.binary("add", *pair)
    return s.set_operands(scatter, (total, *scatter.operands[1:])) and s.into(i, scatter)


def _is_sum_scatter(i: Instruction) -> bool:
    if i.opcode != "scatter" or len(i.operands) != 3 or not one_use(i) or not i.called_computations:
        return False
    root = i.called_computations[0].root
    return root.opcode == "add" and all(o.opcode == "parameter" for o in root.operands)


# ---- subtract


@rule("subtract", handler="HandleSubtract")
def subtract_self(s: Simplifier, i: Instruction) -> bool:
    """subtract(i, i) => i0"""
    x, y = i.operands
    return x is y and (is_whole(i) or s.options.enable_fast_math) and s.into(i, s.scalar_like(i, 0))


@rule("subtract", handler="HandleSubtract")
def subtract_zero(s: Simplifier, i: Instruction) -> bool:
    """subtract(x, f0) => x"""
    return is_all(i.operands[1], 0) and s.into_same(i, i.operands[0])


@rule("subtract", handler="HandleSubtract")
def subtract_constant(s: Simplifier, i: Instruction) -> bool:
    """subtract(x, f2) => m = f32[] negate(f2.c); b = f32[4,3] broadcast(m), dimensions={}; add(x, b)"""
    x, y = i.operands
    if is_constant(x):
        return False
    if is_constant(y):
        negative = s.derive(y, "negate", shape_of(y), (y,))
    elif y.opcode == "broadcast" and is_constant(y.operands[0]):
        c = y.operands[0]
        negative = s.derive(c, "negate", shape_of(c), (c,))
        negative = s.derive(c, "broadcast", shape_of(y), (negative,), dimensions=dims(y))
    else:
        return False
    return s.into_new(i, "add", (x, negative))


@rule("subtract", handler="HandleSubtract")
def subtract_difference(s: Simplifier, i: Instruction) -> bool:
    """d = subtract(i, j); subtract(i, d) => j"""
    x, y = i.operands
    fits = y.opcode == "subtract" and y.operands[0] is x and (is_whole(i) or s.options.enable_fast_math)
    return fits and s.into_same(i, y.operands[1])


@rule("subtract", handler="HandleSubtract")
def subtract_sum(s: Simplifier, i: Instruction) -> bool:
    """t = add(i, j); subtract(i, t) => negate(j)"""
    x, y = i.operands
    if y.opcode != "add" or x not in y.operands or not (is_whole(i) or s.options.enable_fast_math):
        return False
    return s.into_new(i, "negate", (y.operands[1] if y.operands[0] is x else y.operands[0],))


@rule("subtract", handler="HandleSubtract")
def subtract_from_sum(s: Simplifier, i: Instruction) -> bool:
    """t = add(i, j); subtract(t, j) => i"""
    x, y = i.operands
    if x.opcode != "add" or y not in x.operands or not (is_whole(i) or s.options.enable_fast_math):
        return False
    return s.into_same(i, x.operands[0] if x.operands[1] is y else x.operands[1])


# ---- multiply


@rule("multiply", handler="HandleMultiply")
def multiply_one(s: Simplifier, i: Instruction) -> bool:
    """multiply(x, f1) => x"""
    x, y = i.operands
    return (is_all(y, 1) and s.into_same(i, x)) or (is_all(x, 1) and s.into_same(i, y))


@rule("multiply", handler="HandleMultiply")
def multiply_zero(s: Simplifier, i: Instruction) -> bool:
    """multiply(i, i0) => i0"""
    x, y = i.operands
    if not (is_whole(i) or s.options.enable_fast_math):
        return False
    return (is_all(x, 0) and s.into_same(i, x)) or (is_all(y, 0) and s.into_same(i, y))


@rule("multiply", handler="HandleMultiply")
def multiply_negated(s: Simplifier, i: Instruction) -> bool:
    """c = negate(x); d = negate(y); multiply(c, d) => multiply(x, y)"""
    x, y = i.operands
    if x.opcode != "negate" or y.opcode != "negate":
        return False
    return s.set_operands(i, (x.operands[0], y.operands[0]))


@rule("multiply", handler="HandleMultiply")
def multiply_abs(s: Simplifier, i: Instruction) -> bool:
    """c = abs(x); multiply(c, c) => multiply(x, x)"""
    x, y = i.operands
    if x is not y or x.opcode != "abs" or type_of(x.operands[0]).is_complex:
        return False
    return s.set_operands(i, (x.operands[0], x.operands[0]))


@rule("multiply", handler="HandleMultiply")
def multiply_truth(s: Simplifier, i: Instruction) -> bool:
    """c = f32[4,3] convert(p); multiply(x, c) => select(p, x, f0)"""
    for x, y in (i.operands, i.operands[::-1]):
        if y.opcode == "convert" and is_pred(y.operands[0]):
            return s.into_new(i, "select", (y.operands[0], x, s.zeros(shape_of(i))))
    return False


def _times_constant(i: Instruction) -> tuple[Instruction, Instruction] | None:
    """A factor that is no constant and one that is."""
    if i.opcode == "multiply":
        for x, c in (i.operands, i.operands[::-1]):
            if is_constant(c) and not is_constant(x):
                return x, c
    return None


@rule("multiply", handler="HandleMultiply")
def multiply_two_products(s: Simplifier, i: Instruction) -> bool:
    """c = s32[] constant(3); d = s32[] multiply(n, c); s32[] multiply(d, d)
    => c = s32[] constant(3); e = s32[] multiply(n, n); g = s32[] multiply(c, c); s32[] multiply(e, g)"""
    first, second = map(_times_constant, i.operands)
    if first is None or second is None:
        return False
    product = _spread(s, i, s.binary("multiply", first[1], second[1]))
    return s.into_new(i, "multiply", (s.derive(i, "multiply", shape_of(i), (first[0], second[0])), product))


@rule("multiply", handler="HandleMultiply")
def multiply_two_constants(s: Simplifier, i: Instruction) -> bool:
    """c = s32[] constant(3); k = s32[] constant(5); d = s32[] multiply(n, c); s32[] multiply(d, k)
    => c = s32[] constant(3); k = s32[] constant(5); g = s32[] multiply(c, k); s32[] multiply(n, g)"""
    for x, c in (i.operands, i.operands[::-1]):
        first = _times_constant(x)
        if first is not None and is_constant(c):
            return s.into_new(i, "multiply", (first[0], _spread(s, i, s.binary("multiply", first[1], c))))
    return False


@rule("multiply", handler="HandleMultiply")
def multiply_constant_and_broadcast(s: Simplifier, i: Instruction) -> bool:
    """b = f32[4,3] broadcast(s), dimensions={}; m = multiply(x, f2); multiply(m, b)
    => c = f32[] multiply(s, f2.c); b = f32[4,3] broadcast(c), dimensions={}; multiply(x, b)"""
    for x, op in (i.operands, i.operands[::-1]):
        if x.opcode != "multiply" or op.opcode != "broadcast" or is_constant(op.operands[0]):
            continue
        for a, c in (x.operands, x.operands[::-1]):
            constant = c if is_constant(c) else c.operands[0] if c.opcode == "broadcast" else None
            if is_constant(a) or constant is None or not is_constant(constant) or not is_scalar(constant):
                continue
            b = op.operands[0]
            if not is_scalar(b):
                constant = s.derive(i, "broadcast", shape_of(b), (constant,), dimensions=())
            product = s.derive(i, "multiply", shape_of(b), (b, constant))
            spread = s.derive(i, "broadcast", shape_of(i), (product,), dimensions=dims(op))
            return s.into_new(i, "multiply", (a, spread))
    return False


@rule("multiply", handler="HandleMultiply")
def multiply_two_splats(s: Simplifier, i: Instruction) -> bool:
    """m = multiply(x, fhalf); multiply(m, f2)
    => c = f32[] multiply(fhalf.c, f2.c); b = f32[4,3] broadcast(c), dimensions={}; multiply(x, b)"""
    x, y = i.operands
    if x.opcode != "multiply":
        return False
    both = _two_constants(x.operands[1], y)
    if both is None or (is_constant(y) and is_constant(x.operands[0])):
        return False
    return s.into_new(i, "multiply", (x.operands[0], _spread(s, i, s.binary("multiply", *both))))


@rule("multiply", handler="HandleMultiply")
def multiply_exponentials(s: Simplifier, i: Instruction) -> bool:
    """c = exponential(x); d = exponential(y); multiply(c, d) => a = add(x, y); exponential(a)"""
    x, y = i.operands
    if x.opcode != "exponential" or y.opcode != "exponential":
        return False
    total = s.derive(i, "add", shape_of(i), (x.operands[0], y.operands[0]))
    return s.into_new(i, "exponential", (total,))


@rule("multiply", handler="HandleMultiply")
def multiply_roots(s: Simplifier, i: Instruction) -> bool:
    """e = exponential(x); c = sqrt(e); multiply(c, c) => exponential(x)"""
    x, y = i.operands
    if x.opcode != y.opcode or x.opcode not in ("sqrt", "rsqrt") or x.operands[0] is not y.operands[0]:
        return False
    inner = x.operands[0]
    if not is_non_negative(inner):
        return False
    if x.opcode == "sqrt":
        return s.into(i, inner)
    return s.into_new(i, "divide", (s.scalar_like(inner, 1), inner))


# ---- divide


def _power_of_two(i: Instruction) -> int | None:
    """The power of two that divides everywhere, if it is one."""
    c = i.operands[0] if i.opcode == "broadcast" else i
    value = constant_value(c) if is_constant(c) and is_one_element(c) else None
    if not isinstance(value, int) or value <= 0 or value & (value - 1):
        return None
    return value


@rule("divide", handler="HandleDivide")
def divide_by_one(s: Simplifier, i: Instruction) -> bool:
    """divide(x, f1) => x"""
    return is_all(i.operands[1], 1) and s.into_same(i, i.operands[0])


@rule("divide", handler="HandleDivide")
def divide_by_power_of_two(s: Simplifier, i: Instruction) -> bool:
    """c = u32[] constant(8); d = u32[4,3] broadcast(c), dimensions={}; divide(a, d)
    => c = u32[] constant(3); d = u32[4,3] broadcast(c), dimensions={}; shift-right-logical(a, d)"""
    x, y = i.operands
    value = _power_of_two(y) if is_whole(i) else None
    if value is None:
        return False
    if type_of(i).kind is TypeKind.UNSIGNED:
        return s.into_new(i, "shift-right-logical", (x, s.scalar_like(x, value.bit_length() - 1)))
    negative, absolute = _sign_and_abs(s, i, x, s.scalar_like(x, 0))
    shift = s.scalar_like(absolute, value.bit_length() - 1)
    quotient = s.derive(i, "shift-right-logical", shape_of(i), (absolute, shift))
    negated = s.derive(i, "negate", shape_of(quotient), (quotient,))
    return s.into_new(i, "select", (negative, negated, quotient))


def _sign_and_abs(
    s: Simplifier, i: Instruction, x: Instruction, zero: Instruction
) -> tuple[Instruction, Instruction]:
    """Where a whole number is negative, and its absolute value."""
    truth = retyped(shape_of(x), PRED)
    negative = s.derive(i, "compare", truth, (x, zero), direction=ComparisonDirection("LT"))
    negated = s.derive(i, "negate", shape_of(x), (x,))
    return negative, s.derive(i, "select", shape_of(x), (negative, negated, x))


@rule("divide", handler="HandleDivide")
def divide_exponentials(s: Simplifier, i: Instruction) -> bool:
    """c = exponential(x); d = exponential(y); divide(c, d) => a = subtract(x, y); exponential(a)"""
    x, y = i.operands
    if x.opcode != "exponential" or y.opcode != "exponential":
        return False
    return s.into_new(
        i, "exponential", (s.derive(i, "subtract", shape_of(i), (x.operands[0], y.operands[0])),)
    )


@rule("divide", handler="HandleDivide")
def divide_by_exponential(s: Simplifier, i: Instruction) -> bool:
    """d = exponential(y); divide(x, d) => m = negate(y); e = exponential(m); multiply(x, e)"""
    x, y = i.operands
    if y.opcode != "exponential":
        return False
    negated = s.derive(i, "negate", shape_of(i), (y.operands[0],))
    return s.into_new(i, "multiply", (x, s.derive(y, "exponential", shape_of(i), (negated,))))


@rule("divide", handler="HandleDivide")
def divide_by_power(s: Simplifier, i: Instruction) -> bool:
    """d = power(y, z); divide(x, d) => m = negate(z); e = power(y, m); multiply(x, e)"""
    x, y = i.operands
    if y.opcode != "power":
        return False
    base, exponent = y.operands
    negated = s.derive(y, "negate", shape_of(exponent), (exponent,))
    return s.into_new(i, "multiply", (x, s.derive(y, "power", shape_of(base), (base, negated))))


@rule("divide", handler="HandleDivide")
def divide_by_root(s: Simplifier, i: Instruction) -> bool:
    """d = sqrt(y); divide(x, d) => e = rsqrt(y); multiply(x, e)"""
    x, y = i.operands
    other = {"sqrt": "rsqrt", "rsqrt": "sqrt"}.get(y.opcode)
    if other is None or not one_use(y):
        return False
    return s.into_new(i, "multiply", (x, s.derive(y, other, shape_of(i), y.operands)))


@rule("divide", handler="HandleDivide")
def divide_by_constant(s: Simplifier, i: Instruction) -> bool:
    """divide(x, f2) => c = f32[] constant(0.5); b = f32[4,3] broadcast(c), dimensions={}; multiply(x, b)"""
    x, y = i.operands
    c = y.operands[0] if y.opcode == "broadcast" else y
    array = array_of(c)
    if (
        is_whole(i)
        or is_constant(x)
        or array is None
        or not (type_of(c).is_floating or type_of(c).is_complex)
    ):
        return False
    wide = array.astype(np.float32) if array.dtype.itemsize < 4 else array
    with np.errstate(all="ignore"):
        values = np.asarray(wide.dtype.type(1) / wide).astype(array.dtype).reshape(array.shape)
    shape = shape_of(c)
    inverse = s.derive(c, "constant", shape, literal=Literal.from_array(values, shape))
    if y is not c:
        inverse = s.derive(y, "broadcast", shape_of(y), (inverse,), dimensions=dims(y))
    return s.into(i, s.binary("multiply", x, inverse))


@rule("divide", handler="HandleDivide")
def divide_by_broadcast(s: Simplifier, i: Instruction) -> bool:
    """cpu: b = f32[4,3] broadcast(s), dimensions={}; divide(x, b)
    => c = f32[] constant(1); d = f32[] divide(c, s); b = f32[4,3] broadcast(d), dimensions={}; multiply(x, b)"""
    x, y = i.operands
    if is_whole(i) or not s.options.executing_on_cpu or type_of(i).is_complex:
        return False
    if y.opcode != "broadcast" or not one_use(y.operands[0]):
        return False
    inner = y.operands[0]
    inverse = s.derive(y, "divide", shape_of(inner), (s.scalar_like(inner, 1), inner))
    return s.into_new(
        i, "multiply", (x, s.derive(y, "broadcast", shape_of(i), (inverse,), dimensions=dims(y)))
    )


@rule("divide", handler="HandleDivide")
def divide_quotients(s: Simplifier, i: Instruction) -> bool:
    """c = divide(x, y); divide(c, z) => m = multiply(y, z); divide(x, m)"""
    x, y = i.operands
    if is_whole(i) or (x.opcode != "divide" and y.opcode != "divide"):
        return False
    if x.opcode == "divide" and y.opcode == "divide":
        over, under = (
            s.binary("multiply", x.operands[0], y.operands[1]),
            s.binary("multiply", x.operands[1], y.operands[0]),
        )
    elif x.opcode == "divide":
        over, under = x.operands[0], s.binary("multiply", x.operands[1], y)
    else:
        over, under = s.binary("multiply", x, y.operands[1]), y.operands[0]
    return s.into(i, s.binary("divide", over, under))


@rule("divide", handler="HandleDivide")
def divide_truth(s: Simplifier, i: Instruction) -> bool:
    """b = f32[4,3] broadcast(s), dimensions={}; c = f32[4,3] convert(p); divide(c, b)
    => k = f32[] constant(1); d = f32[] divide(k, s); b = f32[4,3] broadcast(d), dimensions={};
    c = f32[4,3] convert(p); multiply(b, c)"""
    x, y = i.operands
    if is_whole(i) or x.opcode != "convert" or not is_pred(x.operands[0]):
        return False
    if y.opcode != "broadcast" or not is_scalar(y.operands[0]):
        return False
    inner = y.operands[0]
    inverse = s.binary("divide", s.scalar_like(inner, 1), inner)
    spread = s.derive(y, "broadcast", shape_of(i), (inverse,), dimensions=())
    return s.into(i, s.binary("multiply", spread, x))


# ---- remainder


@rule("remainder", handler="HandleRemainder")
def remainder_twice(s: Simplifier, i: Instruction) -> bool:
    """r = remainder(i, j); remainder(r, j) => remainder(i, j)"""
    x, y = i.operands
    return x.opcode == "remainder" and x.operands[1] is y and s.into(i, x)


@rule("remainder", handler="HandleRemainder")
def remainder_of_power_of_two(s: Simplifier, i: Instruction) -> bool:
    """c = u32[] constant(8); d = u32[4,3] broadcast(c), dimensions={}; remainder(a, d)
    => c = u32[] constant(7); d = u32[4,3] broadcast(c), dimensions={}; and(a, d)"""
    x, y = i.operands
    value = _power_of_two(y) if is_whole(i) else None
    if value is None:
        return False
    if type_of(i).kind is TypeKind.UNSIGNED:
        mask = s.number(i, value - 1, type_of(i))
        if not is_scalar(y):
            mask = s.derive(i, "broadcast", shape_of(y), (mask,), dimensions=())
        return s.into_new(i, "and", (x, mask))
    negative, absolute = _sign_and_abs(s, i, x, s.zeros(shape_of(x)) if sizes(x) else s.scalar_like(x, 0))
    rest = s.derive(i, "and", shape_of(i), (absolute, s.scalar_like(absolute, value - 1)))
    negated = s.derive(i, "negate", shape_of(rest), (rest,))
    return s.into_new(i, "select", (negative, negated, rest))


@rule("remainder", handler="HandleRemainder")
def remainder_of_iota(s: Simplifier, i: Instruction) -> bool:
    """c = s32[] constant(9); b = s32[4,3] broadcast(c), dimensions={}; k = s32[4,3] iota(), iota_dimension=0;
    remainder(k, b) => s32[4,3] iota(), iota_dimension=0"""
    x, y = i.operands
    c = splat_constant(y)
    value = constant_value(c) if c is not None else None
    if not isinstance(value, int) or x.opcode != "iota":
        return False
    return value >= sizes(x)[x.attributes["iota_dimension"]] and s.into(i, x)


# ---- power, exponential, logarithm, roots


@rule("power", handler="HandlePower")
def power_of_small_number(s: Simplifier, i: Instruction) -> bool:
    """power(x, f2) => multiply(x, x)"""
    x, y = i.operands
    if is_all(y, 0):
        return s.into(i, s.scalar_like(i, 1))
    if is_all(y, 1) and s.into_same(i, x):
        return True
    if x.opcode == "exponential":
        return s.into_new(i, "exponential", (s.derive(i, "multiply", shape_of(i), (x.operands[0], y)),))
    if is_all(y, 2):
        return s.into_new(i, "multiply", (x, x))
    if is_all(y, 3):
        return s.into_new(i, "multiply", (x, s.derive(i, "multiply", shape_of(i), (x, x))))
    if is_all(y, -1):
        return s.into_new(i, "divide", (s.scalar_like(x, 1), x))
    return is_all(y, 0.5) and is_non_negative(x) and s.into_new(i, "sqrt", (x,))


@rule("exponential", handler="HandleExp")
def exponential_of_zero(s: Simplifier, i: Instruction) -> bool:
    """exponential(f0) => f1"""
    x = i.operands[0]
    c = x if is_constant(x) and is_scalar(x) else splat_constant(x)
    return c is not None and is_all(c, 0) and s.into(i, s.scalar_like(i, 1.0))


@rule("log", handler="HandleLog")
def log_of_exponential(s: Simplifier, i: Instruction) -> bool:
    """e = exponential(x); log(e) => x"""
    x = i.operands[0]
    return x.opcode == "exponential" and s.into_same(i, x.operands[0])


@rule("log", handler="HandleLog")
def log_of_power(s: Simplifier, i: Instruction) -> bool:
    """c = power(x, y); log(c) => b = abs(x); l = log(b); m = multiply(l, y); t = pred[4,3] compare(y, f0), direction=EQ;
    select(t, f0, m)"""
    x = i.operands[0]
    if x.opcode != "power":
        return False
    base, exponent = x.operands
    if not type_of(base).is_complex:
        base = s.derive(i, "abs", shape_of(i), (base,))
    product = s.derive(x, "multiply", shape_of(i), (s.derive(i, "log", shape_of(i), (base,)), exponent))
    truth = Shape(PRED, sizes(exponent), layout=shape_of(exponent).layout)
    is_zero = s.make(
        "compare", truth, (exponent, s.scalar_like(exponent, 0.0)), direction=ComparisonDirection("EQ")
    )
    return s.into_new(i, "select", (is_zero, s.scalar_like(i, 0.0), product))


@rule("log", handler="HandleLog")
def log_of_root(s: Simplifier, i: Instruction) -> bool:
    """c = sqrt(x); log(c) => l = log(x); multiply(l, fhalf)"""
    x = i.operands[0]
    factor = {"sqrt": 0.5, "rsqrt": -0.5}.get(x.opcode)
    if factor is None:
        return False
    return s.into_new(i, "multiply", (s.derive(i, "log", shape_of(i), x.operands), s.scalar_like(i, factor)))


@rule("sqrt", handler="HandleSqrt")
def root_of_square(s: Simplifier, i: Instruction) -> bool:
    """m = multiply(x, x); sqrt(m) => abs(x)"""
    x = i.operands[0]
    if x.opcode != "multiply" or x.operands[0] is not x.operands[1] or type_of(x).is_complex:
        return False
    return s.into_new(i, "abs", (x.operands[0],))


@rule("rsqrt", handler="HandleRsqrt")
def inverse_root_of_inverse(s: Simplifier, i: Instruction) -> bool:
    """e = exponential(x); d = divide(f1, e); rsqrt(d) => e = exponential(x); sqrt(e)"""
    x = i.operands[0]
    if x.opcode == "power" and is_all(x.operands[1], -2) and is_non_negative(x.operands[0]):
        return s.into(i, x.operands[0])
    if x.opcode != "divide" or not is_all(x.operands[0], 1) or not is_non_negative(x.operands[1]):
        return False
    return s.into_new(i, "sqrt", (x.operands[1],))


@rule("negate", handler="HandleNegate")
def negate_twice(s: Simplifier, i: Instruction) -> bool:
    """c = negate(x); negate(c) => x"""
    x = i.operands[0]
    return x.opcode == "negate" and s.into_same(i, x.operands[0])


# ---- largest and smallest

_LARGEST = {"f16", "bf16", "f32", "f64"}


def _extreme(i: Instruction, smallest: bool) -> bool:
    """Whether a value is everywhere the smallest or largest of its type (`LiteralUtil::MinValue`, `MaxValue`)."""
    type_ = type_of(i)
    if type_.is_integral:
        low = -(1 << (type_.bits - 1)) if type_.kind is TypeKind.SIGNED else 0
        high = (1 << (type_.bits - 1)) - 1 if type_.kind is TypeKind.SIGNED else (1 << type_.bits) - 1
        while i.opcode == "broadcast":
            i = i.operands[0]
        array = array_of(i)
        if array is None or not array.size:
            return False
        return int(array.reshape(-1)[0]) == (low if smallest else high) and bool(
            (array == array.reshape(-1)[0]).all()
        )
    return type_.name in _LARGEST and is_all(i, -math.inf if smallest else math.inf)


@rule("maximum", "minimum", handler="HandleMaximum")
def extreme_of_self(s: Simplifier, i: Instruction) -> bool:
    """maximum(x, x) => x"""
    return i.operands[0] is i.operands[1] and s.into(i, i.operands[0])


@rule("maximum", "minimum", handler="HandleMaximum")
def extreme_of_extreme_number(s: Simplifier, i: Instruction) -> bool:
    """c = f32[] constant(-inf); b = f32[4,3] broadcast(c), dimensions={}; maximum(x, b) => x"""
    x, y = i.operands
    smallest = i.opcode == "maximum"
    if _extreme(x, smallest):
        return s.into(i, y)
    return _extreme(y, smallest) and s.into(i, x)


@rule("maximum", "minimum", handler="HandleMaximum")
def extreme_twice(s: Simplifier, i: Instruction) -> bool:
    """m = maximum(x, y); maximum(m, y) => maximum(x, y)"""
    x, y = i.operands
    if x.opcode == i.opcode and y in x.operands:
        return s.into(i, x)
    if y.opcode != i.opcode or x not in y.operands:
        return False
    if y.operands[0] is x:
        return s.into(i, y)
    return s.set_operands(i, (x, y.operands[0]))


@rule("maximum", "minimum", handler="HandleMaximum")
def extremes_to_clamp(s: Simplifier, i: Instruction) -> bool:
    """m = minimum(x, f2); maximum(m, f1) => clamp(f1, x, f2)"""
    other = "minimum" if i.opcode == "maximum" else "maximum"
    for outer, inner in (i.operands, i.operands[::-1]):
        if inner.opcode != other or not _is_splat(outer):
            continue
        for x, bound in (inner.operands, inner.operands[::-1]):
            if not _is_splat(bound):
                continue
            low, high = (outer, bound) if i.opcode == "maximum" else (bound, outer)
            a, b = constant_value(low.operands[0]), constant_value(high.operands[0])
            return a is not None and b is not None and a < b and s.into_new(i, "clamp", (low, x, high))
    return False


def _is_splat(i: Instruction) -> bool:
    return i.opcode == "broadcast" and is_constant(i.operands[0]) and is_one_element(i.operands[0])


@rule("maximum", handler="HandleMaximum")
def maximum_of_clamp(s: Simplifier, i: Instruction) -> bool:
    """c = clamp(y, x, z); maximum(y, c) => clamp(y, x, z)"""
    for low, clamp in (i.operands, i.operands[::-1]):
        if clamp.opcode == "clamp" and clamp.operands[0] is low:
            return s.into_same(i, clamp)
    return False


@rule("maximum", handler="HandleMaximum")
def maximum_of_rising_functions(s: Simplifier, i: Instruction) -> bool:
    """c = tanh(x); d = tanh(y); maximum(c, d) => m = maximum(x, y); tanh(m)"""
    x, y = i.operands
    if x.opcode != y.opcode or x.opcode not in ("cbrt", "erf", "logistic", "tanh"):
        return False
    return s.into_new(i, x.opcode, (s.binary("maximum", x.operands[0], y.operands[0]),))


@rule("clamp", handler="HandleClamp")
def clamp_twice(s: Simplifier, i: Instruction) -> bool:
    """c = clamp(x, y, z); clamp(x, c, z) => clamp(x, y, z)"""
    low, x, high = i.operands
    return x.opcode == "clamp" and x.operands[0] is low and x.operands[2] is high and s.into_same(i, x)


@rule("clamp", handler="HandleClamp")
def clamp_of_partition(s: Simplifier, i: Instruction) -> bool:
    """partitions=4: k = u32[] partition-id(); z = u32[] constant(0); h = u32[] constant(3); u32[] clamp(z, k, h)
    => u32[] partition-id()"""
    low, x, high = i.operands
    if x.opcode not in ("partition-id", "replica-id") or not is_constant(low) or not is_all(low, 0):
        return False
    value = constant_value(high) if is_constant(high) else None
    name = "num_partitions" if x.opcode == "partition-id" else "replica_count"
    number = s.module.attributes.get(name, 1)
    return isinstance(value, int) and isinstance(number, int) and 1 < number <= value + 1 and s.into(i, x)


# ---- complex numbers


@rule("complex", handler="HandleComplex")
def complex_of_parts(s: Simplifier, i: Instruction) -> bool:
    """c = f32[4,3] real(w); d = f32[4,3] imag(w); c64[4,3] complex(c, d) => w"""
    x, y = i.operands
    fits = x.opcode == "real" and y.opcode == "imag" and x.operands[0] is y.operands[0]
    return fits and s.into(i, x.operands[0])


@rule("real", handler="HandleReal")
def real_of_complex(s: Simplifier, i: Instruction) -> bool:
    """c = c64[4,3] complex(x, y); f32[4,3] real(c) => x"""
    x = i.operands[0]
    if x.opcode == "complex":
        return s.into(i, x.operands[0])
    return not type_of(x).is_complex and s.into(i, x)


@rule("imag", handler="HandleImag")
def imag_of_complex(s: Simplifier, i: Instruction) -> bool:
    """c = c64[4,3] complex(x, y); f32[4,3] imag(c) => y"""
    x = i.operands[0]
    if x.opcode == "complex":
        return s.into(i, x.operands[1])
    return not type_of(x).is_complex and s.into(i, s.zeros(shape_of(i)))
