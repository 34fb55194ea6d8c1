"""Rules about copies and bitcasts, where layouts count."""

from __future__ import annotations

import attrs

from hlotext import layout as layouts
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.passes.algebra.broadcasts import is_elementwise
from hlotext.rewrite.passes.algebra.engine import Simplifier, one_user, rule, shape_of, type_of
from hlotext.rewrite.passes.algebra.reshapes import remove_chain
from hlotext.rewrite.passes.algebra.transposes import broadcast_transposed


def bitcasting_operand(s: Simplifier, i: Instruction) -> Instruction | None:
    """What a reshape or copy, or a chain of them, is a bitcast of (`BitcastingOperandOfReshapeOrCopyChain`)."""
    if not s.options.is_layout_sensitive:
        return None
    operand = i.operands[0]
    while True:
        if s.reshape_is_bitcast(shape_of(operand), shape_of(i)):
            return operand
        if operand.opcode not in ("reshape", "copy"):
            return None
        operand = operand.operands[0]


def _space(shape: Shape) -> int:
    return shape.layout.memory_space if shape.layout is not None else 0


def _size(shape: Shape) -> int:
    return layouts.unpadded_bytes(shape)


# ---- copies


@rule("copy", handler="HandleCopy")
def copy_twice(s: Simplifier, i: Instruction) -> bool:
    """c = copy(x); copy(c) => x"""
    x = i.operands[0]
    if x.opcode != "copy":
        return False
    op = x.operands[0]
    if shape_of(op) == shape_of(i):
        return s.into(i, op)
    return s.into_new(i, "copy", (op,))


@rule("copy", handler="HandleCopy")
def copy_to_same(s: Simplifier, i: Instruction) -> bool:
    """copy(x) => x"""
    is_result = i.is_root and i.computation is not None and i.computation.is_entry
    return not (is_result and i.sharding is not None) and s.into_same(i, i.operands[0])


@rule("copy", handler="HandleCopy")
def copy_as_bitcast(s: Simplifier, i: Instruction) -> bool:
    """layouts: k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[1,3]{0,1} copy(k)
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[1,3]{0,1} bitcast(k)"""
    if not shape_of(i).is_array or _space(shape_of(i)) != _space(shape_of(i.operands[0])):
        return False
    found = bitcasting_operand(s, i)
    return found is not None and s.into_bitcast(i, found)


@rule("copy", handler="HandleCopy")
def copy_of_reshape(s: Simplifier, i: Instruction) -> bool:
    """layouts: r = f32[1,4,3]{0,1,2} reshape(x); f32[1,4,3]{1,0,2} copy(r) => f32[1,4,3]{1,0,2} reshape(x)"""
    x = i.operands[0]
    if x.opcode != "reshape" or not one_user(x) or not s.has_layouts or not shape_of(i).is_array:
        return False
    if not shape_of(i).is_static or not layouts.reshape_is_bitcast(shape_of(x), shape_of(i)):
        return False
    return s.into(i, s.clone(x, x.operands, shape_of(i)))


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
    aligned = _aligned(shape_of(i), shape_of(source))
    if aligned is None:
        return False
    becomes_bitcast = s.reshape_is_bitcast(aligned, shape_of(i))
    if not ((not is_bitcast and (becomes_bitcast or before)) or (is_bitcast and becomes_bitcast and before)):
        return False
    old = (_size(shape_of(before)) if before else 0) + (0 if is_bitcast else _size(shape_of(reshape)))
    old += _size(shape_of(i))
    new = _size(aligned) + (0 if becomes_bitcast else _size(shape_of(i)))
    if new > 10 * old // 9:
        return False
    if before is not None and _same_but_space(aligned, shape_of(before.operands[0])):
        copy = before.operands[0]
    else:
        copy = s.derive(i, "copy", aligned, (source,))
    return s.into(i, s.derive(i, "bitcast" if becomes_bitcast else "reshape", shape_of(i), (copy,)))


def swap_copy_and_reshape(s: Simplifier, i: Instruction) -> bool:
    """reshape(copy(x)) => copy(reshape(x)), where one of them then moves nothing (`HandleReshape`)."""
    before = i.operands[0]
    if not s.options.is_layout_sensitive or before.opcode != "copy" or not one_user(before):
        return False
    after = i.users[0] if len(i.users) == 1 and i.users[0].opcode == "copy" else None
    source = before.operands[0]
    is_bitcast = s.reshape_is_bitcast(shape_of(before), shape_of(i))
    aligned = _aligned(shape_of(source), shape_of(i))
    if aligned is None:
        return False
    becomes_bitcast = s.reshape_is_bitcast(aligned, shape_of(source))
    if is_bitcast and not (becomes_bitcast and after is not None):
        return False
    if _space(shape_of(source)) == 5:
        return False
    old = _size(shape_of(before)) + (0 if is_bitcast else _size(shape_of(i)))
    old += _size(shape_of(after)) if after else 0
    new = (0 if becomes_bitcast else _size(aligned)) + _size(shape_of(after if after else i))
    if new > 10 * old // 9:
        return False
    reshape = s.derive(i, "bitcast" if becomes_bitcast else "reshape", aligned, (source,))
    if _same_but_space(shape_of(i), aligned):
        return s.into(i, reshape)
    return s.into(i, s.derive(i, "copy", shape_of(i), (reshape,)))


def _aligned(source: Shape, target: Shape) -> Shape | None:
    if not all(
        shape.is_array and shape.is_static and (shape.layout or not shape.dimensions)
        for shape in (source, target)
    ):
        return None
    if any(shape.layout is not None and shape.layout.tiles for shape in (source, target)):
        return None
    return layouts.align_layouts(source, target)


def _same_but_space(a: Shape, b: Shape) -> bool:
    def plain(shape: Shape) -> Shape:
        layout = shape.layout
        return shape if layout is None else shape.with_layout(attrs.evolve(layout, memory_space=0))

    return plain(a) == plain(b)


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
    return s.into_new(i, "bitcast", (s.clone(op, (source,), shape_of(source)),))


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
        return s.into_same(i, x)
    new = s.make("bitcast", shape_of(i), (x,))
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
    if s.into_same(i, x):
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
