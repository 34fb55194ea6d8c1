"""Rules about copies and bitcasts, where layouts count."""

from __future__ import annotations

from hlotext import layout as layouts
from hlotext.analysis import memory_space
from hlotext.ir.nodes.instruction import Instruction
from hlotext.rewrite.kit.facts import one_user, shape_of, type_of
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.simplify.algebra.chains import (
    aligned_shape,
    bitcasting_operand,
    broadcast_transposed,
    byte_size,
    is_elementwise,
    remove_chain,
    same_but_space,
)
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite

# ---- copies


@pattern("copy", handler="HandleCopy")
def copy_twice(r: AlgebraRewrite) -> Result:
    """c = copy(x); copy(c) => x"""
    i = r.instruction
    x = i.operands[0]
    if x.opcode != "copy":
        return False
    op = x.operands[0]
    if shape_of(op) == shape_of(i):
        return op
    return r.replace_with_new(i, "copy", (op,))


@pattern("copy", handler="HandleCopy")
def copy_to_same(r: AlgebraRewrite) -> Result:
    """copy(x) => x"""
    i = r.instruction
    is_result = i.is_root and i.computation is not None and i.computation.is_entry
    return not (is_result and i.sharding is not None) and r.replace_if_compatible(i, i.operands[0])


@pattern("copy", handler="HandleCopy")
def copy_as_bitcast(r: AlgebraRewrite) -> Result:
    """layouts: k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[1,3]{0,1} copy(k)
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[1,3]{0,1} bitcast(k)"""
    i = r.instruction
    if not shape_of(i).is_array or memory_space(shape_of(i)) != memory_space(shape_of(i.operands[0])):
        return False
    found = bitcasting_operand(r, i)
    return found is not None and r.replace_with_bitcast(i, found)


@pattern("copy", handler="HandleCopy")
def copy_of_reshape(r: AlgebraRewrite) -> Result:
    """layouts: r = f32[1,4,3]{0,1,2} reshape(x); f32[1,4,3]{1,0,2} copy(r) => f32[1,4,3]{1,0,2} reshape(x)"""
    i = r.instruction
    x = i.operands[0]
    if x.opcode != "reshape" or not one_user(x) or not r.has_layouts or not shape_of(i).is_array:
        return False
    if not shape_of(i).is_static or not layouts.reshape_is_bitcast(shape_of(x), shape_of(i)):
        return False
    return r.clone(x, x.operands, shape_of(i))


@pattern("copy", handler="HandleCopy")
def copy_behind_reshape(r: AlgebraRewrite) -> Result:
    """layouts: c = f32[4,3]{0,1} copy(x); r = f32[2,2,3]{2,1,0} reshape(c); f32[2,2,3]{1,0,2} copy(r)
    => c = f32[4,3]{0,1} copy(x); k = f32[4,3]{0,1} copy(c); f32[2,2,3]{1,0,2} bitcast(k)"""
    i = r.instruction
    reshape = i.operands[0]
    if not r.options.is_layout_sensitive or reshape.opcode != "reshape" or not one_user(reshape):
        return False
    source = reshape.operands[0]
    before = source if source.opcode == "copy" and one_user(source) else None
    is_bitcast = r.reshape_is_bitcast(shape_of(source), shape_of(reshape))
    aligned = aligned_shape(shape_of(i), shape_of(source))
    if aligned is None:
        return False
    becomes_bitcast = r.reshape_is_bitcast(aligned, shape_of(i))
    if not ((not is_bitcast and (becomes_bitcast or before)) or (is_bitcast and becomes_bitcast and before)):
        return False
    old = (byte_size(shape_of(before)) if before else 0) + (0 if is_bitcast else byte_size(shape_of(reshape)))
    old += byte_size(shape_of(i))
    new = byte_size(aligned) + (0 if becomes_bitcast else byte_size(shape_of(i)))
    if new > 10 * old // 9:
        return False
    if before is not None and same_but_space(aligned, shape_of(before.operands[0])):
        copy = before.operands[0]
    else:
        copy = r.create_like(i, "copy", aligned, (source,))
    return r.create_like(i, "bitcast" if becomes_bitcast else "reshape", shape_of(i), (copy,))


# ---- bitcasts


@pattern("bitcast", handler="HandleBitcast")
def bitcast_around_function(r: AlgebraRewrite) -> Result:
    """layouts: k = f32[12] bitcast(x); e = f32[12] exponential(k); f32[2,6] bitcast(e)
    => e = exponential(x); f32[2,6] bitcast(e)"""
    i = r.instruction
    op = i.operands[0]
    if i.control_predecessors or len(op.operands) != 1 or not one_user(op) or not is_elementwise(op):
        return False
    inner = op.operands[0]
    if inner.opcode != "bitcast":
        return False
    source = inner.operands[0]
    if len({type_of(x) for x in (i, op, inner, source)}) != 1:
        return False
    if any(
        x.shape is not None and x.shape.layout is not None and x.shape.layout.tiles for x in (inner, source)
    ):
        return False
    return r.replace_with_new(i, "bitcast", (r.clone(op, (source,), shape_of(source)),))


@pattern("bitcast", handler="HandleBitcast")
def bitcast_twice(r: AlgebraRewrite) -> Result:
    """layouts: k = f32[12] bitcast(x); f32[2,6] bitcast(k) => f32[2,6] bitcast(x)"""
    i = r.instruction
    x = i.operands[0]
    if i.control_predecessors or x.opcode != "bitcast":
        return False
    while x.opcode == "bitcast":
        x = x.operands[0]
    place = r.place
    if type_of(i) is type_of(x) and r.same_shape(shape_of(i), shape_of(x)):
        return r.replace_if_compatible(i, x)
    new = r.create("bitcast", shape_of(i), (x,))
    if not r.replace(i, new, relay_control=False):
        return False
    r.place = place if place is not None and place.computation is not None else new
    _end_bitcasts(r, new)
    return True


@pattern("bitcast", handler="HandleBitcast")
def bitcast_ends(r: AlgebraRewrite) -> Result:
    """layouts: f32[4,3] bitcast(x) => x"""
    return _end_bitcasts(r, r.instruction)


def _end_bitcasts(r: AlgebraRewrite, i: Instruction) -> bool:
    x = i.operands[0]
    if i.control_predecessors or not shape_of(x).is_array or type_of(i) is not type_of(x):
        return False
    if r.replace_if_compatible(i, x):
        return True
    if remove_chain(r, i):
        return True
    if x.opcode != "broadcast" or not r.has_layouts:
        return False
    a, b = shape_of(x).layout, shape_of(i).layout
    if (a.tiles if a else ()) != (b.tiles if b else ()) or a is None or b is None:
        return False
    order = layouts.deduce_transpose_dimensions(shape_of(x), shape_of(i))
    return order is not None and broadcast_transposed(r, i, order)
