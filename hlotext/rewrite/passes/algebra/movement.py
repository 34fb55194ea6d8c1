"""Rules about operations that only move elements: broadcasts, reshapes, transposes, reversals, tuples."""

from __future__ import annotations

import itertools

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.builder import retyped
from hlotext.rewrite.passes.algebra.engine import (
    Simplifier,
    array_of,
    count,
    dims,
    is_empty,
    is_scalar,
    one_user,
    rule,
    shape_of,
    sizes,
    static,
    type_of,
    without_ones,
)
from hlotext.rewrite.passes.dimensions import (
    common_factors,
    inverse,
    is_identity,
    left_unmodified,
    only_ones_moved,
    permuted,
)
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
    scalar = s.derive(i, "constant", shape, literal=Literal.from_array(flat[:1].reshape(()), shape))
    return s.into(i, s.derive(i, "broadcast", shape_of(i), (scalar,), dimensions=()))


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
        return s.into_new(i, "iota", (), iota_dimension=0)
    stride = s.scalar_like(i, step)
    return s.into_new(i, "multiply", (s.derive(i, "iota", shape_of(i), iota_dimension=0), stride))


@rule("iota", handler="HandleIota")
def iota_of_one(s: Simplifier, i: Instruction) -> bool:
    """s32[1,3] iota(), iota_dimension=0 => c = s32[] constant(0); s32[1,3] broadcast(c), dimensions={}"""
    return sizes(i)[i.attributes["iota_dimension"]] <= 1 and s.into(i, s.scalar_like(i, 0))


# ---- tuples


@rule("get-tuple-element", handler="HandleGetTupleElement")
def element_of_tuple(s: Simplifier, i: Instruction) -> bool:
    """t = (f32[4,3], s32[]) tuple(x, n); f32[4,3] get-tuple-element(t), index=0 => x"""
    t = i.operands[0]
    return t.opcode == "tuple" and s.into_same(i, t.operands[i.attributes["index"]])


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
            if len(part.users) > 1 or part.is_root or s.has_effect(part):
                used.add(n)
    if len(used) == len(parts):
        return False
    left = sorted(used)
    if whole.opcode == "tuple":
        kept = [whole.operands[n] for n in left]
    else:
        kept = [
            s.derive(i, "get-tuple-element", shape_of(whole).tuple_shapes[n], (whole,), index=n) for n in left
        ]
    shape = Shape.tuple(tuple(shape_of(o) for o in kept))
    new = s.derive(whole, "tuple", shape, kept)
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
    if count(i) != count(x):
        return False
    same_rank = len(sizes(i)) == len(sizes(x))
    if list(dims(i)) == sorted(dims(i)) and not (same_rank and s.options.prefers_transposes):
        return s.into_new(i, "reshape", (x,))
    return same_rank and s.into_new(i, "transpose", (x,), dimensions=inverse(dims(i)))


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
    return s.into_new(i, "broadcast", x.operands, dimensions=kept)


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
                operands.append(s.derive(o, "broadcast", shape, o.operands, dimensions=()))
            else:
                operands.append(o.operands[0])
        new = s.clone(user, operands, retyped(shape_of(x), type_of(user)))
        s.setup(user, new)
        spread = s.derive(i, "broadcast", shape_of(user), (new,), dimensions=dims(i))
        changed |= s.replace_uses(user, spread)
    s.place = place
    return changed


def is_elementwise(i: Instruction) -> bool:
    """`HloInstruction::IsElementwise`."""
    if i.opcode == "bitcast-convert":
        return type_of(i).bits == type_of(i.operands[0]).bits
    return i.opcode in ELEMENTWISE


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
        moves = user.opcode in ("reshape", "reverse", "transpose") or (
            user.opcode == "sort" and not shape_of(user).is_tuple
        )
        selects = user.opcode in ("slice", "dynamic-slice") and [
            n for n, o in enumerate(user.operands) if o is i
        ] == [0]
        if moves or selects:
            place, s.place = s.place, user
            new = s.derive(user, "broadcast", static(shape_of(user)), (x,), dimensions=())
            s.place = place
            return s.replace_uses(user, new)
    return False


@rule("broadcast", handler="HandleBroadcast")
def broadcast_of_iota(s: Simplifier, i: Instruction) -> bool:
    """k = s32[4] iota(), iota_dimension=0; s32[4,3] broadcast(k), dimensions={0} => s32[4,3] iota(), iota_dimension=0"""
    x = i.operands[0]
    return x.opcode == "iota" and s.into_new(
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
    return s.into_new(i, "broadcast", x.operands, dimensions=tuple(outer[d] for d in dims(x)))


@rule("broadcast", handler="HandleBroadcast")
def broadcast_of_ones(s: Simplifier, i: Instruction) -> bool:
    """k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[1,3,5] broadcast(k), dimensions={0,1}
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; r = f32[3] reshape(k); f32[1,3,5] broadcast(r), dimensions={1}"""
    x = i.operands[0]
    if s.options.is_layout_sensitive or is_scalar(x) or 1 not in sizes(x):
        return False
    kept = tuple(d for n, d in enumerate(dims(i)) if sizes(x)[n] != 1)
    narrow = s.derive(x, "reshape", without_ones(shape_of(x)), (x,))
    return s.into_new(i, "broadcast", (narrow,), dimensions=kept)


# ---- chains that do nothing


def remove_chain(s: Simplifier, i: Instruction) -> bool:
    """Whether a chain of transposes and of reshapes that move dimensions of size 1 did nothing, and is gone
    (`TryRemovingBitcastOrReshapeTransposeChain`)."""
    if i.opcode == "transpose":
        if is_identity(dims(i)):
            return False
        order = _effective(dims(i), i.operands[0], i)
        if order is None:
            return False
    elif _moves_ones(s, i):
        order = tuple(range(sum(size != 1 for size in sizes(i))))
    else:
        return False
    current, start = i.operands[0], None
    while current.opcode in ("reshape", "transpose", "bitcast"):
        if current.opcode == "transpose":
            if is_identity(dims(current)):
                return False
            inner = _effective(dims(current), current.operands[0], current)
            if inner is None or len(inner) != len(order):
                return False
            order = permuted(inner, order)
        elif not _moves_ones(s, current):
            return False
        start = current
        current = current.operands[0]
    if start is None or not is_identity(order):
        return False
    source, shape = start.operands[0], shape_of(i)
    if s.options.is_layout_sensitive:
        if shape_of(source) == shape:
            return s.into(i, source)
        if s.reshape_is_bitcast(shape_of(source), shape):
            return s.into_new(i, "bitcast", (source,))
        return False
    return shape_of(source).text_without_layout() == shape.text_without_layout() and s.into(i, source)


def _moves_ones(s: Simplifier, i: Instruction) -> bool:
    if i.opcode not in ("reshape", "bitcast"):
        return False
    x = i.operands[0]
    if not (shape_of(i).is_array and shape_of(x).is_array):
        return False
    if i.opcode == "bitcast" and not s.reshape_is_bitcast(shape_of(x), shape_of(i)):
        return False
    if sizes(i).count(1) > 1 or sizes(x).count(1) > 1:
        return False
    return only_ones_moved(sizes(x), sizes(i)) is not None


def _effective(order: tuple[int, ...], source: Instruction, target: Instruction) -> tuple[int, ...] | None:
    """A permutation without the dimension of size 1; None where there are several."""
    ones = [d for d, size in enumerate(sizes(source)) if size == 1]
    if len(ones) != 1:
        return order if not ones else None
    return tuple(d - (d > ones[0]) for d in order if d != ones[0])


# ---- reshapes


@rule("reshape", handler="HandleReshape")
def reshape_of_nothing(s: Simplifier, i: Instruction) -> bool:
    """k = f32[0,3] slice(x), slice={[0:0], [0:3]}; f32[3,0] reshape(k) => f32[3,0] constant({ {}, {}, {} })"""
    if not is_empty(i):
        return False
    import numpy as np

    array = np.zeros(sizes(i), type_of(i).dtype)
    return s.into_new(i, "constant", (), literal=Literal.from_array(array, static(shape_of(i))), relay=True)


@rule("reshape", handler="HandleReshape")
def reshape_to_same(s: Simplifier, i: Instruction) -> bool:
    """f32[4,3] reshape(x) => x"""
    x = i.operands[0]
    return s.same_shape(shape_of(i), shape_of(x)) and s.into(i, x, notes=False)


@rule("reshape", handler="HandleReshape")
def reshape_twice(s: Simplifier, i: Instruction) -> bool:
    """a = f32[12] reshape(x); f32[6,2] reshape(a) => f32[6,2] reshape(x)"""
    x = i.operands[0]
    return x.opcode == "reshape" and s.into_new(i, "reshape", x.operands, relay=True)


@rule("reshape", handler="HandleReshape")
def reshape_of_random(s: Simplifier, i: Instruction) -> bool:
    """r = f32[12] rng(s, s), distribution=rng_uniform; f32[4,3] reshape(r)
    => f32[4,3] rng(s, s), distribution=rng_uniform"""
    x = i.operands[0]
    if x.opcode != "rng" or not one_user(x):
        return False
    x.change(shape=shape_of(i), typed=False)
    return s.into(i, x)


@rule("reshape", handler="HandleReshape")
def reshape_ends_chain(s: Simplifier, i: Instruction) -> bool:
    """r = f32[4,1,3] reshape(x); t = f32[1,4,3] transpose(r), dimensions={1,0,2}; f32[4,3] reshape(t) => x"""
    return remove_chain(s, i)


@rule("reshape", handler="TryHoistTransposeOfReshape")
def reshape_of_transposed_reshape(s: Simplifier, i: Instruction) -> bool:
    """gpu: r = f32[2,2,3] reshape(x); t = f32[3,2,2] transpose(r), dimensions={2,0,1}; f32[3,4] reshape(t)
    => r = f32[4,3] reshape(x); f32[3,4] transpose(r), dimensions={1,0}"""
    t = i.operands[0]
    if s.options.is_layout_sensitive or not s.options.enable_hoist_transpose_of_reshape:
        return False
    if t.opcode != "transpose" or t.operands[0].opcode != "reshape":
        return False
    order, chunks = dims(t), []
    bounds = common_factors(sizes(i), sizes(t))
    for (start, first), (end, last) in itertools.pairwise(bounds):
        inner = order[first:last]
        if end - start != 1 or not inner or any(b != a + 1 for a, b in itertools.pairwise(inner)):
            return False
        chunks.append((inner[0], sizes(i)[start], start))
    chunks.sort()
    new_order = [0] * len(chunks)
    for place, (_, _, result) in enumerate(chunks):
        new_order[result] = place
    inner_shape = s.shape(type_of(i), [size for _, size, _ in chunks])
    flat = s.derive(i, "reshape", inner_shape, t.operands[0].operands)
    return s.into_new(i, "transpose", (flat,), dimensions=tuple(new_order))


@rule("reshape", handler="HandleReshape")
def reshape_of_copy(s: Simplifier, i: Instruction) -> bool:
    """layouts: c = f32[4,3]{0,1} copy(x); f32[12]{0} reshape(c) => f32[12]{0} bitcast(x)"""
    from hlotext.rewrite.passes.algebra.copies import swap_copy_and_reshape

    return swap_copy_and_reshape(s, i)


@rule("reshape", handler="HandleReshape")
def reshape_of_broadcast(s: Simplifier, i: Instruction) -> bool:
    """b = f32[2,4,3] broadcast(x), dimensions={1,2}; f32[1,2,4,3] reshape(b)
    => f32[1,2,4,3] broadcast(x), dimensions={2,3}"""
    x = i.operands[0]
    if x.opcode != "broadcast":
        return False
    places = left_unmodified(sizes(x), sizes(i), dims(x))
    return places is not None and s.into_new(i, "broadcast", x.operands, relay=True, dimensions=places)


@rule("reshape", handler="HandleReshape")
def reshape_of_iota(s: Simplifier, i: Instruction) -> bool:
    """k = s32[4] iota(), iota_dimension=0; s32[4,1] reshape(k) => s32[4,1] iota(), iota_dimension=0"""
    x = i.operands[0]
    if x.opcode != "iota":
        return False
    d = x.attributes["iota_dimension"]
    bounds = common_factors(sizes(x), sizes(i))
    first = next(
        (n for n, (a, b) in enumerate(bounds) if a == d and b < len(sizes(i)) and sizes(i)[b] > 1), None
    )
    if first is None or not any(a == d + 1 for a, _ in bounds):
        return False
    multiplier, new = 1, None
    for dim in range(bounds[first + 1][1] - 1, bounds[first][1] - 1, -1):
        part = s.derive(x, "iota", shape_of(i), iota_dimension=dim)
        if new is not None:
            scaled = s.derive(i, "multiply", shape_of(i), (part, s.scalar_like(i, multiplier)))
            part = s.derive(i, "add", shape_of(i), (new, scaled))
        new = part
        multiplier *= sizes(i)[dim]
    return new is not None and s.into(i, new)


@rule("reshape", handler="HandleReshape")
def reshape_of_update(s: Simplifier, i: Instruction) -> bool:
    """v = f32[1,3] slice(y), slice={[0:1], [0:3]}; d = f32[4,3] dynamic-update-slice(x, v, n, n); f32[4,1,3] reshape(d)
    => v = f32[1,3] slice(y), slice={[0:1], [0:3]}; r = f32[4,1,3] reshape(x); z = s32[] constant(0);
    u = f32[1,1,3] reshape(v); f32[4,1,3] dynamic-update-slice(r, u, n, z, n)"""
    x = i.operands[0]
    if s.options.is_layout_sensitive or x.opcode != "dynamic-update-slice" or not one_user(x):
        return False
    moved = only_ones_moved(sizes(x), sizes(i))
    if moved is None or x.sharding is not None or x.operands[0].sharding is not None:
        return False
    deleted, inserted = moved
    whole = s.derive(i, "reshape", shape_of(i), x.operands[:1])
    zero = s.scalar_like(x.operands[2], 0)
    part = x.operands[1]
    new_sizes: list[int] = []
    starts: list[Instruction] = []
    for n in range(len(sizes(part)) + 1):
        if n in deleted:
            continue
        while len(new_sizes) in inserted:
            new_sizes.append(1)
            starts.append(zero)
        if n < len(sizes(part)):
            new_sizes.append(sizes(part)[n])
            starts.append(x.operands[2 + n])
    update = s.derive(i, "reshape", s.shape(type_of(part), new_sizes), (part,))
    new = s.clone(x, (whole, update, *starts), shape_of(i))
    return s.replace(i, new)


@rule("reshape", handler="HandleReshape")
def reshape_as_bitcast(s: Simplifier, i: Instruction) -> bool:
    """layouts: f32[12] reshape(x) => f32[12] bitcast(x)"""
    from hlotext.rewrite.passes.algebra.copies import bitcasting_operand

    found = bitcasting_operand(s, i)
    return found is not None and s.into_bitcast(i, found)


# ---- transposes


@rule("transpose", handler="HandleTranspose")
def transpose_nothing(s: Simplifier, i: Instruction) -> bool:
    """transpose(x), dimensions={0,1} => x"""
    return is_identity(dims(i)) and s.into(i, i.operands[0])


@rule("transpose", handler="HandleTranspose")
def transpose_twice(s: Simplifier, i: Instruction) -> bool:
    """t = f32[3,4] transpose(x), dimensions={1,0}; f32[4,3] transpose(t), dimensions={1,0}
    => transpose(x), dimensions={0,1}"""
    x = i.operands[0]
    if x.opcode != "transpose":
        return False
    return s.into_new(i, "transpose", x.operands, dimensions=permuted(dims(x), dims(i)))


@rule("transpose", handler="HandleTranspose")
def transpose_ends_chain(s: Simplifier, i: Instruction) -> bool:
    """k = f32[1,3,4] broadcast(q3), dimensions={1,2}; t = f32[1,4,3] transpose(k), dimensions={0,2,1};
    r = f32[4,1,3] reshape(t);
    f32[1,3,4] transpose(r), dimensions={1,2,0} => f32[1,3,4] broadcast(q3), dimensions={1,2}"""
    return remove_chain(s, i)


@rule("transpose", handler="HandleTranspose")
def transpose_of_dot(s: Simplifier, i: Instruction) -> bool:
    """t = f32[3,4] transpose(y), dimensions={1,0};
    d = f32[4,4] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0};
    f32[4,4] transpose(d), dimensions={1,0} => t = f32[3,4] transpose(y), dimensions={1,0};
    f32[4,4] dot(t, x), lhs_contracting_dims={0}, rhs_contracting_dims={1}"""
    from hlotext.rewrite.passes.algebra.dots import transposed_dot

    return transposed_dot(s, i)


@rule("transpose", handler="HandleTranspose")
def transpose_of_ones(s: Simplifier, i: Instruction) -> bool:
    """k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[3,1] transpose(k), dimensions={1,0}
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[3,1] reshape(k)"""
    longer = [d for n, d in enumerate(dims(i)) if sizes(i)[n] != 1]
    if len(longer) == len(sizes(i)) or longer != sorted(longer):
        return False
    return s.into_new(i, "reshape", i.operands)


@rule("transpose", handler="HandleTranspose")
def transpose_as_bitcast(s: Simplifier, i: Instruction) -> bool:
    """layouts: f32[3,4]{0,1} transpose(x), dimensions={1,0} => f32[3,4]{0,1} bitcast(x)"""
    from hlotext import layout as layouts

    x = i.operands[0]
    if not s.options.is_layout_sensitive or not s.has_layouts:
        return False
    return layouts.transpose_is_bitcast(shape_of(x), shape_of(i), dims(i)) and s.into_bitcast(i)


@rule("transpose", handler="SimplifyTransposeOfBroadcast")
def transpose_of_broadcast(s: Simplifier, i: Instruction) -> bool:
    """b = f32[4,3,5] broadcast(x), dimensions={0,1}; f32[5,4,3] transpose(b), dimensions={2,0,1}
    => f32[5,4,3] broadcast(x), dimensions={1,2}"""
    return broadcast_transposed(s, i, dims(i))


def broadcast_transposed(s: Simplifier, i: Instruction, order: tuple[int, ...]) -> bool:
    """A transpose of a broadcast that keeps the order of its operand's dimensions (`SimplifyTransposeOfBroadcast`)."""
    b = i.operands[0]
    if b.opcode != "broadcast" or list(dims(b)) != sorted(dims(b)):
        return False
    back = inverse(order)
    places = tuple(back[d] for d in dims(b))
    if list(places) != sorted(places):
        return False
    if s.options.is_layout_sensitive:
        inner, outer = shape_of(b.operands[0]).layout, shape_of(i).layout
        if outer is None or (inner is None and places):
            return False
        order_in = inner.minor_to_major if inner is not None else ()
        extracted = [d for d in outer.minor_to_major if d in places]
        numbers = range(len(places))
        if sorted(numbers, key=order_in.__getitem__) != sorted(numbers, key=extracted.__getitem__):
            return False
    return s.into(i, s.make("broadcast", shape_of(i), b.operands, dimensions=places))


# ---- reversals


@rule("reverse", handler="HandleReverse")
def reverse_nothing(s: Simplifier, i: Instruction) -> bool:
    """reverse(x), dimensions={} => x"""
    return all(sizes(i)[d] == 1 for d in dims(i)) and s.into(i, i.operands[0])


@rule("reverse", handler="HandleReverse")
def reverse_twice(s: Simplifier, i: Instruction) -> bool:
    """a = reverse(x), dimensions={0}; reverse(a), dimensions={0} => x"""
    x = i.operands[0]
    if s.options.is_layout_sensitive or x.opcode != "reverse":
        return False
    left = tuple(sorted(set(dims(i)) ^ set(dims(x))))
    if not left:
        return s.into(i, x.operands[0])
    return s.into(i, s.make("reverse", shape_of(i), x.operands, dimensions=left))


@rule("reverse", handler="HandleReverse")
def reverse_of_operation(s: Simplifier, i: Instruction) -> bool:
    """a = add(x, f1); reverse(a), dimensions={0} => r = reverse(x), dimensions={0}; add(r, f1)"""
    x = i.operands[0]
    if (
        s.options.is_layout_sensitive
        or len(x.operands) != 2
        or not is_elementwise(x)
        or x.opcode == "compare"
    ):
        return False
    for place in (0, 1):
        splat = x.operands[place]
        if splat.opcode == "broadcast" and is_scalar(splat.operands[0]):
            other = x.operands[1 - place]
            turned = s.make("reverse", shape_of(other), (other,), dimensions=dims(i))
            return s.into_new(i, x.opcode, (splat, turned) if place == 0 else (turned, splat), shape_of(x))
    return False


@rule("reverse", handler="HandleReverse")
def reverse_of_inserted_ones(s: Simplifier, i: Instruction) -> bool:
    """r = f32[4,1,3] reshape(x); f32[4,1,3] reverse(r), dimensions={2} => k = f32[4,3] reverse(x), dimensions={1};
    f32[4,1,3] reshape(k)"""
    x = i.operands[0]
    if s.options.is_layout_sensitive or x.opcode != "reshape":
        return False
    moved = only_ones_moved(sizes(x.operands[0]), sizes(x))
    if moved is None or moved[0]:
        return False
    inner = x.operands[0]
    turned = tuple(d - sum(n < d for n in moved[1]) for d in dims(i) if sizes(x)[d] != 1)
    new = s.make("reverse", shape_of(inner), (inner,), dimensions=turned)
    return s.into(i, s.reshape(shape_of(x), new))


# ---- sorting


@rule("sort", handler="HandleSort")
def sort_of_one(s: Simplifier, i: Instruction) -> bool:
    """k = f32[1] slice(v), slice={[0:1]}; f32[1] sort(k), dimensions={0}, to_apply=less
    => f32[1] slice(v), slice={[0:1]}"""
    x = i.operands[0]
    if not is_empty(x) and sizes(x)[dims(i)[0]] > 1:
        return False
    return s.into(i, x) if len(i.operands) == 1 else s.into_new(i, "tuple", i.operands)


__all__ = ["broadcast_transposed", "is_elementwise", "remove_chain"]
