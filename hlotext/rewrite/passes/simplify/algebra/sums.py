"""Rules about sums, differences and absolute values."""

from __future__ import annotations

import math

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import xla_changes
from hlotext.ir.values.types import TypeKind
from hlotext.rewrite.kit.facts import (
    constant_value,
    dims,
    is_all,
    is_constant,
    is_one_element,
    is_scalar,
    is_whole,
    one_use,
    one_user,
    shape_of,
    sizes,
    splat_constant,
    type_of,
)
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite

# ---- negative or not


def is_non_negative(r: AlgebraRewrite, i: Instruction) -> bool:
    """Returns True if a value is known to be nonnegative (`IsNonNegative`)."""
    known: dict[Instruction, bool] = {}
    overflows = r.has(xla_changes.ALGSIMP_OVERFLOW)
    waiting = [i]
    while waiting:  # what is asked of is answered first, and once
        j = waiting.pop()
        asked = () if j in known else _asked(j, overflows)
        open_ = [o for o in asked if o not in known]
        if open_:
            waiting += (j, *open_)
        elif j not in known:
            answers = [known[o] for o in asked]
            known[j] = (
                (any if j.opcode == "maximum" else all)(answers) if asked else _is_never_below(j, overflows)
            )
    return known[i]


_ASKED = {"broadcast": (0,), "power": (0,), "minimum": (0, 1), "maximum": (0, 1), "select": (1, 2)}
"""The operands that decide whether a value is negative."""


def _asked(i: Instruction, overflows: bool) -> tuple[Instruction, ...]:
    """The operands that decide it. A power or an absolute value of signed whole numbers may overflow."""
    signed = overflows and type_of(i).kind is TypeKind.SIGNED
    if any(type_of(o).is_complex for o in i.operands if shape_of(o).is_array):
        return ()
    if i.opcode == "abs" and signed:
        return i.operands
    if i.opcode == "power" and signed:
        return ()
    return tuple(i.operands[n] for n in _ASKED.get(i.opcode, ()))


def _is_never_below(i: Instruction, overflows: bool) -> bool:
    """True if a value is not negative whatever its operands are."""
    if any(type_of(o).is_complex for o in i.operands if shape_of(o).is_array):
        return False
    signed = overflows and type_of(i).kind is TypeKind.SIGNED
    if i.opcode == "multiply":
        return i.operands[0] is i.operands[1] and not signed
    if i.opcode == "iota":
        return not signed or sizes(i)[i.attributes["iota_dimension"]] <= 1 << (type_of(i).bits - 1)
    if i.opcode == "constant":
        value = constant_value(i) if is_one_element(i) else None
        return value is not None and not math.isnan(value) and math.copysign(1, value) > 0
    return i.opcode in ("abs", "exponential")


# ---- abs


@pattern("abs", handler="HandleAbs")
def abs_of_non_negative(r: AlgebraRewrite) -> Result:
    """e = exponential(x); abs(e) => exponential(x)"""
    return is_non_negative(r, r.instruction.operands[0]) and r.instruction.operands[0]


# ---- add


@pattern("add", handler="HandleAdd")
def add_zero(r: AlgebraRewrite) -> Result:
    """add(x, f0) => x"""
    return r.drop_neutral(0)


@pattern("add", handler="HandleAdd")
def add_constant_first(r: AlgebraRewrite) -> Result:
    """c = s32[] constant(3); s32[] add(c, n) => c = s32[] constant(3); s32[] add(n, c)"""
    x, y = r.instruction.operands
    return is_constant(x) and not is_constant(y) and r.replace_with_new(r.instruction, "add", (y, x))


def two_constants(x: Instruction, y: Instruction) -> tuple[Instruction, Instruction] | None:
    """Returns two constants, or the scalars of two splats; None for others."""
    if is_constant(x) and is_constant(y):
        return x, y
    a, b = splat_constant(x), splat_constant(y)
    return (a, b) if a is not None and b is not None else None


def may_join(r: AlgebraRewrite, i: Instruction) -> bool:
    """Returns True if constants on both sides of an operation may be combined, which rounds floats differently."""
    return is_whole(i) or r.is_loose(xla_changes.ALGSIMP_FLOATS_APART)


def spread(r: AlgebraRewrite, i: Instruction, value: Instruction) -> Instruction:
    """Broadcasts a scalar to the shape of an instruction."""
    if is_scalar(value) and not is_scalar(i):
        return r.create_like(i, "broadcast", shape_of(i), (value,), dimensions=())
    return value


@pattern("add", handler="HandleAdd")
def addtwo_constants(r: AlgebraRewrite) -> Result:
    """fast math: a = add(x, f1); add(a, f2)
    => c = f32[] add(f1.c, f2.c); b = f32[4,3] broadcast(c), dimensions={}; add(x, b)"""
    i = r.instruction
    x, y = i.operands
    if x.opcode != "add" or not may_join(r, i) or is_constant(x.operands[0]):
        return False
    both = two_constants(x.operands[1], y)
    if both is None:
        return False
    return r.replace_with_new(i, "add", (x.operands[0], spread(r, i, r.binary("add", *both))))


@pattern("add", handler="HandleAdd")
def add_constant_to_difference(r: AlgebraRewrite) -> Result:
    """fast math: a = subtract(f1, x); add(a, f2)
    => c = f32[] add(f1.c, f2.c); b = f32[4,3] broadcast(c), dimensions={}; subtract(b, x)"""
    i = r.instruction
    x, y = i.operands
    if x.opcode != "subtract" or not may_join(r, i) or is_constant(x.operands[1]):
        return False
    both = two_constants(x.operands[0], y)
    if both is None:
        return False
    return r.replace_with_new(i, "subtract", (spread(r, i, r.binary("add", *both)), x.operands[1]))


@pattern("add", handler="HandleAdd")
def add_to_difference(r: AlgebraRewrite) -> Result:
    """d = subtract(i, j); add(j, d) => i"""
    i = r.instruction
    if not (is_whole(i) or r.options.enable_fast_math):
        return False
    for x, y in (i.operands, i.operands[::-1]):
        if y.opcode == "subtract" and y.operands[1] is x:
            return r.replace_if_compatible(i, y.operands[0])
    return False


@pattern("add", handler="HandleAdd")
def add_to_update_of_zero(r: AlgebraRewrite) -> Result:
    """v = f32[1,3] slice(y), slice={[0:1], [0:3]};
    d = f32[4,3] dynamic-update-slice(f0, v, n, n); add(x, d) => v = f32[1,3] slice(y), slice={[0:1], [0:3]};
    e = f32[1,3] dynamic-slice(x, n, n), dynamic_slice_sizes={1,3}; g = f32[1,3] add(e, v);
    f32[4,3] dynamic-update-slice(x, g, n, n)"""
    i = r.instruction
    for x, y in (i.operands, i.operands[::-1]):
        if y.opcode != "dynamic-update-slice" or y.operands[0].opcode != "broadcast":
            continue
        zero = y.operands[0].operands[0]
        if not (is_constant(zero) and is_one_element(zero) and is_all(zero, 0)):
            continue
        part, starts = y.operands[1], y.operands[2:]
        sliced = r.create_like(
            x, "dynamic-slice", shape_of(part), (x, *starts), dynamic_slice_sizes=sizes(part)
        )
        total = r.create_like(y, "add", shape_of(part), (sliced, part))
        return r.replace_with_new(i, "dynamic-update-slice", (x, total, *starts), shape_of(x))
    return False


@pattern("add", handler="HandleAdd")
def add_products(r: AlgebraRewrite) -> Result:
    """k = multiply(i, j); l = multiply(j, j); add(k, l) => a = add(i, j); multiply(a, j)"""
    i = r.instruction
    x, y = i.operands
    if x.opcode != "multiply" or y.opcode != "multiply" or not (one_user(x) and one_user(y)):
        return False
    for a, c in (x.operands, x.operands[::-1]):
        if c not in y.operands or not (is_whole(i) or is_power_of_two(c)):
            continue
        b = y.operands[1] if y.operands[0] is c else y.operands[0]
        total = r.create_like(x, "add", shape_of(i), (a, b))
        return r.replace_with_new(i, "multiply", (total, c))
    return False


def is_power_of_two(i: Instruction) -> bool:
    """Returns True if all elements of a value equal one power of two (`IsAllFpConstantPowerOf2`)."""
    c = i.operands[0] if i.opcode == "broadcast" else i
    value = constant_value(c) if is_constant(c) and is_one_element(c) else None
    return value is not None and math.isfinite(value) and abs(math.frexp(value)[0]) == 0.5


@pattern("add", handler="HandleAdd")
def add_into_scatter(r: AlgebraRewrite) -> Result:
    """k = s32[2,1] constant({{0}, {1}}); u = f32[2,3] slice(y), slice={[0:2], [0:3]};
    c = scatter(f0, k, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
    index_vector_dim=1, to_apply=sum; add(x, c)
    => k = s32[2,1] constant({{0}, {1}}); u = f32[2,3] slice(y), slice={[0:2], [0:3]};
    a = add(x, f0); scatter(a, k, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
    index_vector_dim=1, to_apply=sum"""
    if r.options.is_layout_sensitive:
        return False
    x, y = r.instruction.operands
    of_x, of_y = _is_sum_scatter(x), _is_sum_scatter(y)
    if of_x and of_y:
        return False
    scatter, other = (y, x) if of_y else (x, y)
    if not (of_x or of_y):
        return False
    pair = (other, scatter.operands[0]) if of_y else (scatter.operands[0], other)
    total = r.binary("add", *pair)
    return r.set_operands(scatter, (total, *scatter.operands[1:])) and scatter


def _is_sum_scatter(i: Instruction) -> bool:
    if i.opcode != "scatter" or len(i.operands) != 3 or not one_use(i) or not i.called_computations:
        return False
    root = i.called_computations[0].root
    return root.opcode == "add" and all(o.opcode == "parameter" for o in root.operands)


# ---- subtract


@pattern("subtract", handler="HandleSubtract")
def subtract_self(r: AlgebraRewrite) -> Result:
    """subtract(i, i) => i0"""
    i = r.instruction
    x, y = i.operands
    return x is y and (is_whole(i) or r.options.enable_fast_math) and r.scalar_like(i, 0)


@pattern("subtract", handler="HandleSubtract")
def subtract_zero(r: AlgebraRewrite) -> Result:
    """subtract(x, f0) => x"""
    i = r.instruction
    return is_all(i.operands[1], 0) and r.replace_if_compatible(i, i.operands[0])


@pattern("subtract", handler="HandleSubtract")
def subtract_constant(r: AlgebraRewrite) -> Result:
    """subtract(x, f2) => m = f32[] negate(f2.c); b = f32[4,3] broadcast(m), dimensions={}; add(x, b)"""
    x, y = r.instruction.operands
    if is_constant(x):
        return False
    if is_constant(y):
        negative = r.create_like(y, "negate", shape_of(y), (y,))
    elif y.opcode == "broadcast" and is_constant(y.operands[0]):
        c = y.operands[0]
        negative = r.create_like(c, "negate", shape_of(c), (c,))
        negative = r.create_like(c, "broadcast", shape_of(y), (negative,), dimensions=dims(y))
    else:
        return False
    return r.replace_with_new(r.instruction, "add", (x, negative))


@pattern("subtract", handler="HandleSubtract")
def subtract_difference(r: AlgebraRewrite) -> Result:
    """d = subtract(i, j); subtract(i, d) => j"""
    i = r.instruction
    x, y = i.operands
    fits = y.opcode == "subtract" and y.operands[0] is x and (is_whole(i) or r.options.enable_fast_math)
    return fits and r.replace_if_compatible(i, y.operands[1])


@pattern("subtract", handler="HandleSubtract")
def subtract_sum(r: AlgebraRewrite) -> Result:
    """t = add(i, j); subtract(i, t) => negate(j)"""
    i = r.instruction
    x, y = i.operands
    if y.opcode != "add" or x not in y.operands or not (is_whole(i) or r.options.enable_fast_math):
        return False
    return r.replace_with_new(i, "negate", (y.operands[1] if y.operands[0] is x else y.operands[0],))


@pattern("subtract", handler="HandleSubtract")
def subtract_from_sum(r: AlgebraRewrite) -> Result:
    """t = add(i, j); subtract(t, j) => i"""
    i = r.instruction
    x, y = i.operands
    if x.opcode != "add" or y not in x.operands or not (is_whole(i) or r.options.enable_fast_math):
        return False
    return r.replace_if_compatible(i, x.operands[0] if x.operands[1] is y else x.operands[1])
