"""Rules about sums, products, powers and signs. Floats are treated as XLA treats them: x + 0 is x, also for -0."""

from __future__ import annotations

from hlotext import matchers as m
from hlotext.ir.nodes.instruction import Instruction
from hlotext.rewrite.passes.algebra.common import is_floating, is_integer, make, number
from hlotext.rewrite.rewriter import Rewrite, pattern

X, Y = m.op("x"), m.op("y")


@pattern(m.add_any_order(X, m.splat(0)))
def add_zero(r: Rewrite) -> Instruction | None:
    """add(x, f0) => x"""
    return r["x"]


@pattern(m.add_any_order(X, m.negate(Y)))
def add_negated(r: Rewrite) -> Instruction | None:
    """add(x, negate(y)) => subtract(x, y)"""
    return make(r, "subtract", r["x"], r["y"])


@pattern(m.subtract(X, m.splat(0)))
def subtract_zero(r: Rewrite) -> Instruction | None:
    """subtract(x, f0) => x"""
    return r["x"]


@pattern(m.subtract(X, X))
def subtract_self(r: Rewrite) -> Instruction | None:
    """subtract(i, i) => i0"""
    return number(r, 0) if is_integer(r["x"]) else None


@pattern(m.subtract(X, m.negate(Y)))
def subtract_negated(r: Rewrite) -> Instruction | None:
    """subtract(x, negate(y)) => add(x, y)"""
    return make(r, "add", r["x"], r["y"])


@pattern(m.multiply_any_order(X, m.splat(1)))
def multiply_one(r: Rewrite) -> Instruction | None:
    """multiply(x, f1) => x"""
    return r["x"]


@pattern(m.multiply_any_order(X, m.splat(0)))
def multiply_zero(r: Rewrite) -> Instruction | None:
    """multiply(i, i0) => i0"""
    return number(r, 0) if is_integer(r.instruction) else None


@pattern(m.multiply_any_order(X, m.splat(-1)))
def multiply_minus_one(r: Rewrite) -> Instruction | None:
    """multiply(x, fneg1) => negate(x)"""
    return make(r, "negate", r["x"]) if is_floating(r["x"]) or is_integer(r["x"]) else None


@pattern(m.multiply(m.negate(X), m.negate(Y)))
def multiply_negated(r: Rewrite) -> Instruction | None:
    """multiply(negate(x), negate(y)) => multiply(x, y)"""
    return make(r, "multiply", r["x"], r["y"])


@pattern(m.divide(X, m.splat(1)))
def divide_by_one(r: Rewrite) -> Instruction | None:
    """divide(x, f1) => x"""
    return r["x"]


@pattern(m.divide(X, m.splat(-1)))
def divide_by_minus_one(r: Rewrite) -> Instruction | None:
    """divide(x, fneg1) => negate(x)"""
    return make(r, "negate", r["x"]) if is_floating(r["x"]) else None


@pattern(m.divide(m.negate(X), m.negate(Y)))
def divide_negated(r: Rewrite) -> Instruction | None:
    """divide(negate(x), negate(y)) => divide(x, y)"""
    return make(r, "divide", r["x"], r["y"]) if is_floating(r["x"]) else None


@pattern(m.remainder(X, m.splat(1)))
def remainder_of_one(r: Rewrite) -> Instruction | None:
    """remainder(i, i1) => i0"""
    return number(r, 0) if is_integer(r["x"]) else None


@pattern(m.power(X, m.splat(1)))
def power_one(r: Rewrite) -> Instruction | None:
    """power(x, f1) => x"""
    return r["x"]


@pattern(m.power(X, m.splat(2)))
def power_two(r: Rewrite) -> Instruction | None:
    """power(x, f2) => multiply(x, x)"""
    return make(r, "multiply", r["x"], r["x"])


@pattern(m.power(X, m.splat(0)))
def power_zero(r: Rewrite) -> Instruction | None:
    """power(x, f0) => f1"""
    return number(r, 1) if is_floating(r["x"]) or is_integer(r["x"]) else None


@pattern(m.power(X, m.splat(-1)))
def power_minus_one(r: Rewrite) -> Instruction | None:
    """power(x, fneg1) => divide(f1, x)"""
    return make(r, "divide", number(r, 1), r["x"]) if is_floating(r["x"]) else None


@pattern(m.negate(m.negate(X)))
def negate_twice(r: Rewrite) -> Instruction | None:
    """negate(negate(x)) => x"""
    return r["x"]


@pattern(m.abs(m.abs(name="a")))
def abs_of_abs(r: Rewrite) -> Instruction | None:
    """abs(abs(x)) => abs(x)"""
    return r["a"]


@pattern(m.abs(m.negate(X)))
def abs_of_negated(r: Rewrite) -> Instruction | None:
    """abs(negate(x)) => abs(x)"""
    return make(r, "abs", r["x"])


@pattern(m.any_of(m.maximum(X, X), m.minimum(X, X)))
def extreme_of_self(r: Rewrite) -> Instruction | None:
    """maximum(x, x) => x"""
    return r["x"]


@pattern(
    m.any_of(
        m.floor(m.floor(name="a")),
        m.ceil(m.ceil(name="a")),
        m.round_nearest_even(m.round_nearest_even(name="a")),
        m.round_nearest_afz(m.round_nearest_afz(name="a")),
        m.sign(m.sign(name="a")),
    )
)
def rounded_twice(r: Rewrite) -> Instruction | None:
    """floor(floor(x)) => floor(x)"""
    return r["a"]


@pattern(m.real(m.complex(X, Y)))
def real_of_complex(r: Rewrite) -> Instruction | None:
    """real(complex(x, y)) => x"""
    return r["x"]


@pattern(m.imag(m.complex(X, Y)))
def imag_of_complex(r: Rewrite) -> Instruction | None:
    """imag(complex(x, y)) => y"""
    return r["y"]


@pattern(m.complex(m.real(X), m.imag(X)))
def complex_of_parts(r: Rewrite) -> Instruction | None:
    """complex(real(w), imag(w)) => w"""
    return r["x"]


RULES = (
    add_zero, add_negated, subtract_zero, subtract_self, subtract_negated, multiply_one, multiply_zero,
    multiply_minus_one, multiply_negated, divide_by_one, divide_by_minus_one, divide_negated, remainder_of_one,
    power_one, power_two, power_zero, power_minus_one, negate_twice, abs_of_abs, abs_of_negated, extreme_of_self,
    rounded_twice, real_of_complex, imag_of_complex, complex_of_parts,
)  # fmt: skip
