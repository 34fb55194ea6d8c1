"""Arrays that are given on as they are: operations that only view or move one, and values inside fusions."""

from __future__ import annotations

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape

VIEWS = traits.KEEPS_ELEMENTS | traits.COPY_HALVES | traits.FORWARDS_OPERAND
"""Opcodes that give an array as it is, somewhere else or in another shape."""


@attrs.frozen
class Value:
    """Result of an instruction inside these fusions, outermost first."""

    instruction: Instruction
    fusions: tuple[Instruction, ...] = ()

    @property
    def writer(self) -> Instruction:
        """The operation that runs as a whole: the outermost fusion, or the instruction itself where there is none."""
        return self.fusions[0] if self.fusions else self.instruction

    def operands(self) -> list[Value]:
        """The operands as values inside the same fusions; `entered` steps from a fusion's parameter to its operand."""
        return [Value(operand, self.fusions) for operand in self.instruction.operands]


def array_of(shape: Shape | None) -> Shape | None:
    """The array of a result; of the start of a copy the one that it makes."""
    if shape is not None and shape.is_tuple and shape.tuple_shapes:
        shape = shape.tuple_shapes[0]
    return shape if shape is not None and shape.is_array else None


def fetched(instruction: Instruction) -> Instruction | None:
    """The array that the TPU compiler fetches into fast memory here, whole or in slices; None for anything else."""
    if instruction.attributes.get("custom_call_target") == "ConcatBitcast" and instruction.operands:
        instruction = instruction.operands[0]
    if instruction.opcode != "async-done" or not instruction.async_chain:
        return None
    inner, start = instruction.async_wrapped_instruction, instruction.async_chain[0]
    is_moved = inner is not None and inner.opcode in ("slice", "copy") and start.operands
    return start.operands[0] if is_moved else None
