"""Rules about powers, exponentials, roots, extremes and complex numbers."""

from __future__ import annotations

import math

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import xla_changes
from hlotext.ir.values.enums import ComparisonDirection
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import TypeKind
from hlotext.rewrite.passes.algebra.engine import (
    PRED,
    Simplifier,
    array_of,
    constant_value,
    is_all,
    is_constant,
    is_one_element,
    is_scalar,
    rule,
    shape_of,
    sizes,
    splat_constant,
    type_of,
)
from hlotext.rewrite.passes.algebra.sums import is_non_negative

# ---- power, exponential, logarithm, roots


@rule("power", handler="HandlePower")
def power_of_small_number(s: Simplifier, i: Instruction) -> bool:
    """power(x, f2) => multiply(x, x)"""
    x, y = i.operands
    if is_all(y, 0):
        return s.replace_with(i, s.scalar_like(i, 1))
    if is_all(y, 1) and s.replace_if_compatible(i, x):
        return True
    if x.opcode == "exponential" and s.is_loose(xla_changes.ALGSIMP_EXPONENTIALS):
        return s.replace_with_new(
            i, "exponential", (s.create_like(i, "multiply", shape_of(i), (x.operands[0], y)),)
        )
    if is_all(y, 2):
        return s.replace_with_new(i, "multiply", (x, x))
    if is_all(y, 3):
        return s.replace_with_new(i, "multiply", (x, s.create_like(i, "multiply", shape_of(i), (x, x))))
    if is_all(y, -1):
        return s.replace_with_new(i, "divide", (s.scalar_like(x, 1), x))
    return is_all(y, 0.5) and is_non_negative(s, x) and s.replace_with_new(i, "sqrt", (x,))


@rule("exponential", handler="HandleExp")
def exponential_of_zero(s: Simplifier, i: Instruction) -> bool:
    """exponential(f0) => f1"""
    x = i.operands[0]
    c = x if is_constant(x) and is_scalar(x) else splat_constant(x)
    return c is not None and is_all(c, 0) and s.replace_with(i, s.scalar_like(i, 1.0))


@rule("log", handler="HandleLog")
def log_of_exponential(s: Simplifier, i: Instruction) -> bool:
    """fast math: e = exponential(x); log(e) => x"""
    x = i.operands[0]
    return (
        s.is_loose(xla_changes.ALGSIMP_INVERSES)
        and x.opcode == "exponential"
        and s.replace_if_compatible(i, x.operands[0])
    )


@rule("log", handler="HandleLog")
def log_of_power(s: Simplifier, i: Instruction) -> bool:
    """c = power(x, y); log(c) => b = abs(x); l = log(b); m = multiply(l, y); t = pred[4,3] compare(y, f0), direction=EQ;
    select(t, f0, m)"""
    x = i.operands[0]
    if x.opcode != "power":
        return False
    base, exponent = x.operands
    if not type_of(base).is_complex:
        base = s.create_like(i, "abs", shape_of(i), (base,))
    product = s.create_like(
        x, "multiply", shape_of(i), (s.create_like(i, "log", shape_of(i), (base,)), exponent)
    )
    truth = Shape(PRED, sizes(exponent), layout=shape_of(exponent).layout)
    is_zero = s.create(
        "compare", truth, (exponent, s.scalar_like(exponent, 0.0)), direction=ComparisonDirection("EQ")
    )
    return s.replace_with_new(i, "select", (is_zero, s.scalar_like(i, 0.0), product))


@rule("log", handler="HandleLog")
def log_of_root(s: Simplifier, i: Instruction) -> bool:
    """c = sqrt(x); log(c) => l = log(x); multiply(l, fhalf)"""
    x = i.operands[0]
    factor = {"sqrt": 0.5, "rsqrt": -0.5}.get(x.opcode)
    if factor is None:
        return False
    return s.replace_with_new(
        i, "multiply", (s.create_like(i, "log", shape_of(i), x.operands), s.scalar_like(i, factor))
    )


@rule("sqrt", handler="HandleSqrt")
def root_of_square(s: Simplifier, i: Instruction) -> bool:
    """fast math: m = multiply(x, x); sqrt(m) => abs(x)"""
    x = i.operands[0]
    if not s.is_loose(xla_changes.ALGSIMP_INVERSES):
        return False
    if x.opcode != "multiply" or x.operands[0] is not x.operands[1] or type_of(x).is_complex:
        return False
    return s.replace_with_new(i, "abs", (x.operands[0],))


@rule("rsqrt", handler="HandleRsqrt")
def inverse_root_of_inverse(s: Simplifier, i: Instruction) -> bool:
    """e = exponential(x); d = divide(f1, e); rsqrt(d) => e = exponential(x); sqrt(e)"""
    x = i.operands[0]
    if x.opcode == "power" and is_all(x.operands[1], -2) and is_non_negative(s, x.operands[0]):
        return s.replace_with(i, x.operands[0])
    if x.opcode != "divide" or not is_all(x.operands[0], 1) or not is_non_negative(s, x.operands[1]):
        return False
    return s.replace_with_new(i, "sqrt", (x.operands[1],))


@rule("negate", handler="HandleNegate")
def negate_twice(s: Simplifier, i: Instruction) -> bool:
    """c = negate(x); negate(c) => x"""
    x = i.operands[0]
    return x.opcode == "negate" and s.replace_if_compatible(i, x.operands[0])


# ---- largest and smallest

_LARGEST = {"f16", "bf16", "f32", "f64"}


def _extreme(i: Instruction, smallest: bool) -> bool:
    """True if a value is everywhere the smallest or largest of its type (`LiteralUtil::MinValue`, `MaxValue`)."""
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
    return i.operands[0] is i.operands[1] and s.replace_with(i, i.operands[0])


@rule("maximum", "minimum", handler="HandleMaximum")
def extreme_of_extreme_number(s: Simplifier, i: Instruction) -> bool:
    """c = f32[] constant(-inf); b = f32[4,3] broadcast(c), dimensions={}; maximum(x, b) => x"""
    x, y = i.operands
    smallest = i.opcode == "maximum"
    if _extreme(x, smallest):
        return s.replace_with(i, y)
    return _extreme(y, smallest) and s.replace_with(i, x)


@rule("maximum", "minimum", handler="HandleMaximum")
def extreme_twice(s: Simplifier, i: Instruction) -> bool:
    """m = maximum(x, y); maximum(m, y) => maximum(x, y)"""
    x, y = i.operands
    if x.opcode == i.opcode and y in x.operands:
        return s.replace_with(i, x)
    if y.opcode != i.opcode or x not in y.operands:
        return False
    if y.operands[0] is x:
        return s.replace_with(i, y)
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
            return (
                a is not None and b is not None and a < b and s.replace_with_new(i, "clamp", (low, x, high))
            )
    return False


def _is_splat(i: Instruction) -> bool:
    return i.opcode == "broadcast" and is_constant(i.operands[0]) and is_one_element(i.operands[0])


@rule("maximum", handler="HandleMaximum")
def maximum_of_clamp(s: Simplifier, i: Instruction) -> bool:
    """c = clamp(y, x, z); maximum(y, c) => clamp(y, x, z)"""
    for low, clamp in (i.operands, i.operands[::-1]):
        if clamp.opcode == "clamp" and clamp.operands[0] is low:
            return s.replace_if_compatible(i, clamp)
    return False


@rule("maximum", handler="HandleMaximum")
def maximum_of_rising_functions(s: Simplifier, i: Instruction) -> bool:
    """c = tanh(x); d = tanh(y); maximum(c, d) => m = maximum(x, y); tanh(m)"""
    x, y = i.operands
    if x.opcode != y.opcode or x.opcode not in ("cbrt", "erf", "logistic", "tanh"):
        return False
    return s.replace_with_new(i, x.opcode, (s.binary("maximum", x.operands[0], y.operands[0]),))


@rule("clamp", handler="HandleClamp")
def clamp_twice(s: Simplifier, i: Instruction) -> bool:
    """c = clamp(x, y, z); clamp(x, c, z) => clamp(x, y, z)"""
    low, x, high = i.operands
    return (
        x.opcode == "clamp"
        and x.operands[0] is low
        and x.operands[2] is high
        and s.replace_if_compatible(i, x)
    )


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
    return (
        isinstance(value, int)
        and isinstance(number, int)
        and 1 < number <= value + 1
        and s.replace_with(i, x)
    )


# ---- complex numbers


@rule("complex", handler="HandleComplex")
def complex_of_parts(s: Simplifier, i: Instruction) -> bool:
    """c = f32[4,3] real(w); d = f32[4,3] imag(w); c64[4,3] complex(c, d) => w"""
    x, y = i.operands
    fits = x.opcode == "real" and y.opcode == "imag" and x.operands[0] is y.operands[0]
    return fits and s.replace_with(i, x.operands[0])


@rule("real", handler="HandleReal")
def real_of_complex(s: Simplifier, i: Instruction) -> bool:
    """c = c64[4,3] complex(x, y); f32[4,3] real(c) => x"""
    x = i.operands[0]
    if x.opcode == "complex":
        return s.replace_with(i, x.operands[0])
    return not type_of(x).is_complex and s.replace_with(i, x)


@rule("imag", handler="HandleImag")
def imag_of_complex(s: Simplifier, i: Instruction) -> bool:
    """c = c64[4,3] complex(x, y); f32[4,3] imag(c) => y"""
    x = i.operands[0]
    if x.opcode == "complex":
        return s.replace_with(i, x.operands[1])
    return not type_of(x).is_complex and s.replace_with(i, s.zeros(shape_of(i)))
