"""Arrays that are given on as they are: operations that only view or move one, and values inside fusions."""

from __future__ import annotations

from collections.abc import Container, Iterable

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape

VIEWS = traits.KEEPS_ELEMENTS | traits.COPY_HALVES | traits.FORWARDS_OPERAND
"""Opcodes that give an array as it is, somewhere else or in another shape."""

_MOST_STEPS = 300
"""Maximum number of instructions visited on the way to a value's origin."""


@attrs.define(
    unsafe_hash=True
)  # never changed: made by the hundred thousand, and what checks that takes most of the time
class Value:
    """The result of an instruction inside nested fusions, which are listed outermost first."""

    instruction: Instruction
    fusions: tuple[Instruction, ...] = ()

    @property
    def writer(self) -> Instruction:
        """The instruction that is executed as a whole: the outermost fusion, or the instruction itself if not fused."""
        return self.fusions[0] if self.fusions else self.instruction

    def operands(self) -> list[Value]:
        """Returns the operands as values inside the same fusions; `entered` resolves a fusion's parameter to its
        operand.
        """
        fusions = self.fusions
        return [Value(operand, fusions) for operand in self.instruction._operands]


def entered(value: Value, known: Container[Instruction] = ()) -> Value:
    """Resolves a fusion to the value at its root, and a parameter of a fusion's body to the fusion's operand.

    Other values are returned unchanged, and so is any instruction in `known` that is outside all fusions.
    """
    one, fusions = _entered(value.instruction, value.fusions, known)
    return value if one is value.instruction else Value(one, fusions)


_ENTERED = traits.TUPLES | traits.DONES | {"fusion", "parameter"}
"""Opcodes of results whose origin may stand inside or outside of a fusion, or in a tuple."""


def _entered(
    one: Instruction, fusions: tuple[Instruction, ...], known: Container[Instruction] = ()
) -> tuple[Instruction, tuple[Instruction, ...]]:
    for _ in range(_MOST_STEPS):
        opcode = one._head.opcode
        if opcode not in _ENTERED or (not fusions and one in known):
            break
        if opcode == "fusion":
            bodies = one.called_computations
            if not bodies or not bodies[0]._instructions or (root := bodies[0].root)._head.opcode == "tuple":
                break
            one, fusions = root, (*fusions, one)
        elif opcode == "parameter":
            number, handed = one._head.argument, fusions[-1]._operands if fusions else ()
            if type(number) is not int or number >= len(handed):
                break
            one, fusions = handed[number], fusions[:-1]
        elif opcode == "async-done":
            wrapped = one.async_wrapped_instruction
            if wrapped is None or wrapped._head.opcode != "fusion":
                break
            one, fusions = wrapped, (*fusions, one.async_chain[0])
        elif opcode == "get-tuple-element" and one._operands:
            made, index = one._operands[0], one._attributes.get("index")
            while made._head.opcode in ("opt-barrier", "copy") and made._operands:
                made = made._operands[0]
            if not isinstance(index, int):
                break
            opcode = made._head.opcode
            if opcode == "tuple" and index < len(made._operands):
                one = made._operands[index]
                continue
            bodies = made.called_computations if opcode == "fusion" else ()
            given = bodies[0].root._operands if bodies and bodies[0].root._head.opcode == "tuple" else ()
            if index >= len(given):
                break
            one, fusions = given[index], (*fusions, made)
        else:
            break
    return one, fusions


def source(value: Value, through: Iterable[str]) -> Value:
    """Returns the origin of a value, looking through fusions and through the first operand of these opcodes."""
    passed = through if isinstance(through, frozenset) else frozenset(through)
    one, fusions = value.instruction, value.fusions
    for _ in range(_MOST_STEPS):
        if one._head.opcode in _ENTERED:
            one, fusions = _entered(one, fusions)
        if one._head.opcode not in passed or not (operands := one._operands):
            break
        one = operands[0]
    return value if one is value.instruction else Value(one, fusions)


def array_of(shape: Shape | None) -> Shape | None:
    """Returns the array of a result, or for the start of a copy, the array that it produces; None if there is none."""
    if shape is not None and shape.is_tuple and shape.tuple_shapes:
        shape = shape.tuple_shapes[0]
    return shape if shape is not None and shape.is_array else None


def fetched(instruction: Instruction) -> Instruction | None:
    """Returns the array that the TPU compiler prefetches into fast memory here, whole or in slices; None for others."""
    if instruction.attributes.get("custom_call_target") == "ConcatBitcast" and instruction.operands:
        instruction = instruction.operands[0]
    if instruction.opcode != "async-done" or not instruction.async_chain:
        return None
    inner, start = instruction.async_wrapped_instruction, instruction.async_chain[0]
    is_moved = inner is not None and inner.opcode in ("slice", "copy") and start.operands
    return start.operands[0] if is_moved else None
