"""Rules about reductions."""

from __future__ import annotations

import math

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.rewrite.kit.facts import (
    array_of,
    count,
    dims,
    is_all,
    is_constant,
    is_empty,
    is_one_element,
    is_scalar,
    shape_of,
    sizes,
    type_of,
    without_dimensions,
)
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.cleanup.cse import Contents
from hlotext.rewrite.passes.simplify.algebra.chains import is_elementwise
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite
from hlotext.rewrite.passes.simplify.dimensions import unmodified
from hlotext.rewrite.passes.simplify.reshape_mover import transposed


def _function(i: Instruction) -> Computation:
    found: Computation = i.attributes["to_apply"]
    return found


def applies(i: Instruction, *opcodes: str) -> str | None:
    """Returns the opcode of the single operation that a reducer applies, if it is one of these; otherwise None."""
    function = _function(i)
    root = function.root
    if root.opcode not in opcodes or len(root.operands) != 2:
        return None
    numbers = sorted(o.parameter_number if o.opcode == "parameter" else -1 for o in root.operands)  # type: ignore[type-var]
    return root.opcode if numbers == [0, 1] else None


def _is_single(i: Instruction) -> bool:
    return len(i.operands) == 2 and not shape_of(i).is_tuple


@pattern("reduce", handler="HandleReduce")
def reduce_of_nothing(r: AlgebraRewrite) -> Result:
    """k = f32[0,3] slice(x), slice={[0:0], [0:3]}; f32[3] reduce(k, s), dimensions={0}, to_apply=sum
    => f32[3] broadcast(s), dimensions={}"""
    i = r.instruction
    half = len(i.operands) // 2
    first = shape_of(i).tuple_shapes[0] if shape_of(i).is_tuple else shape_of(i)
    if not is_empty(i.operands[0]) and 0 not in first.dimensions:
        return False
    inits = i.operands[half:]
    if not shape_of(i).is_tuple:
        return r.replace_with_new(i, "broadcast", inits, dimensions=())
    parts = [
        r.create_like(init, "broadcast", shape, (init,), dimensions=())
        for init, shape in zip(inits, shape_of(i).tuple_shapes, strict=True)
    ]
    return r.replace_with_new(i, "tuple", parts)


@pattern("reduce", handler="HandleReduce")
def reduce_of_ones(r: AlgebraRewrite) -> Result:
    """k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[3] reduce(k, s), dimensions={0}, to_apply=sum
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[3] reshape(k)"""
    i = r.instruction
    x = i.operands[0]
    shapes = shape_of(i).tuple_shapes if shape_of(i).is_tuple else (shape_of(i),)
    if shapes[0].element_count != count(x):
        return False
    if r.options.is_layout_sensitive and not r.reshape_is_bitcast(shape_of(x), shapes[0]):
        return False
    if not shape_of(i).is_tuple:
        return r.replace_with_new(i, "reshape", (x,))
    parts = [r.create_like(i, "reshape", shape, (o,)) for o, shape in zip(i.operands, shapes, strict=False)]
    return r.replace_with_new(i, "tuple", parts)


@pattern("reduce", handler="HandleReduce")
def reduce_of_negated(r: AlgebraRewrite) -> Result:
    """z = f32[] constant(0); m = negate(x); f32[4] reduce(m, z), dimensions={1}, to_apply=sum
    => z = f32[] constant(0); r = f32[4] reduce(x, z), dimensions={1}, to_apply=sum; f32[4] negate(r)"""
    i = r.instruction
    x = i.operands[0]
    if (
        r.options.is_layout_sensitive
        or not _is_single(i)
        or not type_of(i).is_floating
        or x.opcode != "negate"
    ):
        return False
    init = i.operands[1]
    if not (is_constant(init) and is_one_element(init) and is_all(init, 0)) or not applies(i, "add"):
        return False
    if not r.set_operands(i, (x.operands[0], init)):
        return False
    negated = r.create_like(x, "negate", shape_of(i), (i,))
    return r.replace_uses(i, negated) or True


@pattern("reduce", handler="HandleReduce")
def reduce_of_transpose(r: AlgebraRewrite) -> Result:
    """t = f32[3,4] transpose(x), dimensions={1,0}; f32[3] reduce(t, s), dimensions={1}, to_apply=sum
    => f32[3] reduce(x, s), dimensions={0}, to_apply=sum"""
    i = r.instruction
    t = i.operands[0]
    if r.options.is_layout_sensitive or not _is_single(i) or t.opcode != "transpose":
        return False
    free = r.options.unconditionally_simplify_reduce_of_transpose_or_reshape
    if not (free or len(sizes(i)) < 2 or len(t.users) == 1 or all(u.opcode == "reduce" for u in t.users)):
        return False
    order, inner = dims(t), t.operands[0]
    reduced = tuple(order[d] for d in dims(i))
    shape = without_dimensions(shape_of(inner), reduced)
    new = r.create_like(i, "reduce", shape, (inner, i.operands[1]), dimensions=reduced, to_apply=_function(i))
    kept = [d for d in order if d not in reduced]
    if kept == sorted(kept):
        return new
    places = tuple(d - sum(n < d for n in reduced) for d in kept)
    return r.create_like(new, "transpose", transposed(shape_of(new), places), (new,), dimensions=places)


@pattern("reduce", handler="MergeReduces")
def reduce_twice(r: AlgebraRewrite) -> Result:
    """r = f32[4] reduce(x, s), dimensions={1}, to_apply=sum; f32[] reduce(r, s), dimensions={0}, to_apply=sum
    => f32[] reduce(x, s), dimensions={0,1}, to_apply=sum"""
    i = r.instruction
    x = i.operands[0]
    if r.options.is_layout_sensitive or not _is_single(i) or x.opcode != "reduce" or not _is_single(x):
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
    return r.replace_with_new(i, "reduce", (x.operands[0], a), dimensions=merged, to_apply=_function(i))


def _same_function(a: Instruction, b: Instruction) -> bool:
    contents = Contents()
    if contents.number(_function(a)) == contents.number(_function(b)):
        return True
    kind = applies(a, "add", "multiply", "and", "or")
    return kind is not None and kind == applies(b, "add", "multiply", "and", "or")


@pattern("reduce", handler="HandleReduce")
def reduce_of_reshape(r: AlgebraRewrite) -> Result:
    """r = f32[12] reshape(x); f32[] reduce(r, s), dimensions={0}, to_apply=sum
    => f32[] reduce(x, s), dimensions={0,1}, to_apply=sum"""
    i = r.instruction
    x = i.operands[0]
    if r.options.is_layout_sensitive or not _is_single(i) or x.opcode != "reshape":
        return False
    inner, init = x.operands[0], i.operands[1]
    same = unmodified(sizes(inner), sizes(x))
    places = {b: a for a, b in same}
    reduced = set(dims(i))
    if all(d in places for d in range(len(sizes(x))) if d not in reduced):
        kept = {a for a, b in same if b not in reduced}
        new = tuple(d for d in range(len(sizes(inner))) if d not in kept)
        return r.replace_with_new(i, "reduce", (inner, init), dimensions=new, to_apply=_function(i))
    free = r.options.unconditionally_simplify_reduce_of_transpose_or_reshape
    if not (len(x.users) == 1 or free) or not all(d in places for d in reduced):
        return False
    new = tuple(places[d] for d in dims(i))
    shape = without_dimensions(shape_of(inner), new)
    total = r.create("reduce", shape, (inner, init), dimensions=new, to_apply=_function(i))
    return r.reshape(shape_of(i), total)


@pattern("reduce", handler="HandleReduce")
def reduce_of_joined(r: AlgebraRewrite) -> Result:
    """c = f32[8,3] concatenate(x, y), dimensions={0}; f32[3] reduce(c, s), dimensions={0}, to_apply=sum
    => k = f32[3] reduce(x, s), dimensions={0}, to_apply=sum; l = f32[3] reduce(y, s), dimensions={0}, to_apply=sum;
    f32[3] map(k, l), dimensions={0}, to_apply=sum"""
    i = r.instruction
    c = i.operands[0]
    if (
        r.options.is_layout_sensitive
        or not _is_single(i)
        or c.opcode != "concatenate"
        or dims(c)[0] not in dims(i)
    ):
        return False
    same = all(sizes(o) == sizes(c.operands[0]) for o in c.operands)
    if not (r.options.enable_unconditional_reduce_of_concat_replacement or same or not sizes(i)):
        return False
    total = None
    for part in c.operands:
        new = r.create_like(
            i, "reduce", shape_of(i), (part, i.operands[1]), dimensions=dims(i), to_apply=_function(i)
        )
        if total is not None:
            every = tuple(range(len(sizes(i))))
            new = r.create_like(i, "map", shape_of(i), (total, new), dimensions=every, to_apply=_function(i))
        total = new
    return total is not None and total


@pattern("reduce", handler="HandleReduce")
def reduce_to_extreme_of_both(r: AlgebraRewrite) -> Result:
    """b = f32[4,3] broadcast(s), dimensions={}; z = f32[] constant(0);
    f32[] reduce(b, z), dimensions={0,1}, to_apply=largest
    => z = f32[] constant(0); f32[] maximum(s, z)"""
    i = r.instruction
    b = i.operands[0]
    if (
        r.options.is_layout_sensitive
        or not _is_single(i)
        or b.opcode != "broadcast"
        or not is_scalar(b.operands[0])
    ):
        return False
    opcode = applies(i, "maximum", "minimum", "and", "or")
    if opcode is None or len(dims(i)) != len(sizes(b)):
        return False
    return r.replace_with_new(i, opcode, (b.operands[0], i.operands[1]))


@pattern("reduce", handler="HandleReduce")
def reduce_with_known_extreme(r: AlgebraRewrite) -> Result:
    """k = s32[4,3] iota(), iota_dimension=1; low = f32[] constant(-inf); z = s32[] constant(0);
    m = (f32[4], s32[4]) reduce(x, k, low, z), dimensions={1}, to_apply=argmax;
    f = f32[4] reduce(x, low), dimensions={1}, to_apply=largest; g = f32[4] get-tuple-element(m), index=0; f32[4] add(f, g)
    => k = s32[4,3] iota(), iota_dimension=1; low = f32[] constant(-inf); z = s32[] constant(0);
    m = (f32[4], s32[4]) reduce(x, k, low, z), dimensions={1}, to_apply=argmax;
    f = f32[4] get-tuple-element(m), index=0; g = f32[4] get-tuple-element(m), index=0; f32[4] add(f, g)"""
    i = r.instruction
    if r.options.is_layout_sensitive or not _is_single(i):
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
            return r.replace_with_new(i, "get-tuple-element", (user,), index=0)
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


@pattern("reduce", handler="HandleReduce")
def reduce_before_broadcast(r: AlgebraRewrite) -> Result:
    """b = f32[4,3,5] broadcast(x), dimensions={0,1}; f32[4,5] reduce(b, s), dimensions={1}, to_apply=sum
    => r = f32[4] reduce(x, s), dimensions={1}, to_apply=sum; f32[4,5] broadcast(r), dimensions={0}"""
    i = r.instruction
    b = i.operands[0]
    if r.options.is_layout_sensitive or not _is_single(i) or b.opcode != "broadcast":
        return False
    inner = b.operands[0]
    if any(d not in dims(b) for d in dims(i)):
        return False
    reduced = tuple(dims(b).index(d) for d in dims(i))
    shape = without_dimensions(shape_of(inner), reduced)
    total = r.create_like(
        i, "reduce", shape, (inner, i.operands[1]), dimensions=reduced, to_apply=_function(i)
    )
    places = tuple(d - sum(span < d for span in dims(i)) for n, d in enumerate(dims(b)) if n not in reduced)
    return r.replace_with_new(i, "broadcast", (total,), dimensions=places)


@pattern("reduce", handler="HandleReduce")
def reduce_of_repeated(r: AlgebraRewrite) -> Result:
    """b = f32[4,3,5] broadcast(x), dimensions={0,1}; f32[4,3] reduce(b, s), dimensions={2}, to_apply=sum
    => k = f32[] constant(5); l = f32[4,3] broadcast(k), dimensions={}; m = multiply(x, l);
    c = f32[4,3] broadcast(s), dimensions={};
    a = add(c, m); f32[4,3] broadcast(a), dimensions={0,1}"""
    i = r.instruction
    b = i.operands[0]
    if r.options.is_layout_sensitive or not _is_single(i) or b.opcode != "broadcast" or not applies(i, "add"):
        return False
    if list(dims(b)) != sorted(dims(b)) or any(d in dims(b) for d in dims(i)):
        return False
    inner, init = b.operands[0], i.operands[1]
    repeated = math.prod(sizes(b)[d] for d in dims(i))
    product = r.binary("multiply", inner, r.scalar_like(inner, repeated))
    spread = r.create("broadcast", shape_of(product), (init,), dimensions=())
    total = r.binary("add", spread, product)
    places = tuple(d - sum(span < d for span in dims(i)) for d in dims(b))
    return r.replace_with_new(
        i, "broadcast", (total,), without_dimensions(shape_of(b), dims(i)), dimensions=places
    )


@pattern("map", handler="HandleMap")
def map_of_operation(r: AlgebraRewrite) -> Result:
    """map(x, y), dimensions={0,1}, to_apply=sum => add(x, y)"""
    i = r.instruction
    root = _function(i).root
    if root.opcode == "parameter":
        return r.replace_if_compatible(i, i.operands[root.parameter_number or 0])
    if root.opcode == "constant":
        if not is_scalar(root):
            return False
        copy = r.create_like(i, "constant", shape_of(root), argument=root.literal)
        return (
            r.replace(i, copy) if is_scalar(i) else r.replace_with_new(i, "broadcast", (copy,), dimensions=())
        )
    if not is_elementwise(root) or any(o.opcode != "parameter" for o in root.operands):
        return False
    operands = [i.operands[o.parameter_number or 0] for o in root.operands]
    return r.clone(root, operands, shape_of(i))
