"""Rules about transposes, reversals and sorts."""

from __future__ import annotations

from hlotext import layout as layouts
from hlotext.layout.permutations import compose
from hlotext.rewrite.kit.facts import dims, is_empty, is_scalar, shape_of, sizes
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.simplify.algebra.chains import broadcast_transposed, is_elementwise, remove_chain
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite
from hlotext.rewrite.passes.simplify.algebra.dots import transposed_dot
from hlotext.rewrite.passes.simplify.dimensions import is_identity, only_ones_moved

# ---- transposes


@pattern("transpose", handler="HandleTranspose")
def transpose_nothing(r: AlgebraRewrite) -> Result:
    """transpose(x), dimensions={0,1} => x"""
    return is_identity(dims(r.instruction)) and r.instruction.operands[0]


@pattern("transpose", handler="HandleTranspose")
def transpose_twice(r: AlgebraRewrite) -> Result:
    """t = f32[3,4] transpose(x), dimensions={1,0}; f32[4,3] transpose(t), dimensions={1,0}
    => transpose(x), dimensions={0,1}"""
    i = r.instruction
    x = i.operands[0]
    if x.opcode != "transpose":
        return False
    return r.replace_with_new(i, "transpose", x.operands, dimensions=compose(dims(x), dims(i)))


@pattern("transpose", handler="HandleTranspose")
def transpose_ends_chain(r: AlgebraRewrite) -> Result:
    """k = f32[1,3,4] broadcast(q3), dimensions={1,2}; t = f32[1,4,3] transpose(k), dimensions={0,2,1};
    r = f32[4,1,3] reshape(t);
    f32[1,3,4] transpose(r), dimensions={1,2,0} => f32[1,3,4] broadcast(q3), dimensions={1,2}"""
    return remove_chain(r, r.instruction)


@pattern("transpose", handler="HandleTranspose")
def transpose_of_dot(r: AlgebraRewrite) -> Result:
    """t = f32[3,4] transpose(y), dimensions={1,0};
    d = f32[4,4] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0};
    f32[4,4] transpose(d), dimensions={1,0} => t = f32[3,4] transpose(y), dimensions={1,0};
    f32[4,4] dot(t, x), lhs_contracting_dims={0}, rhs_contracting_dims={1}"""
    return transposed_dot(r, r.instruction)


@pattern("transpose", handler="HandleTranspose")
def transpose_of_ones(r: AlgebraRewrite) -> Result:
    """k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[3,1] transpose(k), dimensions={1,0}
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[3,1] reshape(k)"""
    i = r.instruction
    longer = [d for n, d in enumerate(dims(i)) if sizes(i)[n] != 1]
    if len(longer) == len(sizes(i)) or longer != sorted(longer):
        return False
    return r.replace_with_new(i, "reshape", i.operands)


@pattern("transpose", handler="HandleTranspose")
def transpose_as_bitcast(r: AlgebraRewrite) -> Result:
    """layouts: f32[3,4]{0,1} transpose(x), dimensions={1,0} => f32[3,4]{0,1} bitcast(x)"""
    i = r.instruction
    x = i.operands[0]
    if not r.options.is_layout_sensitive or not r.has_layouts:
        return False
    return layouts.transpose_is_bitcast(shape_of(x), shape_of(i), dims(i)) and r.replace_with_bitcast(i)


@pattern("transpose", handler="SimplifyTransposeOfBroadcast")
def transpose_of_broadcast(r: AlgebraRewrite) -> Result:
    """b = f32[4,3,5] broadcast(x), dimensions={0,1}; f32[5,4,3] transpose(b), dimensions={2,0,1}
    => f32[5,4,3] broadcast(x), dimensions={1,2}"""
    return broadcast_transposed(r, r.instruction, dims(r.instruction))


# ---- reversals


@pattern("reverse", handler="HandleReverse")
def reverse_nothing(r: AlgebraRewrite) -> Result:
    """reverse(x), dimensions={} => x"""
    i = r.instruction
    return all(sizes(i)[d] == 1 for d in dims(i)) and i.operands[0]


@pattern("reverse", handler="HandleReverse")
def reverse_twice(r: AlgebraRewrite) -> Result:
    """a = reverse(x), dimensions={0}; reverse(a), dimensions={0} => x"""
    i = r.instruction
    x = i.operands[0]
    if r.options.is_layout_sensitive or x.opcode != "reverse":
        return False
    left = tuple(sorted(set(dims(i)) ^ set(dims(x))))
    if not left:
        return x.operands[0]
    return r.create("reverse", shape_of(i), x.operands, dimensions=left)


@pattern("reverse", handler="HandleReverse")
def reverse_of_operation(r: AlgebraRewrite) -> Result:
    """a = add(x, f1); reverse(a), dimensions={0} => r = reverse(x), dimensions={0}; add(r, f1)"""
    i = r.instruction
    x = i.operands[0]
    if (
        r.options.is_layout_sensitive
        or len(x.operands) != 2
        or not is_elementwise(x)
        or x.opcode == "compare"
    ):
        return False
    for place in (0, 1):
        splat = x.operands[place]
        if splat.opcode == "broadcast" and is_scalar(splat.operands[0]):
            other = x.operands[1 - place]
            turned = r.create("reverse", shape_of(other), (other,), dimensions=dims(i))
            return r.replace_with_new(
                i, x.opcode, (splat, turned) if place == 0 else (turned, splat), shape_of(x)
            )
    return False


@pattern("reverse", handler="HandleReverse")
def reverse_of_inserted_ones(r: AlgebraRewrite) -> Result:
    """r = f32[4,1,3] reshape(x); f32[4,1,3] reverse(r), dimensions={2} => k = f32[4,3] reverse(x), dimensions={1};
    f32[4,1,3] reshape(k)"""
    x = r.instruction.operands[0]
    if r.options.is_layout_sensitive or x.opcode != "reshape":
        return False
    moved = only_ones_moved(sizes(x.operands[0]), sizes(x))
    if moved is None or moved[0]:
        return False
    inner = x.operands[0]
    turned = tuple(d - sum(n < d for n in moved[1]) for d in dims(r.instruction) if sizes(x)[d] != 1)
    new = r.create("reverse", shape_of(inner), (inner,), dimensions=turned)
    return r.reshape(shape_of(x), new)


# ---- sorting


@pattern("sort", handler="HandleSort")
def sort_of_one(r: AlgebraRewrite) -> Result:
    """k = f32[1] slice(v), slice={[0:1]}; f32[1] sort(k), dimensions={0}, to_apply=less
    => f32[1] slice(v), slice={[0:1]}"""
    i = r.instruction
    x = i.operands[0]
    if not is_empty(x) and sizes(x)[dims(i)[0]] > 1:
        return False
    return r.replace(i, x) if len(i.operands) == 1 else r.replace_with_new(i, "tuple", i.operands)
