"""D103: a wide matrix product of operands that were narrow."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.beside import is_worth_time
from hlotext.lint.helpers import MOVES, fusions_around
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import Value, source


@attrs.frozen
class UpcastDot(Rule):
    code = "D103"
    name = "upcast-dot"
    title = "a wide matrix product of operands that were narrow"
    needs_optimized = True
    opcodes = frozenset({"dot", "convolution"})

    min_elements: int = 4096
    """Elements of the smaller operand from which on it is worth a finding."""
    min_percent: float = 1
    """Percent of the estimated time of the module that it takes, with what is fused with it, likewise."""

    def applies_to(self, context: Context) -> bool:
        # The CPU compiler itself widens 16-bit operands, for which it has no product.
        return super().applies_to(context) and context.backend is not Backend.CPU

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        types = []
        fusions = fusions_around(instruction, context)
        for operand in instruction.operands[:2]:
            made = source(Value(operand, fusions), MOVES).instruction
            if (
                made.opcode != "convert"
                or not made.operands
                or operand.shape is None
                or not operand.shape.is_array
                or operand.shape.element_count < self.min_elements
            ):
                return
            before = made.operands[0].shape
            if before is None or not before.element_type.is_floating or before.element_type.bits > 16:
                return
            types.append(before.element_type)
        if len(types) == 2 and instruction.operands[0].shape is not None:
            wide = instruction.operands[0].shape.element_type
            if wide.name == "f32" and is_worth_time((*fusions, instruction)[0], context, self.min_percent):
                yield Report(
                    instruction,
                    f"{instruction.opcode} of {wide} operands that were {' and '.join(dict.fromkeys(map(str, types)))}",
                    f"multiply the narrow arrays with preferred_element_type={wide}",
                    flops=context.flops(instruction),
                )
