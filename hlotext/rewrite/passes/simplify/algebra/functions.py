"""Rules about powers, exponentials, roots, extremes and complex numbers."""

from __future__ import annotations

import math

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import xla_changes
from hlotext.ir.values.enums import ComparisonDirection
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import TypeKind
from hlotext.rewrite.kit.facts import (
    PRED,
    array_of,
    constant_value,
    is_all,
    is_constant,
    is_one_element,
    is_scalar,
    shape_of,
    sizes,
    splat_constant,
    type_of,
)
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite
from hlotext.rewrite.passes.simplify.algebra.sums import is_non_negative

# ---- power, exponential, logarithm, roots


@pattern("power", handler="HandlePower")
def power_of_small_number(r: AlgebraRewrite) -> Result:
    """power(x, f2) => multiply(x, x)"""
    i = r.instruction
    x, y = i.operands
    if is_all(y, 0):
        return r.scalar_like(i, 1)
    if is_all(y, 1) and r.replace_if_compatible(i, x):
        return True
    if x.opcode == "exponential" and r.is_loose(xla_changes.ALGSIMP_EXPONENTIALS):
        return r.replace_with_new(
            i, "exponential", (r.create_like(i, "multiply", shape_of(i), (x.operands[0], y)),)
        )
    if is_all(y, 2):
        return r.replace_with_new(i, "multiply", (x, x))
    if is_all(y, 3):
        return r.replace_with_new(i, "multiply", (x, r.create_like(i, "multiply", shape_of(i), (x, x))))
    if is_all(y, -1):
        return r.replace_with_new(i, "divide", (r.scalar_like(x, 1), x))
    return is_all(y, 0.5) and is_non_negative(r, x) and r.replace_with_new(i, "sqrt", (x,))


@pattern("exponential", handler="HandleExp")
def exponential_of_zero(r: AlgebraRewrite) -> Result:
    """exponential(f0) => f1"""
    x = r.instruction.operands[0]
    c = x if is_constant(x) and is_scalar(x) else splat_constant(x)
    return c is not None and is_all(c, 0) and r.scalar_like(r.instruction, 1.0)


@pattern("log", handler="HandleLog")
def log_of_exponential(r: AlgebraRewrite) -> Result:
    """fast math: e = exponential(x); log(e) => x"""
    x = r.instruction.operands[0]
    return (
        r.is_loose(xla_changes.ALGSIMP_INVERSES)
        and x.opcode == "exponential"
        and r.replace_if_compatible(r.instruction, x.operands[0])
    )


@pattern("log", handler="HandleLog")
def log_of_power(r: AlgebraRewrite) -> Result:
    """c = power(x, y); log(c) => b = abs(x); l = log(b); m = multiply(l, y); t = pred[4,3] compare(y, f0), direction=EQ;
    select(t, f0, m)"""
    i = r.instruction
    x = i.operands[0]
    if x.opcode != "power":
        return False
    base, exponent = x.operands
    if not type_of(base).is_complex:
        base = r.create_like(i, "abs", shape_of(i), (base,))
    product = r.create_like(
        x, "multiply", shape_of(i), (r.create_like(i, "log", shape_of(i), (base,)), exponent)
    )
    truth = Shape(PRED, sizes(exponent), layout=shape_of(exponent).layout)
    is_zero = r.create(
        "compare", truth, (exponent, r.scalar_like(exponent, 0.0)), direction=ComparisonDirection("EQ")
    )
    return r.replace_with_new(i, "select", (is_zero, r.scalar_like(i, 0.0), product))


@pattern("log", handler="HandleLog")
def log_of_root(r: AlgebraRewrite) -> Result:
    """c = sqrt(x); log(c) => l = log(x); multiply(l, fhalf)"""
    i = r.instruction
    x = i.operands[0]
    factor = {"sqrt": 0.5, "rsqrt": -0.5}.get(x.opcode)
    if factor is None:
        return False
    return r.replace_with_new(
        i, "multiply", (r.create_like(i, "log", shape_of(i), x.operands), r.scalar_like(i, factor))
    )


@pattern("sqrt", handler="HandleSqrt")
def root_of_square(r: AlgebraRewrite) -> Result:
    """fast math: m = multiply(x, x); sqrt(m) => abs(x)"""
    x = r.instruction.operands[0]
    if not r.is_loose(xla_changes.ALGSIMP_INVERSES):
        return False
    if x.opcode != "multiply" or x.operands[0] is not x.operands[1] or type_of(x).is_complex:
        return False
    return r.replace_with_new(r.instruction, "abs", (x.operands[0],))


@pattern("rsqrt", handler="HandleRsqrt")
def inverse_root_of_inverse(r: AlgebraRewrite) -> Result:
    """e = exponential(x); d = divide(f1, e); rsqrt(d) => e = exponential(x); sqrt(e)"""
    x = r.instruction.operands[0]
    if x.opcode == "power" and is_all(x.operands[1], -2) and is_non_negative(r, x.operands[0]):
        return x.operands[0]
    if x.opcode != "divide" or not is_all(x.operands[0], 1) or not is_non_negative(r, x.operands[1]):
        return False
    return r.replace_with_new(r.instruction, "sqrt", (x.operands[1],))


@pattern("negate", handler="HandleNegate")
def negate_twice(r: AlgebraRewrite) -> Result:
    """c = negate(x); negate(c) => x"""
    x = r.instruction.operands[0]
    return x.opcode == "negate" and r.replace_if_compatible(r.instruction, x.operands[0])


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


@pattern(("maximum", "minimum"), handler="HandleMaximum")
def extreme_of_self(r: AlgebraRewrite) -> Result:
    """maximum(x, x) => x"""
    i = r.instruction
    return i.operands[0] is i.operands[1] and i.operands[0]


@pattern(("maximum", "minimum"), handler="HandleMaximum")
def extreme_of_extreme_number(r: AlgebraRewrite) -> Result:
    """c = f32[] constant(-inf); b = f32[4,3] broadcast(c), dimensions={}; maximum(x, b) => x"""
    x, y = r.instruction.operands
    smallest = r.instruction.opcode == "maximum"
    if _extreme(x, smallest):
        return y
    return _extreme(y, smallest) and x


@pattern(("maximum", "minimum"), handler="HandleMaximum")
def extreme_twice(r: AlgebraRewrite) -> Result:
    """m = maximum(x, y); maximum(m, y) => maximum(x, y)"""
    i = r.instruction
    x, y = i.operands
    if x.opcode == i.opcode and y in x.operands:
        return x
    if y.opcode != i.opcode or x not in y.operands:
        return False
    if y.operands[0] is x:
        return y
    return r.set_operands(i, (x, y.operands[0]))


@pattern(("maximum", "minimum"), handler="HandleMaximum")
def extremes_to_clamp(r: AlgebraRewrite) -> Result:
    """m = minimum(x, f2); maximum(m, f1) => clamp(f1, x, f2)"""
    i = r.instruction
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
                a is not None and b is not None and a < b and r.replace_with_new(i, "clamp", (low, x, high))
            )
    return False


def _is_splat(i: Instruction) -> bool:
    return i.opcode == "broadcast" and is_constant(i.operands[0]) and is_one_element(i.operands[0])


@pattern("maximum", handler="HandleMaximum")
def maximum_of_clamp(r: AlgebraRewrite) -> Result:
    """c = clamp(y, x, z); maximum(y, c) => clamp(y, x, z)"""
    i = r.instruction
    for low, clamp in (i.operands, i.operands[::-1]):
        if clamp.opcode == "clamp" and clamp.operands[0] is low:
            return r.replace_if_compatible(i, clamp)
    return False


@pattern("maximum", handler="HandleMaximum")
def maximum_of_rising_functions(r: AlgebraRewrite) -> Result:
    """c = tanh(x); d = tanh(y); maximum(c, d) => m = maximum(x, y); tanh(m)"""
    x, y = r.instruction.operands
    if x.opcode != y.opcode or x.opcode not in ("cbrt", "erf", "logistic", "tanh"):
        return False
    return r.replace_with_new(r.instruction, x.opcode, (r.binary("maximum", x.operands[0], y.operands[0]),))


@pattern("clamp", handler="HandleClamp")
def clamp_twice(r: AlgebraRewrite) -> Result:
    """c = clamp(x, y, z); clamp(x, c, z) => clamp(x, y, z)"""
    low, x, high = r.instruction.operands
    return (
        x.opcode == "clamp"
        and x.operands[0] is low
        and x.operands[2] is high
        and r.replace_if_compatible(r.instruction, x)
    )


@pattern("clamp", handler="HandleClamp")
def clamp_of_partition(r: AlgebraRewrite) -> Result:
    """partitions=4: k = u32[] partition-id(); z = u32[] constant(0); h = u32[] constant(3); u32[] clamp(z, k, h)
    => u32[] partition-id()"""
    low, x, high = r.instruction.operands
    if x.opcode not in ("partition-id", "replica-id") or not is_constant(low) or not is_all(low, 0):
        return False
    value = constant_value(high) if is_constant(high) else None
    name = "num_partitions" if x.opcode == "partition-id" else "replica_count"
    number = r.module.attributes.get(name, 1)
    return isinstance(value, int) and isinstance(number, int) and 1 < number <= value + 1 and x


# ---- complex numbers


@pattern("complex", handler="HandleComplex")
def complex_of_parts(r: AlgebraRewrite) -> Result:
    """c = f32[4,3] real(w); d = f32[4,3] imag(w); c64[4,3] complex(c, d) => w"""
    x, y = r.instruction.operands
    fits = x.opcode == "real" and y.opcode == "imag" and x.operands[0] is y.operands[0]
    return fits and x.operands[0]


@pattern("real", handler="HandleReal")
def real_of_complex(r: AlgebraRewrite) -> Result:
    """c = c64[4,3] complex(x, y); f32[4,3] real(c) => x"""
    x = r.instruction.operands[0]
    if x.opcode == "complex":
        return x.operands[0]
    return not type_of(x).is_complex and x


@pattern("imag", handler="HandleImag")
def imag_of_complex(r: AlgebraRewrite) -> Result:
    """c = c64[4,3] complex(x, y); f32[4,3] imag(c) => y"""
    x = r.instruction.operands[0]
    if x.opcode == "complex":
        return x.operands[1]
    return not type_of(x).is_complex and r.zeros(shape_of(r.instruction))
