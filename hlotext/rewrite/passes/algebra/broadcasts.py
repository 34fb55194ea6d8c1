"""Rules about constants, tuples and broadcasts."""

from __future__ import annotations

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import UNBOUNDED_SIZE, Shape
from hlotext.layout.permutations import inverse
from hlotext.rewrite.builder import retyped
from hlotext.rewrite.passes.algebra.chains import is_elementwise
from hlotext.rewrite.passes.algebra.engine import (
    Simplifier,
    array_of,
    count,
    dims,
    is_scalar,
    rule,
    shape_of,
    sizes,
    static,
    type_of,
    without_ones,
)
from hlotext.rewrite.passes.dimensions import only_ones_moved
from hlotext.rewrite.passes.editor import is_unused

# ---- constants


@rule("constant", handler="HandleConstant")
def constant_of_one_number(s: Simplifier, i: Instruction) -> bool:
    """s32[2] constant({7, 7}) => c = s32[] constant(7); s32[2] broadcast(c), dimensions={}"""
    array = array_of(i)
    if array is None or array.size < 2:
        return False
    flat = array.reshape(-1)
    bits = flat.view("u1").reshape(len(flat), -1) if flat.dtype != bool else flat.reshape(-1, 1)
    if not (bits == bits[0]).all():
        return False
    shape = Shape(type_of(i))
    scalar = s.create_like(i, "constant", shape, literal=Literal.from_array(flat[:1].reshape(()), shape))
    return s.replace_with(i, s.create_like(i, "broadcast", shape_of(i), (scalar,), dimensions=()))


@rule("constant", handler="HandleConstant")
def constant_that_counts(s: Simplifier, i: Instruction) -> bool:
    """s32[3] constant({0, 1, 2}) => s32[3] iota(), iota_dimension=0"""
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
        return s.replace_with_new(i, "iota", (), iota_dimension=0)
    stride = s.scalar_like(i, step)
    return s.replace_with_new(
        i, "multiply", (s.create_like(i, "iota", shape_of(i), iota_dimension=0), stride)
    )


@rule("iota", handler="HandleIota")
def iota_of_one(s: Simplifier, i: Instruction) -> bool:
    """s32[1,3] iota(), iota_dimension=0 => c = s32[] constant(0); s32[1,3] broadcast(c), dimensions={}"""
    return sizes(i)[i.attributes["iota_dimension"]] <= 1 and s.replace_with(i, s.scalar_like(i, 0))


# ---- tuples


@rule("get-tuple-element", handler="HandleGetTupleElement")
def element_of_tuple(s: Simplifier, i: Instruction) -> bool:
    """t = (f32[4,3], s32[]) tuple(x, n); f32[4,3] get-tuple-element(t), index=0 => x"""
    t = i.operands[0]
    return t.opcode == "tuple" and s.replace_if_compatible(i, t.operands[i.attributes["index"]])


@rule("opt-barrier", handler="HandleOptimizationBarrier")
def barrier_of_unused(s: Simplifier, i: Instruction) -> bool:
    """m = negate(y); t = (f32[4,3], f32[4,3]) tuple(x, m); c = (f32[4,3], f32[4,3]) opt-barrier(t);
    f32[4,3] get-tuple-element(c), index=0 => t = (f32[4,3]) tuple(x); c = (f32[4,3]) opt-barrier(t);
    f32[4,3] get-tuple-element(c), index=0"""
    if not shape_of(i).is_tuple or i.is_root or any(u.opcode != "get-tuple-element" for u in i.users):
        return False
    used = {user.attributes["index"] for user in i.users}
    whole = i.operands[0]
    parts = shape_of(i).tuple_shapes
    if whole.opcode == "tuple":
        for n, part in enumerate(whole.operands):
            if len(part.user_view) > 1 or part.is_root or s.has_effect(part):
                used.add(n)
    if len(used) == len(parts):
        return False
    left = sorted(used)
    if whole.opcode == "tuple":
        kept = [whole.operands[n] for n in left]
    else:
        kept = [
            s.create_like(i, "get-tuple-element", shape_of(whole).tuple_shapes[n], (whole,), index=n)
            for n in left
        ]
    shape = Shape.tuple(tuple(shape_of(o) for o in kept))
    new = s.create_like(whole, "tuple", shape, kept)
    i.change(operands=(new,), shape=shape, typed=False)
    for user in i.users:
        index = left.index(user.attributes["index"])
        user.change(attributes={**user.attributes, "index": index}, typed=False)
    if is_unused(whole):
        s.changed = True
    return True


# ---- broadcasts


@rule("broadcast", handler="HandleBroadcast")
def broadcast_of_as_many(s: Simplifier, i: Instruction) -> bool:
    """f32[4,1,3] broadcast(x), dimensions={0,2} => f32[4,1,3] reshape(x)"""
    x = i.operands[0]
    if UNBOUNDED_SIZE in (*sizes(i), *sizes(x)) or count(i) != count(x):
        return False
    same_rank = len(sizes(i)) == len(sizes(x))
    if list(dims(i)) == sorted(dims(i)) and not (same_rank and s.options.prefers_transposes):
        return s.replace_with_new(i, "reshape", (x,))
    return same_rank and s.replace_with_new(i, "transpose", (x,), dimensions=inverse(dims(i)))


@rule("broadcast", handler="HandleBroadcast")
def broadcast_of_inserted_ones(s: Simplifier, i: Instruction) -> bool:
    """r = f32[4,1,3] reshape(x); f32[4,5,1,3] broadcast(r), dimensions={0,2,3}
    => f32[4,5,1,3] broadcast(x), dimensions={0,3}"""
    x = i.operands[0]
    if x.opcode != "reshape":
        return False
    moved = only_ones_moved(sizes(x.operands[0]), sizes(x))
    if moved is None or moved[0]:
        return False
    kept = tuple(d for n, d in enumerate(dims(i)) if n not in moved[1])
    return s.replace_with_new(i, "broadcast", x.operands, dimensions=kept)


@rule("broadcast", handler="TryToSinkBroadcastAfterElementwiseOps")
def broadcast_behind_users(s: Simplifier, i: Instruction) -> bool:
    """b = f32[4,3] broadcast(s), dimensions={}; negate(b)
    => c = f32[] broadcast(s), dimensions={}; d = f32[] negate(c); f32[4,3] broadcast(d), dimensions={}"""
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

    place = s.place
    for user in i.users:
        if (
            is_unused(user)
            or user.opcode == "copy"
            or not is_elementwise(user)
            or not all(map(fits, user.operands))
        ):
            continue
        s.place = user
        operands = []
        for o in user.operands:
            if is_scalar_broadcast(o):
                shape = retyped(shape_of(x), type_of(o))
                operands.append(s.create_like(o, "broadcast", shape, o.operands, dimensions=()))
            else:
                operands.append(o.operands[0])
        new = s.clone(user, operands, retyped(shape_of(x), type_of(user)))
        s.copy_annotations_from(user, new)
        spread = s.create_like(i, "broadcast", shape_of(user), (new,), dimensions=dims(i))
        changed |= s.replace_uses(user, spread)
    s.place = place
    return changed


_MOVING = traits.REVERSES_OR_PERMUTES | {"reshape"}


@rule("broadcast", handler="HandleBroadcast")
def broadcast_of_scalar_moved(s: Simplifier, i: Instruction) -> bool:
    """b = f32[4,3] broadcast(s), dimensions={}; f32[2,3] slice(b), slice={[0:2], [0:3]}
    => f32[2,3] broadcast(s), dimensions={}"""
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
            place, s.place = s.place, user
            new = s.create_like(user, "broadcast", shape, (x,), dimensions=())
            s.place = place
            return s.replace_uses(user, new)
    return False


@rule("broadcast", handler="HandleBroadcast")
def broadcast_of_iota(s: Simplifier, i: Instruction) -> bool:
    """k = s32[4] iota(), iota_dimension=0; s32[4,3] broadcast(k), dimensions={0} => s32[4,3] iota(), iota_dimension=0"""
    x = i.operands[0]
    return x.opcode == "iota" and s.replace_with_new(
        i, "iota", (), iota_dimension=dims(i)[x.attributes["iota_dimension"]]
    )


@rule("broadcast", handler="HandleBroadcast")
def broadcast_twice(s: Simplifier, i: Instruction) -> bool:
    """k = f32[4] slice(v), slice={[0:4]}; b = f32[4,3] broadcast(k), dimensions={0};
    f32[2,4,3] broadcast(b), dimensions={1,2}
    => k = f32[4] slice(v), slice={[0:4]}; f32[2,4,3] broadcast(k), dimensions={1}"""
    x = i.operands[0]
    if is_scalar(x) or x.opcode != "broadcast":
        return False
    outer = dims(i)
    return s.replace_with_new(i, "broadcast", x.operands, dimensions=tuple(outer[d] for d in dims(x)))


@rule("broadcast", handler="HandleBroadcast")
def broadcast_of_ones(s: Simplifier, i: Instruction) -> bool:
    """k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[1,3,5] broadcast(k), dimensions={0,1}
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; r = f32[3] reshape(k); f32[1,3,5] broadcast(r), dimensions={1}"""
    x = i.operands[0]
    if s.options.is_layout_sensitive or is_scalar(x) or 1 not in sizes(x):
        return False
    kept = tuple(d for n, d in enumerate(dims(i)) if sizes(x)[n] != 1)
    narrow = s.create_like(x, "reshape", without_ones(shape_of(x)), (x,))
    return s.replace_with_new(i, "broadcast", (narrow,), dimensions=kept)
