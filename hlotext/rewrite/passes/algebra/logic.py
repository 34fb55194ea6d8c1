"""Rules about bits, truth, choice, comparisons and conversions."""

from __future__ import annotations

from hlotext import matchers as m
from hlotext.ir.nodes.instruction import Instruction
from hlotext.rewrite.passes.algebra.common import (
    is_discrete,
    is_integer,
    is_pred,
    make,
    number,
    same_sizes,
    shape_of,
)
from hlotext.rewrite.rewriter import Rewrite, pattern

X, Y, P = m.op("x"), m.op("y"), m.op("p")


@pattern(m.not_(m.not_(X)))
def not_twice(r: Rewrite) -> Instruction | None:
    """not(not(p)) => p"""
    return r["x"]


@pattern(m.any_of(m.and_(X, X), m.or_(X, X)))
def with_itself(r: Rewrite) -> Instruction | None:
    """and(i, i) => i"""
    return r["x"]


@pattern(m.xor(X, X))
def xor_self(r: Rewrite) -> Instruction | None:
    """xor(i, i) => i0"""
    return number(r, 0)


@pattern(m.and_any_order(X, m.splat(1)))
def and_true(r: Rewrite) -> Instruction | None:
    """and(p, yes) => p"""
    return r["x"] if is_pred(r["x"]) else None


@pattern(m.and_any_order(X, m.splat(0)))
def and_false(r: Rewrite) -> Instruction | None:
    """and(p, no) => no"""
    return number(r, 0)


@pattern(m.or_any_order(X, m.splat(0)))
def or_false(r: Rewrite) -> Instruction | None:
    """or(p, no) => p"""
    return r["x"]


@pattern(m.or_any_order(X, m.splat(1)))
def or_true(r: Rewrite) -> Instruction | None:
    """or(p, yes) => yes"""
    return number(r, 1) if is_pred(r["x"]) else None


@pattern(m.xor_any_order(X, m.splat(0)))
def xor_zero(r: Rewrite) -> Instruction | None:
    """xor(i, i0) => i"""
    return r["x"]


@pattern(
    m.any_of(
        m.shift_left(X, m.splat(0)),
        m.shift_right_logical(X, m.splat(0)),
        m.shift_right_arithmetic(X, m.splat(0)),
    )
)
def shift_by_zero(r: Rewrite) -> Instruction | None:
    """shift-left(i, i0) => i"""
    return r["x"]


@pattern(m.select(P, X, X))
def select_same(r: Rewrite) -> Instruction | None:
    """select(p, x, x) => x"""
    return r["x"]


@pattern(m.select(m.splat(1), X, Y))
def select_true(r: Rewrite) -> Instruction | None:
    """select(yes, x, y) => x"""
    return r["x"]


@pattern(m.select(m.splat(0), X, Y))
def select_false(r: Rewrite) -> Instruction | None:
    """select(no, x, y) => y"""
    return r["y"]


@pattern(m.select(m.not_(P), X, Y))
def select_not(r: Rewrite) -> Instruction | None:
    """select(not(p), x, y) => select(p, y, x)"""
    return make(r, "select", r["p"], r["y"], r["x"])


@pattern(m.compare(X, X))
def compare_self(r: Rewrite) -> Instruction | None:
    """compare(i, i), direction=LE => yes"""
    if not is_discrete(r["x"]):
        return None
    return number(r, str(r.instruction.attributes["direction"]) in ("EQ", "LE", "GE"))


@pattern(m.not_(m.compare(X, Y, name="c")))
def not_of_comparison(r: Rewrite) -> Instruction | None:
    """c = compare(i, j), direction=LT; not(c) => compare(i, j), direction=GE"""
    if not is_integer(r["x"]):
        return None
    opposite = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
    return r.b.compare(
        r["x"], r["y"], opposite[str(r["c"].attributes["direction"])], shape=r.instruction.shape
    )


@pattern(m.convert(X))
def convert_to_same(r: Rewrite) -> Instruction | None:
    """f32[4,3] convert(x) => x"""
    return r["x"] if same_sizes(r["x"], r.instruction) else None


@pattern(m.convert(m.convert(X, name="wide")))
def convert_and_back(r: Rewrite) -> Instruction | None:
    """c = s64[4,3] convert(i); s32[4,3] convert(c) => i"""
    if not same_sizes(r["x"], r.instruction) or not is_integer(r["x"]):
        return None
    wide, narrow = shape_of(r["wide"]).element_type, shape_of(r["x"]).element_type
    return r["x"] if wide.kind is narrow.kind and wide.bits > narrow.bits else None


@pattern(m.bitcast_convert(X))
def bits_as_same_type(r: Rewrite) -> Instruction | None:
    """f32[4,3] bitcast-convert(x) => x"""
    return r["x"] if same_sizes(r["x"], r.instruction) else None


@pattern(m.bitcast_convert(m.bitcast_convert(X)))
def bits_of_bits(r: Rewrite) -> Instruction | None:
    """b = s32[4,3] bitcast-convert(x); f32[4,3] bitcast-convert(b) => x"""
    return r["x"] if same_sizes(r["x"], r.instruction) else None


@pattern(m.reduce_precision(X))
def reduce_precision_of_own(r: Rewrite) -> Instruction | None:
    """f32[4,3] reduce-precision(x), exponent_bits=8, mantissa_bits=23 => x"""
    widths = {"f32": (8, 23), "bf16": (8, 7), "f16": (5, 10), "f64": (11, 52)}
    attributes = r.instruction.attributes
    own = widths.get(shape_of(r["x"]).element_type.name)
    return r["x"] if own == (attributes["exponent_bits"], attributes["mantissa_bits"]) else None


RULES = (
    not_twice, with_itself, xor_self, and_true, and_false, or_false, or_true, xor_zero, shift_by_zero, select_same,
    select_true, select_false, select_not, compare_self, not_of_comparison, convert_to_same, convert_and_back,
    bits_as_same_type, bits_of_bits, reduce_precision_of_own,
)  # fmt: skip
