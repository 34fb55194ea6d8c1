"""Parts of a result that an instruction defines or forwards (`InitializeInstructionValueSets`).

One row for each opcode that does not simply write all of its result; control flow is in `dataflow`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.subshapes import ShapeIndex, SubshapeCache, Subshapes
from hlotext.memory.values import Value

Values = tuple[Value | None, ...]
"""The value of each part of an instruction's shape, in pre-order; None if XLA has none."""

At = Mapping[Instruction, Values]
"""Values of each instruction visited so far."""

Passed = Callable[[ShapeIndex, Shape], "tuple[int, ShapeIndex] | None"]
"""For a part of the result the operand and the shape index that it is passed on from; None if it is not."""


def shape_of(instruction: Instruction) -> Shape:
    """Returns the shape of an instruction. Raises MemoryModelError if it is unknown."""
    shape = instruction._head.shape
    if shape is None:
        raise MemoryModelError(f"{instruction.name} has no shape, so its size is unknown")
    return shape


def operand_values(at: At, instruction: Instruction, number: int) -> Values:
    """Returns the values of the operand at position `number`. Raises MemoryModelError if there is none."""
    operands = instruction._operands
    found = at.get(operands[number]) if number < len(operands) else None
    if found is None:
        raise MemoryModelError(f"{instruction.name} has no operand {number}")
    return found


def fitting(instruction: Instruction, parts: Subshapes, values: Values) -> Values:
    """Returns the values if there is one per subshape, and raises MemoryModelError otherwise."""
    if len(values) != len(parts.indices):
        raise MemoryModelError(f"the shape of {instruction.name} does not match its operand's")
    return values


def all_new(instruction: Instruction, parts: Subshapes) -> Values:
    """Returns newly defined values for all subshapes of a result."""
    name = instruction.name
    if len(parts.indices) == 1:
        return (Value(instruction, name, (), parts.shapes[0]),)
    return tuple([Value(instruction, name, i, s) for i, s in zip(parts.indices, parts.shapes, strict=True)])


def plain(instruction: Instruction, opcode: str, parts: Subshapes, at: At, table: SubshapeCache) -> Values:
    """Returns the values of an instruction without control flow, given those of its operands."""
    rule = _RULES.get(opcode)
    return all_new(instruction, parts) if rule is None else rule(instruction, parts, at, table)


def _forward(instruction: Instruction, parts: Subshapes, at: At, _: SubshapeCache) -> Values:
    return fitting(instruction, parts, operand_values(at, instruction, 0))


def _get_tuple_element(instruction: Instruction, parts: Subshapes, at: At, table: SubshapeCache) -> Values:
    operand = operand_values(at, instruction, 0)
    children = table.of(shape_of(instruction._operands[0])).children
    number = instruction._attributes.get("index")
    if not isinstance(number, int) or not 0 <= number < len(children):
        raise MemoryModelError(f"{instruction.name} selects an element that its operand does not have")
    start, end = children[number]
    return fitting(instruction, parts, operand[start:end])


def _tuple(instruction: Instruction, parts: Subshapes, at: At, _: SubshapeCache) -> Values:
    found: list[Value | None] = [Value(instruction, instruction.name, (), parts.shapes[0])]
    for number in range(len(instruction.operands)):
        found += operand_values(at, instruction, number)
    return fitting(instruction, parts, tuple(found))


def _copy(instruction: Instruction, parts: Subshapes, at: At, _: SubshapeCache) -> Values:
    top = Value(instruction, instruction.name, (), parts.shapes[0])
    if len(parts.indices) == 1:
        return (top,)
    return fitting(instruction, parts, (top, *operand_values(at, instruction, 0)[1:]))


def _built(
    instruction: Instruction,
    parts: Subshapes,
    at: At,
    table: SubshapeCache,
    is_new: Callable[[ShapeIndex, Shape], bool],
    passed: Passed,
) -> Values:
    """A result put together part by part; what is neither new nor passed on has no value, as in XLA."""
    found: list[Value | None] = []
    for index, shape in zip(parts.indices, parts.shapes, strict=True):
        if is_new(index, shape):
            found.append(Value(instruction, instruction.name, index, shape))
            continue
        source = passed(index, shape)
        value = None
        if source is not None and source[0] < len(instruction.operands):
            number, inner = source
            place = table.of(shape_of(instruction.operands[number])).place.get(inner)
            value = operand_values(at, instruction, number)[place] if place is not None else None
        found.append(value)
    return tuple(found)


def _copy_start(instruction: Instruction, parts: Subshapes, at: At, table: SubshapeCache) -> Values:
    return _built(
        instruction, parts, at, table,
        lambda index, _: index in ((), (0,), (2,)),
        lambda index, _: (0, ()) if index == (1,) else None,
    )  # fmt: skip


def _copy_done(instruction: Instruction, parts: Subshapes, at: At, table: SubshapeCache) -> Values:
    return _built(
        instruction, parts, at, table,
        lambda _, __: False,
        lambda index, _: (0, (0,)) if index == () else None,
    )  # fmt: skip


def _send(instruction: Instruction, parts: Subshapes, at: At, table: SubshapeCache) -> Values:
    return _built(
        instruction, parts, at, table,
        lambda index, _: index in ((), (1,), (2,)),
        lambda index, _: (0, index[1:]) if index[:1] == (0,) else None,
    )  # fmt: skip


def _recv_done(instruction: Instruction, parts: Subshapes, at: At, table: SubshapeCache) -> Values:
    return _built(
        instruction, parts, at, table,
        lambda index, _: index in ((), (1,)),
        lambda index, _: (0, index) if index[:1] == (0,) else None,
    )  # fmt: skip


def _all_gather_start(instruction: Instruction, parts: Subshapes, at: At, table: SubshapeCache) -> Values:
    several = len(instruction.operands) > 1
    return _built(
        instruction, parts, at, table,
        lambda index, shape: shape.is_tuple or index[:1] == (1,),
        lambda index, _: ((index[1], ()) if len(index) == 2 else None) if several else (0, index[1:]),
    )  # fmt: skip


def _all_gather_done(instruction: Instruction, parts: Subshapes, at: At, table: SubshapeCache) -> Values:
    return _built(
        instruction, parts, at, table,
        lambda index, shape: shape.is_tuple and not index,
        lambda index, shape: None if shape.is_tuple else (0, (1, *index)),
    )  # fmt: skip


def _collective_permute_start(
    instruction: Instruction, parts: Subshapes, at: At, table: SubshapeCache
) -> Values:
    operands = len(instruction.operands)
    in_place = writes_in_place(instruction)
    if in_place:
        inside = shape_of(instruction.operands[1]).is_tuple if operands > 1 else False
    else:
        inside = operands > 1

    def is_new(index: ShapeIndex, _: Shape) -> bool:
        return (
            not index or (len(index) == 1 and index[0] >= 1) or (inside and len(index) == 2 and index[0] == 1)
        )

    def passed(index: ShapeIndex, _: Shape) -> tuple[int, ShapeIndex] | None:
        if index[0] != 0:
            return None
        if not in_place and operands > 1:
            return (index[1], ()) if len(index) == 2 else None
        if shape_of(instruction.operands[0]).is_tuple:
            return (0, index[1:]) if len(index) == 2 else None
        return (0, ()) if len(index) == 1 else None

    return _built(instruction, parts, at, table, is_new, passed)


def writes_in_place(permute: Instruction) -> bool:
    """Returns True if a collective-permute(-start) writes slices into its second operand."""
    return len(permute.operands) == 4 and "slice_sizes" in permute.attributes


def _collective_permute_done(
    instruction: Instruction, parts: Subshapes, at: At, table: SubshapeCache
) -> Values:
    return _built(
        instruction, parts, at, table,
        lambda index, shape: shape.is_tuple and not index,
        lambda index, _: (0, (1, *index)) if len(index) < 2 else None,
    )  # fmt: skip


def _async_update(instruction: Instruction, parts: Subshapes, at: At, table: SubshapeCache) -> Values:
    return _built(
        instruction, parts, at, table,
        lambda _, shape: shape.is_tuple,
        lambda index, _: (0, index),
    )  # fmt: skip


def _async_done(instruction: Instruction, parts: Subshapes, at: At, table: SubshapeCache) -> Values:
    return _built(
        instruction, parts, at, table,
        lambda _, shape: shape.is_tuple,
        lambda index, _: (0, (1, *index)),
    )  # fmt: skip


_RULES: dict[str, Callable[[Instruction, Subshapes, At, SubshapeCache], Values]] = {
    "add-dependency": _forward,
    "all-gather-done": _all_gather_done,
    "all-gather-start": _all_gather_start,
    "all-reduce-done": _forward,
    "async-done": _async_done,
    "async-update": _async_update,
    "bitcast": _forward,
    "collective-permute-done": _collective_permute_done,
    "collective-permute-start": _collective_permute_start,
    "copy": _copy,
    "copy-done": _copy_done,
    "copy-start": _copy_start,
    "domain": _forward,
    "get-tuple-element": _get_tuple_element,
    "opt-barrier": _forward,
    "recv-done": _recv_done,
    "send": _send,
    "tuple": _tuple,
}
"""Forwarding rule of each opcode; an opcode without one defines all of its result."""
