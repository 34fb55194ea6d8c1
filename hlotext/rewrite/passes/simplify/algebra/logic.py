"""Rules about bits, truth, choice, comparisons, conversions and calls of backends."""

from __future__ import annotations

from hlotext import layout as layouts
from hlotext.ir.nodes.effects import has_side_effect
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits, xla_changes
from hlotext.ir.values.types import ElementType, TypeKind
from hlotext.rewrite.kit.builder import retyped
from hlotext.rewrite.kit.facts import (
    dims,
    is_all,
    is_pred,
    is_scalar,
    is_whole,
    one_use,
    one_user,
    shape_of,
    sizes,
    type_of,
)
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite
from hlotext.rewrite.passes.simplify.algebra.sums import is_non_negative


@pattern("and", handler="HandleAnd")
def and_true(r: AlgebraRewrite) -> Result:
    """and(p, yes) => p"""
    return is_pred(r.instruction.operands[0]) and r.drop_neutral(1)


@pattern("and", handler="HandleAnd")
def and_zero(r: AlgebraRewrite) -> Result:
    """and(i, i0) => i0"""
    return r.keep_absorbing(0)


@pattern("or", handler="HandleOr")
def or_true(r: AlgebraRewrite) -> Result:
    """or(p, yes) => yes"""
    return is_pred(r.instruction.operands[0]) and r.keep_absorbing(1)


@pattern("or", handler="HandleOr")
def or_zero(r: AlgebraRewrite) -> Result:
    """or(i, i0) => i"""
    return r.drop_neutral(0)


@pattern("xor", handler="HandleXor")
def xor_self(r: AlgebraRewrite) -> Result:
    """k = s32[4,3] add(i, j); l = s32[4,3] add(i, j); xor(k, l) => i0"""
    x, y = r.instruction.operands
    same = x is y or (not has_side_effect(x) and _is_identical(x, y))
    return same and r.has(xla_changes.ALGSIMP_XOR) and r.scalar_like(r.instruction, 0)


def _is_identical(x: Instruction, y: Instruction) -> bool:
    """True if two instructions do the same with the same operands (`HloInstruction::Identical`)."""
    if (x.opcode, x.shape, x.operands) != (y.opcode, y.shape, y.operands) or x.opcode == "parameter":
        return False
    if x.literal is not None and (x.literal.is_partly_elided or x.literal != y.literal):
        return False
    own, other = (
        {name: value for name, value in one.attributes.items() if name not in _NO_DIFFERENCE}
        for one in (x, y)
    )
    return own == other


_NO_DIFFERENCE = traits.PROVENANCE | traits.CONTROL | {"frontend_attributes"}


@pattern("xor", handler="HandleXor")
def xor_zero(r: AlgebraRewrite) -> Result:
    """xor(i, i0) => i"""
    i = r.instruction
    x, y = i.operands
    if not r.has(xla_changes.ALGSIMP_XOR):
        return False
    return (is_all(y, 0) and r.replace_if_compatible(i, x)) or (
        is_all(x, 0) and r.replace_if_compatible(i, y)
    )


@pattern("not", handler="HandleNot")
def not_twice(r: AlgebraRewrite) -> Result:
    """c = not(p); not(c) => p"""
    x = r.instruction.operands[0]
    return x.opcode == "not" and r.replace_if_compatible(r.instruction, x.operands[0])


# ---- select


@pattern("select", handler="HandleSelect")
def select_same(r: AlgebraRewrite) -> Result:
    """select(p, x, x) => x"""
    i = r.instruction
    return i.operands[1] is i.operands[2] and r.replace_if_compatible(i, i.operands[1])


@pattern("select", handler="HandleSelect")
def select_known(r: AlgebraRewrite) -> Result:
    """select(yes, x, y) => x"""
    i = r.instruction
    p, x, y = i.operands
    return (is_all(p, 1) and r.replace_if_compatible(i, x)) or (
        is_all(p, 0) and r.replace_if_compatible(i, y)
    )


@pattern("select", handler="HandleSelect")
def select_not(r: AlgebraRewrite) -> Result:
    """c = not(p); select(c, x, y) => select(p, y, x)"""
    p, x, y = r.instruction.operands
    return p.opcode == "not" and r.replace_with_new(r.instruction, "select", (p.operands[0], y, x))


@pattern("select", handler="HandleSelect")
def select_of_truth(r: AlgebraRewrite) -> Result:
    """select(p, yes, no) => p"""
    i = r.instruction
    p, x, y = i.operands
    if not is_pred(i):
        return False
    if is_all(x, 1) and is_all(y, 0):
        return p
    if is_all(x, 0) and is_all(y, 1):
        return r.replace_with_new(i, "not", (p,), shape_of(p))
    if p.opcode != "compare" or p.operands != (x, y):
        return False
    direction = str(p.attributes["direction"])
    if direction in ("EQ", "NE"):
        return y if direction == "EQ" else x
    return r.replace_with_new(i, "or" if direction in ("GT", "GE") else "and", (x, y))


@pattern("select", handler="HandleSelect")
def select_of_update(r: AlgebraRewrite) -> Result:
    """v = f32[1,3] slice(y), slice={[0:1], [0:3]}; d = f32[4,3] dynamic-update-slice(x, v, n, n); select(p, x, d)
    => v = f32[1,3] slice(y), slice={[0:1], [0:3]}; e = pred[1,3] dynamic-slice(p, n, n), dynamic_slice_sizes={1,3};
    g = f32[1,3] dynamic-slice(x, n, n), dynamic_slice_sizes={1,3}; h = f32[1,3] select(e, g, v);
    f32[4,3] dynamic-update-slice(x, h, n, n)"""
    i = r.instruction
    p, x, y = i.operands
    for update, whole, is_left in ((y, x, True), (x, y, False)):
        if update.opcode != "dynamic-update-slice" or update.operands[0] is not whole or not one_use(update):
            continue
        part, starts = update.operands[1], update.operands[2:]
        size = sizes(part)
        chosen = p
        if not is_scalar(p):
            truth = retyped(shape_of(part), type_of(p))
            chosen = r.create_like(i, "dynamic-slice", truth, (p, *starts), dynamic_slice_sizes=size)
        old = r.create_like(i, "dynamic-slice", shape_of(part), (whole, *starts), dynamic_slice_sizes=size)
        pair = (old, part) if is_left else (part, old)
        new = r.create_like(i, "select", shape_of(part), (chosen, *pair))
        return r.replace_with_new(i, "dynamic-update-slice", (whole, new, *starts))
    return False


# ---- compare


@pattern("compare", handler="HandleCompare")
def compare_with_zero(r: AlgebraRewrite) -> Result:
    """compare(a, u0), direction=GE => yes"""
    i = r.instruction
    x, y = i.operands
    direction = str(i.attributes["direction"])
    unsigned = type_of(x).kind is TypeKind.UNSIGNED
    if direction in ("LT", "GE") and is_all(y, 0) and (unsigned or is_non_negative(r, x)):
        return r.scalar_like(i, direction == "GE")
    if direction in ("GT", "LE") and is_all(x, 0) and (unsigned or is_non_negative(r, y)):
        return r.scalar_like(i, direction == "LE")
    return False


@pattern("compare", handler="HandleCompare")
def compare_self(r: AlgebraRewrite) -> Result:
    """compare(i, i), direction=LE => yes"""
    i = r.instruction
    x, y = i.operands
    if x is not y or not is_whole(x):
        return False
    return r.scalar_like(i, str(i.attributes["direction"]) in ("EQ", "GE", "LE"))


@pattern("compare", handler="HandleCompare")
def compare_truth(r: AlgebraRewrite) -> Result:
    """compare(p, no), direction=NE => p"""
    i = r.instruction
    x, y = i.operands
    value = {"NE": 0, "EQ": 1}.get(str(i.attributes["direction"]))
    if not is_pred(x) or value is None:
        return False
    return (is_all(y, value) and r.replace(i, x)) or (is_all(x, value) and r.replace(i, y))


@pattern("compare", handler="HandleCompare")
def compare_mask(r: AlgebraRewrite) -> Result:
    """c = compare(i, j), direction=GE; m = select(c, f1, f0); compare(m, f0), direction=NE
    => compare(i, j), direction=GE"""
    i = r.instruction
    x, y = i.operands
    if str(i.attributes["direction"]) != "NE" or not is_all(y, 0) or x.opcode != "select":
        return False
    inner, one, zero = x.operands
    if inner.opcode != "compare" or str(inner.attributes["direction"]) != "GE":
        return False
    if not (is_all(one, 1) and is_all(zero, 0)) or not r.same_shape(shape_of(i), shape_of(inner)):
        return False
    return inner


@pattern("compare", handler="HandleCompare")
def compare_extreme(r: AlgebraRewrite) -> Result:
    """m = maximum(i, j); compare(m, i), direction=GT => compare(j, i), direction=GT"""
    i = r.instruction
    x, y = i.operands
    if str(i.attributes["direction"]) != "GT":
        return False
    if x.opcode == "maximum" and y in x.operands:
        return r.set_operands(i, (x.operands[1] if x.operands[0] is y else x.operands[0], y))
    if y.opcode == "minimum" and x in y.operands:
        return r.set_operands(i, (x, y.operands[1] if y.operands[0] is x else y.operands[0]))
    return False


# ---- convert


@pattern("convert", handler="HandleConvert")
def convert_to_same(r: AlgebraRewrite) -> Result:
    """f32[4,3] convert(x) => x"""
    i = r.instruction
    return type_of(i) is type_of(i.operands[0]) and i.operands[0]


@pattern("convert", handler="HandleConvert")
def convert_and_back(r: AlgebraRewrite) -> Result:
    """c = s64[4,3] convert(i); s32[4,3] convert(c) => i"""
    wide = r.instruction.operands[0]
    if wide.opcode != "convert":
        return False
    source = wide.operands[0]
    return (
        type_of(source) is type_of(r.instruction)
        and cast_preserves_values(type_of(source), type_of(wide))
        and source
    )


_FLOATS = {
    "f64": (53, 11, True), "f32": (24, 8, True), "bf16": (8, 8, True), "f16": (11, 5, True), "f8e5m2": (3, 5, True),
    "f8e4m3fn": (4, 4, False), "f8e4m3": (4, 4, True), "f8e3m4": (5, 3, True), "f4e2m1fn": (2, 2, False),
}  # fmt: skip
"""Significant bits, exponent bits, and whether there are infinities."""


def cast_preserves_values(a: ElementType, b: ElementType) -> bool:
    """Returns True if type `b` can represent every value of type `a` (`primitive_util::CastPreservesValues`)."""
    if a is b:
        return True
    if a.kind is TypeKind.PREDICATE:
        return b.is_integral or b.is_floating or b.is_complex
    if a.is_integral and b.is_integral:
        if a.kind is b.kind:
            return a.bits <= b.bits
        return a.kind is TypeKind.UNSIGNED and a.bits < b.bits
    if a.is_floating and b.is_floating:
        one, other = _FLOATS.get(a.name), _FLOATS.get(b.name)
        if one is None or other is None:
            return False
        return one[0] <= other[0] and one[1] <= other[1] and (other[2] or not one[2])
    if a.is_integral and b.is_floating:
        floats = _FLOATS.get(b.name)
        return floats is not None and a.bits - (a.kind is TypeKind.SIGNED) <= floats[0] and (
            a.bits <= 1 << (floats[1] - 1)
        )  # fmt: skip
    return False


@pattern("convert", handler="TryRemoveUpcastAndDowncastSurroundingBinaryOp")
def convert_around_operation(r: AlgebraRewrite) -> Result:
    """c = s64[4,3] convert(i); d = s64[4,3] convert(j); e = s64[4,3] add(c, d); s32[4,3] convert(e) => add(i, j)"""
    op = r.instruction.operands[0]
    fine = op.opcode in ("add", "subtract", "multiply") or (
        op.opcode in ("divide", "remainder") and type_of(op).kind is TypeKind.UNSIGNED
    )
    if not fine or not one_user(op) or not all(o.opcode == "convert" and one_user(o) for o in op.operands):
        return False
    target, wide = type_of(r.instruction), type_of(op)
    inner = [o.operands[0] for o in op.operands]
    if any(type_of(o) is not target for o in inner) or not (target.is_integral and wide.is_integral):
        return False
    if (
        target.bits < 8
        or wide.bits < 8
        or target.kind is not wide.kind
        or not cast_preserves_values(target, wide)
    ):
        return False
    return r.clone(op, inner, retyped(shape_of(op), target))


# ---- bits


@pattern("bitcast-convert", handler="HandleBitcastConvert")
def bits_of_bits(r: AlgebraRewrite) -> Result:
    """c = s32[4,3] bitcast-convert(x); u32[4,3] bitcast-convert(c) => u32[4,3] bitcast-convert(x)"""
    x = r.instruction.operands[0]
    return x.opcode == "bitcast-convert" and r.replace_with_new(r.instruction, "bitcast-convert", x.operands)


@pattern("bitcast-convert", handler="TrySimplifyTautologicalBitcastConvert")
def bits_of_joined_bits(r: AlgebraRewrite) -> Result:
    """c = u32[4,3] bitcast-convert(x); d = u32[4,3] bitcast-convert(y); e = u32[8,3] concatenate(c, d), dimensions={0};
    f32[8,3] bitcast-convert(e) => f32[8,3] concatenate(x, y), dimensions={0}"""
    i = r.instruction
    joined = i.operands[0]
    if joined.opcode != "concatenate":
        return False
    if any(
        o.opcode != "bitcast-convert" or type_of(o.operands[0]) is not type_of(i) for o in joined.operands
    ):
        return False
    parts = [o.operands[0] for o in joined.operands]
    (d,) = dims(joined)
    size = list(sizes(parts[0]))
    size[d] = sum(sizes(part)[d] for part in parts)
    return r.create("concatenate", r.shape(type_of(i), size), parts, dimensions=(d,))


@pattern("bitcast-convert", handler="HandleBitcastConvert")
def bits_as_bitcast(r: AlgebraRewrite) -> Result:
    """layouts: u32[4,3] bitcast-convert(x) => u32[4,3] bitcast(x)"""
    i = r.instruction
    if not (r.options.is_layout_sensitive and r.options.rewrite_no_op_bitcast_convert_to_bitcast):
        return False
    x, shape = i.operands[0], shape_of(i)
    if layouts.equal_ignoring_element_type(shape, shape_of(x)):
        return r.replace_with_bitcast(i)
    longer = shape_of(x) if shape_of(x).rank > shape.rank else shape
    layout = longer.layout
    if layout is None or not longer.rank or layout.minor_to_major[0] != longer.rank - 1:
        return False
    bits = layout.element_size_in_bits
    whole = longer.element_type.bits % 8 == 0 if not bits else bits == longer.element_type.bits
    return whole and r.replace_with_bitcast(i)


@pattern("bitcast-convert", handler="HandleBitcastConvert")
def bits_as_same_type(r: AlgebraRewrite) -> Result:
    """f32[4,3] bitcast-convert(x) => x"""
    return r.replace_if_compatible(r.instruction, r.instruction.operands[0])


# ---- calls and branches


@pattern("custom-call", handler="HandleCustomCall")
def layout_constraint(r: AlgebraRewrite) -> Result:
    """layouts: f32[4,3] custom-call(x), custom_call_target="LayoutConstraint" => x"""
    i = r.instruction
    if not r.options.is_layout_sensitive or i.attributes.get("custom_call_target") != "LayoutConstraint":
        return False
    x = i.operands[0]
    if r.same_shape(shape_of(i), shape_of(x)):
        return x
    return r.replace_with_new(i, "copy", (x,))


@pattern("reduce-precision", handler="HandleReducePrecision")
def reduce_precision_of_own(r: AlgebraRewrite) -> Result:
    """no-op reduce-precision: f32[4,3] reduce-precision(x), exponent_bits=8, mantissa_bits=23 => x"""
    i = r.instruction
    widths = {"f32": (8, 23), "bf16": (8, 7), "f16": (5, 10), "f64": (11, 52)}
    own = widths.get(type_of(i.operands[0]).name)
    wanted = (i.attributes["exponent_bits"], i.attributes["mantissa_bits"])
    return r.options.enable_remove_no_op_reduce_precision and own == wanted and i.operands[0]


@pattern("conditional", handler="HandleConditional")
def conditional_of_truth(r: AlgebraRewrite) -> Result:
    """gpu: c = s32[] convert(t); conditional(c, x, y), branch_computations={turn, keep}
    => conditional(t, y, x), true_computation=keep, false_computation=turn"""
    i = r.instruction
    index = i.operands[0]
    branches = i.called_computations
    if not r.options.enable_conditional_simplification or index.opcode != "convert" or len(branches) != 2:
        return False
    if not is_pred(index.operands[0]):
        return False
    return r.replace_with_new(
        i, "conditional", (index.operands[0], i.operands[2], i.operands[1]),
        true_computation=branches[1], false_computation=branches[0],
    )  # fmt: skip
