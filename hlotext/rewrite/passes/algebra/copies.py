"""Rules about copies and bitcasts, where layouts count."""

from __future__ import annotations

from hlotext import layout as layouts
from hlotext.analysis import memory_space
from hlotext.ir.nodes.instruction import Instruction
from hlotext.rewrite.passes.algebra.chains import (
    aligned_shape,
    bitcasting_operand,
    broadcast_transposed,
    byte_size,
    is_elementwise,
    remove_chain,
    same_but_space,
)
from hlotext.rewrite.passes.algebra.engine import Simplifier, one_user, rule, shape_of, type_of

# ---- copies


@rule("copy", handler="HandleCopy")
def copy_twice(s: Simplifier, i: Instruction) -> bool:
    """c = copy(x); copy(c) => x"""
    x = i.operands[0]
    if x.opcode != "copy":
        return False
    op = x.operands[0]
    if shape_of(op) == shape_of(i):
        return s.replace_with(i, op)
    return s.replace_with_new(i, "copy", (op,))


@rule("copy", handler="HandleCopy")
def copy_to_same(s: Simplifier, i: Instruction) -> bool:
    """copy(x) => x"""
    is_result = i.is_root and i.computation is not None and i.computation.is_entry
    return not (is_result and i.sharding is not None) and s.replace_if_compatible(i, i.operands[0])


@rule("copy", handler="HandleCopy")
def copy_as_bitcast(s: Simplifier, i: Instruction) -> bool:
    """layouts: k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[1,3]{0,1} copy(k)
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[1,3]{0,1} bitcast(k)"""
    if not shape_of(i).is_array or memory_space(shape_of(i)) != memory_space(shape_of(i.operands[0])):
        return False
    found = bitcasting_operand(s, i)
    return found is not None and s.replace_with_bitcast(i, found)


@rule("copy", handler="HandleCopy")
def copy_of_reshape(s: Simplifier, i: Instruction) -> bool:
    """layouts: r = f32[1,4,3]{0,1,2} reshape(x); f32[1,4,3]{1,0,2} copy(r) => f32[1,4,3]{1,0,2} reshape(x)"""
    x = i.operands[0]
    if x.opcode != "reshape" or not one_user(x) or not s.has_layouts or not shape_of(i).is_array:
        return False
    if not shape_of(i).is_static or not layouts.reshape_is_bitcast(shape_of(x), shape_of(i)):
        return False
    return s.replace_with(i, s.clone(x, x.operands, shape_of(i)))


@rule("copy", handler="HandleCopy")
def copy_behind_reshape(s: Simplifier, i: Instruction) -> bool:
    """layouts: c = f32[4,3]{0,1} copy(x); r = f32[2,2,3]{2,1,0} reshape(c); f32[2,2,3]{1,0,2} copy(r)
    => c = f32[4,3]{0,1} copy(x); k = f32[4,3]{0,1} copy(c); f32[2,2,3]{1,0,2} bitcast(k)"""
    reshape = i.operands[0]
    if not s.options.is_layout_sensitive or reshape.opcode != "reshape" or not one_user(reshape):
        return False
    source = reshape.operands[0]
    before = source if source.opcode == "copy" and one_user(source) else None
    is_bitcast = s.reshape_is_bitcast(shape_of(source), shape_of(reshape))
    aligned = aligned_shape(shape_of(i), shape_of(source))
    if aligned is None:
        return False
    becomes_bitcast = s.reshape_is_bitcast(aligned, shape_of(i))
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
        copy = s.create_like(i, "copy", aligned, (source,))
    return s.replace_with(
        i, s.create_like(i, "bitcast" if becomes_bitcast else "reshape", shape_of(i), (copy,))
    )


# ---- bitcasts


@rule("bitcast", handler="HandleBitcast")
def bitcast_around_function(s: Simplifier, i: Instruction) -> bool:
    """layouts: k = f32[12] bitcast(x); e = f32[12] exponential(k); f32[2,6] bitcast(e)
    => e = exponential(x); f32[2,6] bitcast(e)"""
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
    return s.replace_with_new(i, "bitcast", (s.clone(op, (source,), shape_of(source)),))


@rule("bitcast", handler="HandleBitcast")
def bitcast_twice(s: Simplifier, i: Instruction) -> bool:
    """layouts: k = f32[12] bitcast(x); f32[2,6] bitcast(k) => f32[2,6] bitcast(x)"""
    x = i.operands[0]
    if i.control_predecessors or x.opcode != "bitcast":
        return False
    while x.opcode == "bitcast":
        x = x.operands[0]
    place = s.place
    if type_of(i) is type_of(x) and s.same_shape(shape_of(i), shape_of(x)):
        return s.replace_if_compatible(i, x)
    new = s.create("bitcast", shape_of(i), (x,))
    if not s.replace(i, new, relay_control=False):
        return False
    s.place = place if place is not None and place.computation is not None else new
    bitcast_ends(s, new)
    return True


@rule("bitcast", handler="HandleBitcast")
def bitcast_ends(s: Simplifier, i: Instruction) -> bool:
    """layouts: f32[4,3] bitcast(x) => x"""
    x = i.operands[0]
    if i.control_predecessors or not shape_of(x).is_array or type_of(i) is not type_of(x):
        return False
    if s.replace_if_compatible(i, x):
        return True
    if remove_chain(s, i):
        return True
    if x.opcode != "broadcast" or not s.has_layouts:
        return False
    a, b = shape_of(x).layout, shape_of(i).layout
    if (a.tiles if a else ()) != (b.tiles if b else ()) or a is None or b is None:
        return False
    order = layouts.deduce_transpose_dimensions(shape_of(x), shape_of(i))
    return order is not None and broadcast_transposed(s, i, order)
