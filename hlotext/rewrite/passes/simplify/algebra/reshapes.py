"""Rules about reshapes, and chains of reshapes and transposes that do nothing."""

from __future__ import annotations

import itertools

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.literal import Literal
from hlotext.rewrite.kit.facts import dims, is_empty, one_user, shape_of, sizes, static, type_of
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.simplify.algebra.chains import (
    bitcasting_operand,
    remove_chain,
    swap_copy_and_reshape,
)
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite
from hlotext.rewrite.passes.simplify.dimensions import (
    common_factors,
    left_unmodified,
    only_ones_moved,
)

# ---- reshapes


@pattern("reshape", handler="HandleReshape")
def reshape_of_nothing(r: AlgebraRewrite) -> Result:
    """k = f32[0,3] slice(x), slice={[0:0], [0:3]}; f32[3,0] reshape(k) => f32[3,0] constant({ {}, {}, {} })"""
    i = r.instruction
    if not is_empty(i):
        return False
    import numpy as np

    array = np.zeros(sizes(i), type_of(i).dtype)
    return r.replace_with_new(
        i, "constant", (), argument=Literal.from_array(array, static(shape_of(i))), relay_control=True
    )


@pattern("reshape", handler="HandleReshape")
def reshape_to_same(r: AlgebraRewrite) -> Result:
    """f32[4,3] reshape(x) => x"""
    i = r.instruction
    x = i.operands[0]
    return r.same_shape(shape_of(i), shape_of(x)) and r.replace(i, x, preserve_frontend=False)


@pattern("reshape", handler="HandleReshape")
def reshape_twice(r: AlgebraRewrite) -> Result:
    """a = f32[12] reshape(x); f32[6,2] reshape(a) => f32[6,2] reshape(x)"""
    x = r.instruction.operands[0]
    return x.opcode == "reshape" and r.replace_with_new(
        r.instruction, "reshape", x.operands, relay_control=True
    )


@pattern("reshape", handler="HandleReshape")
def reshape_of_random(r: AlgebraRewrite) -> Result:
    """r = f32[12] rng(s, s), distribution=rng_uniform; f32[4,3] reshape(r)
    => f32[4,3] rng(s, s), distribution=rng_uniform"""
    x = r.instruction.operands[0]
    if x.opcode != "rng" or not one_user(x):
        return False
    x.change(shape=shape_of(r.instruction), typed=False)
    return x


@pattern("reshape", handler="HandleReshape")
def reshape_ends_chain(r: AlgebraRewrite) -> Result:
    """r = f32[4,1,3] reshape(x); t = f32[1,4,3] transpose(r), dimensions={1,0,2}; f32[4,3] reshape(t) => x"""
    return remove_chain(r, r.instruction)


@pattern("reshape", handler="TryHoistTransposeOfReshape")
def reshape_of_transposed_reshape(r: AlgebraRewrite) -> Result:
    """gpu: r = f32[2,2,3] reshape(x); t = f32[3,2,2] transpose(r), dimensions={2,0,1}; f32[3,4] reshape(t)
    => r = f32[4,3] reshape(x); f32[3,4] transpose(r), dimensions={1,0}"""
    i = r.instruction
    t = i.operands[0]
    if r.options.is_layout_sensitive or not r.options.enable_hoist_transpose_of_reshape:
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
    inner_shape = r.shape(type_of(i), [size for _, size, _ in chunks])
    flat = r.create_like(i, "reshape", inner_shape, t.operands[0].operands)
    return r.replace_with_new(i, "transpose", (flat,), dimensions=tuple(new_order))


@pattern("reshape", handler="HandleReshape")
def reshape_of_copy(r: AlgebraRewrite) -> Result:
    """layouts: c = f32[4,3]{0,1} copy(x); f32[12]{0} reshape(c) => f32[12]{0} bitcast(x)"""
    return swap_copy_and_reshape(r, r.instruction)


@pattern("reshape", handler="HandleReshape")
def reshape_of_broadcast(r: AlgebraRewrite) -> Result:
    """b = f32[2,4,3] broadcast(x), dimensions={1,2}; f32[1,2,4,3] reshape(b)
    => f32[1,2,4,3] broadcast(x), dimensions={2,3}"""
    i = r.instruction
    x = i.operands[0]
    if x.opcode != "broadcast":
        return False
    places = left_unmodified(sizes(x), sizes(i), dims(x))
    return places is not None and r.replace_with_new(
        i, "broadcast", x.operands, relay_control=True, dimensions=places
    )


@pattern("reshape", handler="HandleReshape")
def reshape_of_iota(r: AlgebraRewrite) -> Result:
    """k = s32[4] iota(), iota_dimension=0; s32[4,1] reshape(k) => s32[4,1] iota(), iota_dimension=0"""
    i = r.instruction
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
        part = r.create_like(x, "iota", shape_of(i), iota_dimension=dim)
        if new is not None:
            scaled = r.create_like(i, "multiply", shape_of(i), (part, r.scalar_like(i, multiplier)))
            part = r.create_like(i, "add", shape_of(i), (new, scaled))
        new = part
        multiplier *= sizes(i)[dim]
    return new is not None and new


@pattern("reshape", handler="HandleReshape")
def reshape_of_update(r: AlgebraRewrite) -> Result:
    """v = f32[1,3] slice(y), slice={[0:1], [0:3]}; d = f32[4,3] dynamic-update-slice(x, v, n, n); f32[4,1,3] reshape(d)
    => v = f32[1,3] slice(y), slice={[0:1], [0:3]}; r = f32[4,1,3] reshape(x); z = s32[] constant(0);
    u = f32[1,1,3] reshape(v); f32[4,1,3] dynamic-update-slice(r, u, n, z, n)"""
    i = r.instruction
    x = i.operands[0]
    if r.options.is_layout_sensitive or x.opcode != "dynamic-update-slice" or not one_user(x):
        return False
    moved = only_ones_moved(sizes(x), sizes(i))
    if moved is None or x.sharding is not None or x.operands[0].sharding is not None:
        return False
    deleted, inserted = moved
    whole = r.create_like(i, "reshape", shape_of(i), x.operands[:1])
    zero = r.scalar_like(x.operands[2], 0)
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
    update = r.create_like(i, "reshape", r.shape(type_of(part), new_sizes), (part,))
    new = r.clone(x, (whole, update, *starts), shape_of(i))
    return r.replace(i, new)


@pattern("reshape", handler="HandleReshape")
def reshape_as_bitcast(r: AlgebraRewrite) -> Result:
    """layouts: f32[12] reshape(x) => f32[12] bitcast(x)"""
    found = bitcasting_operand(r, r.instruction)
    return found is not None and r.replace_with_bitcast(r.instruction, found)
