"""D102: elements widened and narrowed again with nothing in between."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import Backend
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import origin
from hlotext.lint.rule import Context, Report, Rule


class NeedlessRoundTrip(Rule):
    code = "D102"
    name = "needless-round-trip"
    title = "values widened and narrowed again with nothing in between"
    waste = "wide"
    is_default = False
    opcodes = frozenset({"convert"})

    def applies_to(self, context: Context) -> bool:
        # The CPU compiler widens 16-bit elements around everything, and not because of the program.
        return super().applies_to(context) and context.backend is not Backend.CPU

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        wide = origin(instruction.operands[0]) if instruction.operands else instruction
        if (
            wide is instruction or wide.opcode != "convert" or not wide.operands
        ):  # its operand is not the result of a conversion
            return
        shapes = instruction.shape, wide.shape, wide.operands[0].shape
        if any(shape is None or not shape.is_array for shape in shapes):  # it has no shape
            return
        narrow, middle, start = (shape.element_type for shape in shapes if shape is not None)
        if (
            narrow is start and middle.is_floating and start.is_floating and middle.bits > start.bits
        ):  # it does not widen a value and narrow it back
            yield Report(
                instruction,
                f"{start} is converted to {middle} and back to {start} without any computation in between",
                "use the values before the first convert",
            )
