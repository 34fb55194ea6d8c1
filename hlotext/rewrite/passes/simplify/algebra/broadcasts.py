"""Rules about constants, tuples and broadcasts."""

from __future__ import annotations

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import UNBOUNDED_SIZE, Shape
from hlotext.layout.permutations import inverse
from hlotext.rewrite.kit.builder import retyped
from hlotext.rewrite.kit.facts import (
    array_of,
    count,
    dims,
    is_scalar,
    is_unused,
    shape_of,
    sizes,
    static,
    type_of,
    without_ones,
)
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.simplify.algebra.chains import is_elementwise
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite
from hlotext.rewrite.passes.simplify.dimensions import only_ones_moved

# ---- constants


@pattern("constant", handler="HandleConstant")
def constant_of_one_number(r: AlgebraRewrite) -> Result:
    """s32[2] constant({7, 7}) => c = s32[] constant(7); s32[2] broadcast(c), dimensions={}"""
    i = r.instruction
    array = array_of(i)
    if array is None or array.size < 2:
        return False
    flat = array.reshape(-1)
    bits = flat.view("u1").reshape(len(flat), -1) if flat.dtype != bool else flat.reshape(-1, 1)
    if not (bits == bits[0]).all():
        return False
    shape = Shape(type_of(i))
    scalar = r.create_like(i, "constant", shape, argument=Literal.from_array(flat[:1].reshape(()), shape))
    return r.create_like(i, "broadcast", shape_of(i), (scalar,), dimensions=())


@pattern("constant", handler="HandleConstant")
def constant_that_counts(r: AlgebraRewrite) -> Result:
    """s32[3] constant({0, 1, 2}) => s32[3] iota(), iota_dimension=0"""
    i = r.instruction
    array = array_of(i)
    if (
        array is None
        or array.ndim != 1
        or array.size < 2
        or not (type_of(i).is_integral or type_of(i).is_floating)
    ):
        return False
    numbers = array.tolist()
    step = numbers[1]
    if numbers[0] != 0 or step == 0 or (step != 1 and not type_of(i).is_integral):
        return False
    if any(x != n * step for n, x in enumerate(numbers)):
        return False
    if step == 1:
        return r.replace_with_new(i, "iota", (), iota_dimension=0)
    stride = r.scalar_like(i, step)
    return r.replace_with_new(
        i, "multiply", (r.create_like(i, "iota", shape_of(i), iota_dimension=0), stride)
    )


@pattern("iota", handler="HandleIota")
def iota_of_one(r: AlgebraRewrite) -> Result:
    """s32[1,3] iota(), iota_dimension=0 => c = s32[] constant(0); s32[1,3] broadcast(c), dimensions={}"""
    i = r.instruction
    return sizes(i)[i.attributes["iota_dimension"]] <= 1 and r.scalar_like(i, 0)


# ---- tuples


@pattern("get-tuple-element", handler="HandleGetTupleElement")
def element_of_tuple(r: AlgebraRewrite) -> Result:
    """t = (f32[4,3], s32[]) tuple(x, n); f32[4,3] get-tuple-element(t), index=0 => x"""
    i = r.instruction
    t = i.operands[0]
    return t.opcode == "tuple" and r.replace_if_compatible(i, t.operands[i.attributes["index"]])


@pattern("opt-barrier", handler="HandleOptimizationBarrier")
def barrier_of_unused(r: AlgebraRewrite) -> Result:
    """m = negate(y); t = (f32[4,3], f32[4,3]) tuple(x, m); c = (f32[4,3], f32[4,3]) opt-barrier(t);
    f32[4,3] get-tuple-element(c), index=0 => t = (f32[4,3]) tuple(x); c = (f32[4,3]) opt-barrier(t);
    f32[4,3] get-tuple-element(c), index=0"""
    i = r.instruction
    if not shape_of(i).is_tuple or i.is_root or any(u.opcode != "get-tuple-element" for u in i.users):
        return False
    used = {user.attributes["index"] for user in i.users}
    whole = i.operands[0]
    parts = shape_of(i).tuple_shapes
    if whole.opcode == "tuple":
        for n, part in enumerate(whole.operands):
            if len(part.user_view) > 1 or part.is_root or r.has_effect(part):
                used.add(n)
    if len(used) == len(parts):
        return False
    left = sorted(used)
    if whole.opcode == "tuple":
        kept = [whole.operands[n] for n in left]
    else:
        kept = [
            r.create_like(i, "get-tuple-element", shape_of(whole).tuple_shapes[n], (whole,), index=n)
            for n in left
        ]
    shape = Shape.tuple(tuple(shape_of(o) for o in kept))
    new = r.create_like(whole, "tuple", shape, kept)
    i.change(operands=(new,), shape=shape, typed=False)
    for user in i.users:
        index = left.index(user.attributes["index"])
        user.change(attributes={**user.attributes, "index": index}, typed=False)
    if is_unused(whole):
        r.changed = True
    return True


# ---- broadcasts


@pattern("broadcast", handler="HandleBroadcast")
def broadcast_of_as_many(r: AlgebraRewrite) -> Result:
    """f32[4,1,3] broadcast(x), dimensions={0,2} => f32[4,1,3] reshape(x)"""
    i = r.instruction
    x = i.operands[0]
    if UNBOUNDED_SIZE in (*sizes(i), *sizes(x)) or count(i) != count(x):
        return False
    same_rank = len(sizes(i)) == len(sizes(x))
    if list(dims(i)) == sorted(dims(i)) and not (same_rank and r.options.prefers_transposes):
        return r.replace_with_new(i, "reshape", (x,))
    return same_rank and r.replace_with_new(i, "transpose", (x,), dimensions=inverse(dims(i)))


@pattern("broadcast", handler="HandleBroadcast")
def broadcast_of_inserted_ones(r: AlgebraRewrite) -> Result:
    """r = f32[4,1,3] reshape(x); f32[4,5,1,3] broadcast(r), dimensions={0,2,3}
    => f32[4,5,1,3] broadcast(x), dimensions={0,3}"""
    i = r.instruction
    x = i.operands[0]
    if x.opcode != "reshape":
        return False
    moved = only_ones_moved(sizes(x.operands[0]), sizes(x))
    if moved is None or moved[0]:
        return False
    kept = tuple(d for n, d in enumerate(dims(i)) if n not in moved[1])
    return r.replace_with_new(i, "broadcast", x.operands, dimensions=kept)


@pattern("broadcast", handler="TryToSinkBroadcastAfterElementwiseOps")
def broadcast_behind_users(r: AlgebraRewrite) -> Result:
    """b = f32[4,3] broadcast(s), dimensions={}; negate(b)
    => c = f32[] broadcast(s), dimensions={}; d = f32[] negate(c); f32[4,3] broadcast(d), dimensions={}"""
    i = r.instruction
    if is_scalar(i):
        return False
    x = i.operands[0]
    changed = False

    def is_scalar_broadcast(o: Instruction) -> bool:
        return o.opcode == "broadcast" and is_scalar(o.operands[0])

    def fits(o: Instruction) -> bool:
        if is_scalar_broadcast(o):
            return True
        return o.opcode == "broadcast" and shape_of(o.operands[0]) == shape_of(x) and dims(o) == dims(i)

    place = r.place
    for user in i.users:
        if (
            is_unused(user)
            or user.opcode == "copy"
            or not is_elementwise(user)
            or not all(map(fits, user.operands))
        ):
            continue
        r.place = user
        operands = []
        for o in user.operands:
            if is_scalar_broadcast(o):
                shape = retyped(shape_of(x), type_of(o))
                operands.append(r.create_like(o, "broadcast", shape, o.operands, dimensions=()))
            else:
                operands.append(o.operands[0])
        new = r.clone(user, operands, retyped(shape_of(x), type_of(user)))
        r.copy_annotations_from(user, new)
        spread = r.create_like(i, "broadcast", shape_of(user), (new,), dimensions=dims(i))
        changed |= r.replace_uses(user, spread)
    r.place = place
    return changed


_MOVING = traits.REVERSES_OR_PERMUTES | {"reshape"}


@pattern("broadcast", handler="HandleBroadcast")
def broadcast_of_scalar_moved(r: AlgebraRewrite) -> Result:
    """b = f32[4,3] broadcast(s), dimensions={}; f32[2,3] slice(b), slice={[0:2], [0:3]}
    => f32[2,3] broadcast(s), dimensions={}"""
    i = r.instruction
    x = i.operands[0]
    if not is_scalar(x):
        return False
    for user in i.users:
        if is_unused(user):
            continue
        moves = user.opcode in _MOVING or (user.opcode == "sort" and not shape_of(user).is_tuple)
        selects = user.opcode in traits.SLICES and [n for n, o in enumerate(user.operands) if o is i] == [0]
        if moves or selects:
            shape = static(shape_of(user))
            place, r.place = r.place, user
            new = r.create_like(user, "broadcast", shape, (x,), dimensions=())
            r.place = place
            return r.replace_uses(user, new)
    return False


@pattern("broadcast", handler="HandleBroadcast")
def broadcast_of_iota(r: AlgebraRewrite) -> Result:
    """k = s32[4] iota(), iota_dimension=0; s32[4,3] broadcast(k), dimensions={0} => s32[4,3] iota(), iota_dimension=0"""
    i = r.instruction
    x = i.operands[0]
    return x.opcode == "iota" and r.replace_with_new(
        i, "iota", (), iota_dimension=dims(i)[x.attributes["iota_dimension"]]
    )


@pattern("broadcast", handler="HandleBroadcast")
def broadcast_twice(r: AlgebraRewrite) -> Result:
    """k = f32[4] slice(v), slice={[0:4]}; b = f32[4,3] broadcast(k), dimensions={0};
    f32[2,4,3] broadcast(b), dimensions={1,2}
    => k = f32[4] slice(v), slice={[0:4]}; f32[2,4,3] broadcast(k), dimensions={1}"""
    i = r.instruction
    x = i.operands[0]
    if is_scalar(x) or x.opcode != "broadcast":
        return False
    outer = dims(i)
    return r.replace_with_new(i, "broadcast", x.operands, dimensions=tuple(outer[d] for d in dims(x)))


@pattern("broadcast", handler="HandleBroadcast")
def broadcast_of_ones(r: AlgebraRewrite) -> Result:
    """k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[1,3,5] broadcast(k), dimensions={0,1}
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; r = f32[3] reshape(k); f32[1,3,5] broadcast(r), dimensions={1}"""
    i = r.instruction
    x = i.operands[0]
    if r.options.is_layout_sensitive or is_scalar(x) or 1 not in sizes(x):
        return False
    kept = tuple(d for n, d in enumerate(dims(i)) if sizes(x)[n] != 1)
    narrow = r.create_like(x, "reshape", without_ones(shape_of(x)), (x,))
    return r.replace_with_new(i, "broadcast", (narrow,), dimensions=kept)
