"""Rules about reductions."""

from __future__ import annotations

import math

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.rewrite.passes.algebra.chains import is_elementwise
from hlotext.rewrite.passes.algebra.engine import (
    Simplifier,
    array_of,
    count,
    dims,
    is_all,
    is_constant,
    is_empty,
    is_one_element,
    is_scalar,
    rule,
    shape_of,
    sizes,
    type_of,
    without_dimensions,
)
from hlotext.rewrite.passes.cse import Contents
from hlotext.rewrite.passes.dimensions import unmodified
from hlotext.rewrite.passes.reshape_mover import transposed


def _function(i: Instruction) -> Computation:
    found: Computation = i.attributes["to_apply"]
    return found


def applies(i: Instruction, *opcodes: str) -> str | None:
    """The opcode of what a reduction does with two numbers, if it is one of these and nothing else."""
    function = _function(i)
    root = function.root
    if root.opcode not in opcodes or len(root.operands) != 2:
        return None
    numbers = sorted(o.parameter_number if o.opcode == "parameter" else -1 for o in root.operands)  # type: ignore[type-var]
    return root.opcode if numbers == [0, 1] else None


def _is_single(i: Instruction) -> bool:
    return len(i.operands) == 2 and not shape_of(i).is_tuple


@rule("reduce", handler="HandleReduce")
def reduce_of_nothing(s: Simplifier, i: Instruction) -> bool:
    """k = f32[0,3] slice(x), slice={[0:0], [0:3]}; f32[3] reduce(k, s), dimensions={0}, to_apply=sum
    => f32[3] broadcast(s), dimensions={}"""
    half = len(i.operands) // 2
    first = shape_of(i).tuple_shapes[0] if shape_of(i).is_tuple else shape_of(i)
    if not is_empty(i.operands[0]) and 0 not in first.dimensions:
        return False
    inits = i.operands[half:]
    if not shape_of(i).is_tuple:
        return s.replace_with_new(i, "broadcast", inits, dimensions=())
    parts = [
        s.create_like(init, "broadcast", shape, (init,), dimensions=())
        for init, shape in zip(inits, shape_of(i).tuple_shapes, strict=True)
    ]
    return s.replace_with_new(i, "tuple", parts)


@rule("reduce", handler="HandleReduce")
def reduce_of_ones(s: Simplifier, i: Instruction) -> bool:
    """k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[3] reduce(k, s), dimensions={0}, to_apply=sum
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[3] reshape(k)"""
    x = i.operands[0]
    shapes = shape_of(i).tuple_shapes if shape_of(i).is_tuple else (shape_of(i),)
    if shapes[0].element_count != count(x):
        return False
    if s.options.is_layout_sensitive and not s.reshape_is_bitcast(shape_of(x), shapes[0]):
        return False
    if not shape_of(i).is_tuple:
        return s.replace_with_new(i, "reshape", (x,))
    parts = [s.create_like(i, "reshape", shape, (o,)) for o, shape in zip(i.operands, shapes, strict=False)]
    return s.replace_with_new(i, "tuple", parts)


@rule("reduce", handler="HandleReduce")
def reduce_of_negated(s: Simplifier, i: Instruction) -> bool:
    """z = f32[] constant(0); m = negate(x); f32[4] reduce(m, z), dimensions={1}, to_apply=sum
    => z = f32[] constant(0); r = f32[4] reduce(x, z), dimensions={1}, to_apply=sum; f32[4] negate(r)"""
    x = i.operands[0]
    if (
        s.options.is_layout_sensitive
        or not _is_single(i)
        or not type_of(i).is_floating
        or x.opcode != "negate"
    ):
        return False
    init = i.operands[1]
    if not (is_constant(init) and is_one_element(init) and is_all(init, 0)) or not applies(i, "add"):
        return False
    if not s.set_operands(i, (x.operands[0], init)):
        return False
    negated = s.create_like(x, "negate", shape_of(i), (i,))
    return s.replace_uses(i, negated) or True


@rule("reduce", handler="HandleReduce")
def reduce_of_transpose(s: Simplifier, i: Instruction) -> bool:
    """t = f32[3,4] transpose(x), dimensions={1,0}; f32[3] reduce(t, s), dimensions={1}, to_apply=sum
    => f32[3] reduce(x, s), dimensions={0}, to_apply=sum"""
    t = i.operands[0]
    if s.options.is_layout_sensitive or not _is_single(i) or t.opcode != "transpose":
        return False
    free = s.options.unconditionally_simplify_reduce_of_transpose_or_reshape
    if not (free or len(sizes(i)) < 2 or len(t.users) == 1 or all(u.opcode == "reduce" for u in t.users)):
        return False
    order, inner = dims(t), t.operands[0]
    reduced = tuple(order[d] for d in dims(i))
    shape = without_dimensions(shape_of(inner), reduced)
    new = s.create_like(i, "reduce", shape, (inner, i.operands[1]), dimensions=reduced, to_apply=_function(i))
    kept = [d for d in order if d not in reduced]
    if kept == sorted(kept):
        return s.replace_with(i, new)
    places = tuple(d - sum(r < d for r in reduced) for d in kept)
    turned = s.create_like(new, "transpose", transposed(shape_of(new), places), (new,), dimensions=places)
    return s.replace_with(i, turned)


@rule("reduce", handler="MergeReduces")
def reduce_twice(s: Simplifier, i: Instruction) -> bool:
    """r = f32[4] reduce(x, s), dimensions={1}, to_apply=sum; f32[] reduce(r, s), dimensions={0}, to_apply=sum
    => f32[] reduce(x, s), dimensions={0,1}, to_apply=sum"""
    x = i.operands[0]
    if s.options.is_layout_sensitive or not _is_single(i) or x.opcode != "reduce" or not _is_single(x):
        return False
    a, b = i.operands[1], x.operands[1]
    alike = a is b or (
        is_constant(a) and is_constant(b) and a.literal == b.literal and shape_of(a) == shape_of(b)
    )
    if not alike or not _same_function(i, x):
        return False
    inner, outer = sorted(dims(x)), sorted(dims(i))
    for d in inner:
        outer = [o + (o >= d) for o in outer]
    merged = tuple(sorted(inner + outer))
    return s.replace_with_new(i, "reduce", (x.operands[0], a), dimensions=merged, to_apply=_function(i))


def _same_function(a: Instruction, b: Instruction) -> bool:
    contents = Contents()
    if contents.number(_function(a)) == contents.number(_function(b)):
        return True
    kind = applies(a, "add", "multiply", "and", "or")
    return kind is not None and kind == applies(b, "add", "multiply", "and", "or")


@rule("reduce", handler="HandleReduce")
def reduce_of_reshape(s: Simplifier, i: Instruction) -> bool:
    """r = f32[12] reshape(x); f32[] reduce(r, s), dimensions={0}, to_apply=sum
    => f32[] reduce(x, s), dimensions={0,1}, to_apply=sum"""
    r = i.operands[0]
    if s.options.is_layout_sensitive or not _is_single(i) or r.opcode != "reshape":
        return False
    inner, init = r.operands[0], i.operands[1]
    same = unmodified(sizes(inner), sizes(r))
    places = {b: a for a, b in same}
    reduced = set(dims(i))
    if all(d in places for d in range(len(sizes(r))) if d not in reduced):
        kept = {a for a, b in same if b not in reduced}
        new = tuple(d for d in range(len(sizes(inner))) if d not in kept)
        return s.replace_with_new(i, "reduce", (inner, init), dimensions=new, to_apply=_function(i))
    free = s.options.unconditionally_simplify_reduce_of_transpose_or_reshape
    if not (len(r.users) == 1 or free) or not all(d in places for d in reduced):
        return False
    new = tuple(places[d] for d in dims(i))
    shape = without_dimensions(shape_of(inner), new)
    total = s.create("reduce", shape, (inner, init), dimensions=new, to_apply=_function(i))
    return s.replace_with(i, s.reshape(shape_of(i), total))


@rule("reduce", handler="HandleReduce")
def reduce_of_joined(s: Simplifier, i: Instruction) -> bool:
    """c = f32[8,3] concatenate(x, y), dimensions={0}; f32[3] reduce(c, s), dimensions={0}, to_apply=sum
    => k = f32[3] reduce(x, s), dimensions={0}, to_apply=sum; l = f32[3] reduce(y, s), dimensions={0}, to_apply=sum;
    f32[3] map(k, l), dimensions={0}, to_apply=sum"""
    c = i.operands[0]
    if (
        s.options.is_layout_sensitive
        or not _is_single(i)
        or c.opcode != "concatenate"
        or dims(c)[0] not in dims(i)
    ):
        return False
    same = all(sizes(o) == sizes(c.operands[0]) for o in c.operands)
    if not (s.options.enable_unconditional_reduce_of_concat_replacement or same or not sizes(i)):
        return False
    total = None
    for part in c.operands:
        new = s.create_like(
            i, "reduce", shape_of(i), (part, i.operands[1]), dimensions=dims(i), to_apply=_function(i)
        )
        if total is not None:
            every = tuple(range(len(sizes(i))))
            new = s.create_like(i, "map", shape_of(i), (total, new), dimensions=every, to_apply=_function(i))
        total = new
    return total is not None and s.replace_with(i, total)


@rule("reduce", handler="HandleReduce")
def reduce_to_extreme_of_both(s: Simplifier, i: Instruction) -> bool:
    """b = f32[4,3] broadcast(s), dimensions={}; z = f32[] constant(0);
    f32[] reduce(b, z), dimensions={0,1}, to_apply=largest
    => z = f32[] constant(0); f32[] maximum(s, z)"""
    b = i.operands[0]
    if (
        s.options.is_layout_sensitive
        or not _is_single(i)
        or b.opcode != "broadcast"
        or not is_scalar(b.operands[0])
    ):
        return False
    opcode = applies(i, "maximum", "minimum", "and", "or")
    if opcode is None or len(dims(i)) != len(sizes(b)):
        return False
    return s.replace_with_new(i, opcode, (b.operands[0], i.operands[1]))


@rule("reduce", handler="HandleReduce")
def reduce_with_known_extreme(s: Simplifier, i: Instruction) -> bool:
    """k = s32[4,3] iota(), iota_dimension=1; low = f32[] constant(-inf); z = s32[] constant(0);
    m = (f32[4], s32[4]) reduce(x, k, low, z), dimensions={1}, to_apply=argmax;
    f = f32[4] reduce(x, low), dimensions={1}, to_apply=largest; g = f32[4] get-tuple-element(m), index=0; f32[4] add(f, g)
    => k = s32[4,3] iota(), iota_dimension=1; low = f32[] constant(-inf); z = s32[] constant(0);
    m = (f32[4], s32[4]) reduce(x, k, low, z), dimensions={1}, to_apply=argmax;
    f = f32[4] get-tuple-element(m), index=0; g = f32[4] get-tuple-element(m), index=0; f32[4] add(f, g)"""
    if s.options.is_layout_sensitive or not _is_single(i):
        return False
    kind = applies(i, "maximum", "minimum")
    init = i.operands[1]
    array = array_of(init)
    if kind is None or array is None or array.size != 1 or not type_of(init).is_floating:
        return False
    if float(array.reshape(-1)[0]) != (-math.inf if kind == "maximum" else math.inf):
        return False
    for user in i.operands[0].users:
        if (
            user is not i
            and _is_arg_extreme(user, kind)
            and user.operands[0] is i.operands[0]
            and dims(user) == dims(i)
        ):
            return s.replace_with_new(i, "get-tuple-element", (user,), index=0)
    return False


def _is_arg_extreme(i: Instruction, kind: str) -> bool:
    """`MatchArgMax` and `MatchArgMin`."""
    if i.opcode != "reduce" or len(i.operands) != 4 or i.operands[1].opcode != "iota":
        return False
    low = array_of(i.operands[2])
    if low is None or low.size != 1 or not type_of(i.operands[2]).is_floating:
        return False
    if float(low.reshape(-1)[0]) != (-math.inf if kind == "maximum" else math.inf):
        return False
    if not (is_constant(i.operands[3]) and is_all(i.operands[3], 0)):
        return False
    root = _function(i).root
    if root.opcode != "tuple" or [o.opcode for o in root.operands] != ["select", "select"]:
        return False
    better = "GT" if kind == "maximum" else "LT"

    def parameter(x: Instruction, number: int) -> bool:
        return x.opcode == "parameter" and x.parameter_number == number

    def compares(x: Instruction, a: int, b: int, direction: str) -> bool:
        return (
            x.opcode == "compare"
            and str(x.attributes["direction"]) == direction
            and parameter(x.operands[0], a)
            and parameter(x.operands[1], b)
        )

    def either(x: Instruction) -> bool:
        if x.opcode != "or":
            return False
        a, b = x.operands
        return any(compares(p, 0, 2, better) and compares(q, 0, 0, "NE") for p, q in ((a, b), (b, a)))

    def tie(x: Instruction) -> bool:
        return (
            x.opcode == "and" and compares(x.operands[0], 0, 2, "EQ") and compares(x.operands[1], 1, 3, "LT")
        )

    first, second = root.operands
    if not (
        either(first.operands[0]) and parameter(first.operands[1], 0) and parameter(first.operands[2], 2)
    ):
        return False
    chosen = second.operands[0]
    fits = chosen.opcode == "or" and any(
        either(a) and tie(b) for a, b in (chosen.operands, chosen.operands[::-1])
    )
    return fits and parameter(second.operands[1], 1) and parameter(second.operands[2], 3)


@rule("reduce", handler="HandleReduce")
def reduce_before_broadcast(s: Simplifier, i: Instruction) -> bool:
    """b = f32[4,3,5] broadcast(x), dimensions={0,1}; f32[4,5] reduce(b, s), dimensions={1}, to_apply=sum
    => r = f32[4] reduce(x, s), dimensions={1}, to_apply=sum; f32[4,5] broadcast(r), dimensions={0}"""
    b = i.operands[0]
    if s.options.is_layout_sensitive or not _is_single(i) or b.opcode != "broadcast":
        return False
    inner = b.operands[0]
    if any(d not in dims(b) for d in dims(i)):
        return False
    reduced = tuple(dims(b).index(d) for d in dims(i))
    shape = without_dimensions(shape_of(inner), reduced)
    total = s.create_like(
        i, "reduce", shape, (inner, i.operands[1]), dimensions=reduced, to_apply=_function(i)
    )
    places = tuple(d - sum(r < d for r in dims(i)) for n, d in enumerate(dims(b)) if n not in reduced)
    return s.replace_with_new(i, "broadcast", (total,), dimensions=places)


@rule("reduce", handler="HandleReduce")
def reduce_of_repeated(s: Simplifier, i: Instruction) -> bool:
    """b = f32[4,3,5] broadcast(x), dimensions={0,1}; f32[4,3] reduce(b, s), dimensions={2}, to_apply=sum
    => k = f32[] constant(5); l = f32[4,3] broadcast(k), dimensions={}; m = multiply(x, l);
    c = f32[4,3] broadcast(s), dimensions={};
    a = add(c, m); f32[4,3] broadcast(a), dimensions={0,1}"""
    b = i.operands[0]
    if s.options.is_layout_sensitive or not _is_single(i) or b.opcode != "broadcast" or not applies(i, "add"):
        return False
    if list(dims(b)) != sorted(dims(b)) or any(d in dims(b) for d in dims(i)):
        return False
    inner, init = b.operands[0], i.operands[1]
    repeated = math.prod(sizes(b)[d] for d in dims(i))
    product = s.binary("multiply", inner, s.scalar_like(inner, repeated))
    spread = s.create("broadcast", shape_of(product), (init,), dimensions=())
    total = s.binary("add", spread, product)
    places = tuple(d - sum(r < d for r in dims(i)) for d in dims(b))
    return s.replace_with_new(
        i, "broadcast", (total,), without_dimensions(shape_of(b), dims(i)), dimensions=places
    )


@rule("map", handler="HandleMap")
def map_of_operation(s: Simplifier, i: Instruction) -> bool:
    """map(x, y), dimensions={0,1}, to_apply=sum => add(x, y)"""
    root = _function(i).root
    if root.opcode == "parameter":
        return s.replace_if_compatible(i, i.operands[root.parameter_number or 0])
    if root.opcode == "constant":
        if not is_scalar(root):
            return False
        copy = s.create_like(i, "constant", shape_of(root), literal=root.literal)
        return (
            s.replace_with(i, copy)
            if is_scalar(i)
            else s.replace_with_new(i, "broadcast", (copy,), dimensions=())
        )
    if not is_elementwise(root) or any(o.opcode != "parameter" for o in root.operands):
        return False
    operands = [i.operands[o.parameter_number or 0] for o in root.operands]
    return s.replace_with(i, s.clone(root, operands, shape_of(i)))
