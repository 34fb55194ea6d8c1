"""Matrices of which almost everything is known to be zero: one-hot rows, diagonals, and what is made of them."""

from __future__ import annotations

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.slots import before_loops
from hlotext.lint.values import Value, entered, formula, source

_SAME = frozenset({"bitcast", "broadcast", "convert", "copy", "reshape", "transpose", "opt-barrier"})
_CUT = frozenset({"dynamic-slice", "slice"})
_DEEPEST = 12


@attrs.frozen
class Selector:
    """A matrix with one nonzero element in each row."""

    classes: int
    """Elements of a row."""
    is_diagonal: bool
    """True if each row selects its own index."""


def selector(value: Value, deepest: int = _DEEPEST) -> Selector | None:
    """Returns the selection that a value makes: `indices == iota`, or a product, conversion or masking of one; else
    None.
    """
    made = source(value, _SAME)
    if deepest and (first := before_loops(made)) != made:
        return selector(first, deepest - 1)
    one, operands = made.instruction, made.operands()
    if not deepest or not operands:
        return None
    if one.opcode in _CUT:
        whole = selector(operands[0], deepest - 1)
        has_all = one.shape is not None and whole is not None and whole.classes in one.shape.dimensions
        return whole if has_all else None
    if one.opcode == "compare" and str(one.attributes.get("direction")) == "EQ" and len(operands) == 2:
        return _compared(operands)
    if one.opcode in ("and", "multiply"):
        found = [known for operand in operands if (known := selector(operand, deepest - 1)) is not None]
        return max(found, key=lambda each: each.classes, default=None)
    if one.opcode == "select" and len(operands) == 3 and is_zero(operands[2]):
        return selector(operands[0], deepest - 1)
    if one.opcode == "pad" and is_zero(operands[1]):
        return selector(operands[0], deepest - 1)
    if one.opcode == "gather":
        found_ = selector(operands[0], deepest - 1)
        return Selector(found_.classes, False) if found_ is not None and found_.is_diagonal else None
    return None


def _compared(operands: list[Value]) -> Selector | None:
    values = [source(operand, _SAME) for operand in operands]
    for value, other in (values, values[::-1]):
        if value.instruction.opcode == "reduce" and _is_same(source(value.operands()[0], _SAME), other):
            return _extreme(value.instruction)
    sides = [value.instruction for value in values]
    counted = [side for side in sides if side.opcode == "iota" and side.shape is not None]
    others = [side for side in sides if side.opcode != "iota"]
    if not counted or any(other.opcode == "constant" for other in others):
        return None
    sizes = [_size(side) for side in counted]
    if len(counted) == 2:
        dimensions = {side.attributes.get("iota_dimension", 0) for side in counted}
        ranks = {side.shape.rank for side in counted if side.shape is not None}
        return Selector(max(sizes), True) if len(dimensions) == 2 or ranks == {1} else None
    return Selector(sizes[0], False)


def _is_same(a: Value, b: Value) -> bool:
    return a == b or (a.instruction.opcode == b.instruction.opcode and formula(a) == formula(b))


def _extreme(reduced: Instruction) -> Selector | None:
    """Rows compared with their maximum or minimum: equal in one place, ties aside."""
    before, after = reduced.operands[0].shape, reduced.shape
    if before is None or after is None or not after.is_array or not after.element_count:
        return None
    called = reduced.called_computations
    if not called or called[0].root.opcode not in ("maximum", "minimum"):
        return None
    return Selector((before.element_count or 0) // after.element_count, False)


def _size(counted: Instruction) -> int:
    dimension = counted.attributes.get("iota_dimension", 0)
    shape = counted.shape
    return shape.dimensions[dimension] if shape is not None and dimension < shape.rank else 0


def is_zero(value: Value) -> bool:
    """True if a value is zero everywhere."""
    made = source(value, _SAME).instruction
    return made.opcode == "constant" and str(made.literal).strip("{} ") in ("0", "false", "-0")


def written(value: Value) -> Instruction | None:
    """Returns the instruction that writes a value to memory; None if it is computed inside the fusion that reads it."""
    while value.fusions and value.instruction.opcode in _SAME | {"parameter"}:
        one = value.instruction
        if one.opcode == "parameter":
            number = one.parameter_number or 0
            value = Value(value.fusions[-1].operands[number], value.fusions[:-1])
        elif one.operands:
            value = value.operands()[0]
        else:
            return None
    if value.fusions:
        return None
    one = value.instruction
    while (
        one.opcode in _SAME | {"get-tuple-element"}
        and one.opcode not in ("broadcast", "convert")
        and one.operands
    ):
        one = one.operands[0]
    return one


def writers(value: Value) -> list[Instruction]:
    """Returns the instructions that write a matrix, or the values it is computed from, to memory, including slices in
    loops.

    All of them become dead with its last reader.
    """
    reader = value.fusions[:1]
    found: dict[Instruction, None] = {}
    for _ in range(_MOST_STEPS):
        value = entered(value)
        one = value.instruction
        if value.writer.opcode not in _UNWRITTEN and (value.writer,) != reader:
            found.setdefault(value.writer)
        if one.opcode in _SAME | _CUT and one.operands:
            value = value.operands()[0]
            continue
        outer = before_loops(value)
        if outer == value:
            break
        value = outer
    return list(found)


_UNWRITTEN = traits.IS_FREE | {"iota", "reshape"}
_MOST_STEPS = 100
