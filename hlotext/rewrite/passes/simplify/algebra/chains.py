"""Moves that rules of several opcodes share: through chains of reshapes, transposes, copies and bitcasts."""

from __future__ import annotations

import attrs

from hlotext import layout as layouts
from hlotext.analysis import memory_space
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape
from hlotext.layout.permutations import compose, inverse
from hlotext.rewrite.kit.facts import dims, one_user, shape_of, sizes, type_of
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite
from hlotext.rewrite.passes.simplify.dimensions import is_identity, only_ones_moved


def is_elementwise(i: Instruction) -> bool:
    """Returns True if an instruction is elementwise (`HloInstruction::IsElementwise`)."""
    if i.opcode == "bitcast-convert":
        return type_of(i).bits == type_of(i.operands[0]).bits
    return i.opcode in ELEMENTWISE


def bitcasting_operand(r: AlgebraRewrite, i: Instruction) -> Instruction | None:
    """Returns the source of a chain of reshapes and copies that is a bitcast, or None
    (`BitcastingOperandOfReshapeOrCopyChain`).
    """
    if not r.options.is_layout_sensitive:
        return None
    operand = i.operands[0]
    while True:
        if r.reshape_is_bitcast(shape_of(operand), shape_of(i)):
            return operand
        if operand.opcode not in ("reshape", "copy"):
            return None
        operand = operand.operands[0]


_MOVED_BACK = traits.REARRANGES_ELEMENTS - {"copy"}


def remove_chain(r: AlgebraRewrite, i: Instruction) -> bool:
    """Removes a chain of transposes, and of reshapes that move dimensions of size 1, that has no effect. Returns True
    if removed.

    Corresponds to XLA's `TryRemovingBitcastOrReshapeTransposeChain`.
    """
    if i.opcode == "transpose":
        if is_identity(dims(i)):
            return False
        order = _effective(dims(i), i.operands[0], i)
        if order is None:
            return False
    elif _moves_ones(r, i):
        order = tuple(range(sum(size != 1 for size in sizes(i))))
    else:
        return False
    current, start = i.operands[0], None
    while current.opcode in _MOVED_BACK:
        if current.opcode == "transpose":
            if is_identity(dims(current)):
                return False
            inner = _effective(dims(current), current.operands[0], current)
            if inner is None or len(inner) != len(order):
                return False
            order = compose(inner, order)
        elif not _moves_ones(r, current):
            return False
        start = current
        current = current.operands[0]
    if start is None or not is_identity(order):
        return False
    source, shape = start.operands[0], shape_of(i)
    if r.options.is_layout_sensitive:
        if shape_of(source) == shape:
            return r.replace(i, source)
        if r.reshape_is_bitcast(shape_of(source), shape):
            return r.replace_with_new(i, "bitcast", (source,))
        return False
    return shape_of(source).text_without_layout() == shape.text_without_layout() and r.replace(i, source)


def _moves_ones(r: AlgebraRewrite, i: Instruction) -> bool:
    if i.opcode not in ("reshape", "bitcast"):
        return False
    x = i.operands[0]
    if not (shape_of(i).is_array and shape_of(x).is_array):
        return False
    if i.opcode == "bitcast" and not r.reshape_is_bitcast(shape_of(x), shape_of(i)):
        return False
    if sizes(i).count(1) > 1 or sizes(x).count(1) > 1:
        return False
    return only_ones_moved(sizes(x), sizes(i)) is not None


def _effective(order: tuple[int, ...], source: Instruction, target: Instruction) -> tuple[int, ...] | None:
    """A permutation without the dimension of size 1; None if there are several."""
    ones = [d for d, size in enumerate(sizes(source)) if size == 1]
    if len(ones) != 1:
        return order if not ones else None
    return tuple(d - (d > ones[0]) for d in order if d != ones[0])


def broadcast_transposed(r: AlgebraRewrite, i: Instruction, order: tuple[int, ...]) -> bool:
    """Folds a transpose into a broadcast if the order of the operand's dimensions is kept
    (`SimplifyTransposeOfBroadcast`).
    """
    b = i.operands[0]
    if b.opcode != "broadcast" or list(dims(b)) != sorted(dims(b)):
        return False
    back = inverse(order)
    places = tuple(back[d] for d in dims(b))
    if list(places) != sorted(places):
        return False
    if r.options.is_layout_sensitive:
        inner, outer = shape_of(b.operands[0]).layout, shape_of(i).layout
        if outer is None or (inner is None and places):
            return False
        order_in = inner.minor_to_major if inner is not None else ()
        extracted = [d for d in outer.minor_to_major if d in places]
        numbers = range(len(places))
        if sorted(numbers, key=order_in.__getitem__) != sorted(numbers, key=extracted.__getitem__):
            return False
    return r.replace(i, r.create("broadcast", shape_of(i), b.operands, dimensions=places))


def swap_copy_and_reshape(r: AlgebraRewrite, i: Instruction) -> bool:
    """Rewrites reshape(copy(x)) => copy(reshape(x)) if one of them then moves nothing (`HandleReshape`)."""
    before = i.operands[0]
    if not r.options.is_layout_sensitive or before.opcode != "copy" or not one_user(before):
        return False
    after = i.users[0] if len(i.users) == 1 and i.users[0].opcode == "copy" else None
    source = before.operands[0]
    is_bitcast = r.reshape_is_bitcast(shape_of(before), shape_of(i))
    aligned = aligned_shape(shape_of(source), shape_of(i))
    if aligned is None:
        return False
    becomes_bitcast = r.reshape_is_bitcast(aligned, shape_of(source))
    if is_bitcast and not (becomes_bitcast and after is not None):
        return False
    if memory_space(shape_of(source)) == 5:
        return False
    old = byte_size(shape_of(before)) + (0 if is_bitcast else byte_size(shape_of(i)))
    old += byte_size(shape_of(after)) if after else 0
    new = (0 if becomes_bitcast else byte_size(aligned)) + byte_size(shape_of(after if after else i))
    if new > 10 * old // 9:
        return False
    reshape = r.create_like(i, "bitcast" if becomes_bitcast else "reshape", aligned, (source,))
    if same_but_space(shape_of(i), aligned):
        return r.replace(i, reshape)
    return r.replace(i, r.create_like(i, "copy", shape_of(i), (reshape,)))


def aligned_shape(source: Shape, target: Shape) -> Shape | None:
    if not all(
        shape.is_array and shape.is_static and (shape.layout or not shape.dimensions)
        for shape in (source, target)
    ):
        return None
    if any(shape.layout is not None and shape.layout.tiles for shape in (source, target)):
        return None
    return layouts.align_layouts(source, target)


def same_but_space(a: Shape, b: Shape) -> bool:
    def plain(shape: Shape) -> Shape:
        layout = shape.layout
        return shape if layout is None else shape.with_layout(attrs.evolve(layout, memory_space=0))

    return plain(a) == plain(b)


def byte_size(shape: Shape) -> int:
    return layouts.unpadded_bytes(shape)
