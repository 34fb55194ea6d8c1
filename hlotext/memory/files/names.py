"""Shapes, op lines and scopes as XLA's files print them, also of instructions that are not in the text."""

from __future__ import annotations

import hlotext as hlo
from hlotext.findings.errors import HloSyntaxError
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.print_options import PrintOptions
from hlotext.ir.values.shape import Shape
from hlotext.memory.assignment import Assignment
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.values import Use, Value
from hlotext.syntax.printing.xla_styles import TextPrinter


class Names:
    """Names of an assignment's instructions in XLA's files, with op lines from these files for those not in the module
    text.
    """

    def __init__(self, assignment: Assignment) -> None:
        self._lines = assignment.lines
        self._elements = assignment.elements
        self._parsed: dict[str, Instruction | None] = {}
        self._printer = TextPrinter(PrintOptions())

    def instruction(self, place: Instruction | str) -> Instruction | None:
        """Returns an instruction, parsed from its op line in a file if necessary, or None if only its name is known."""
        if not isinstance(place, str):
            return place
        if place not in self._parsed:
            self._parsed[place] = _parsed(self._lines.get(place, ""))
        return self._parsed[place]

    def name(self, place: Instruction | str) -> str:
        """Returns the name of an instruction in XLA's files."""
        if isinstance(place, str):
            return place
        return self._elements.get(place, place.name)

    def of(self, value: Value) -> Instruction | None:
        return value.instruction if value.instruction is not None else self.instruction(value.name)

    def is_tuple(self, place: Instruction | str) -> bool:
        """Returns True if an instruction's shape is a tuple, so that shape indices are printed."""
        found = self.instruction(place)
        return found is not None and found.shape is not None and found.shape.is_tuple

    def reads_tuple(self, use: Use) -> bool:
        """Returns True if the operand of a use is a tuple."""
        user = use.instruction if use.instruction is not None else self.instruction(use.name)
        if user is None or not 0 <= use.operand_number < len(user.operands):
            return bool(use.operand_index)
        operand = user.operands[use.operand_number]
        if operand.shape is None:
            operand = self.instruction(operand.name) or operand
        return operand.shape is not None and operand.shape.is_tuple

    def line(self, value: Value) -> str:
        """Returns the op line of the instruction that defines a value, as XLA prints it: without ROOT, long constants
        elided. Raises MemoryModelError for an instruction that is not in a computation.
        """
        instruction = value.instruction
        if instruction is None:
            return self._lines.get(value.name, value.name)
        home = instruction.computation
        if home is None:
            raise MemoryModelError(f"{instruction.name} is not in a computation")
        return self._printer.instruction(instruction, self._printer.names(home))

    def whole_shape(self, value: Value) -> Shape | None:
        """Returns the shape of the instruction that defines a value, or None if unknown."""
        instruction = self.of(value)
        return instruction.shape if instruction is not None else None

    def label(self, instruction: Instruction) -> str:
        """Returns the label of an instruction in the peak breakdown: its op_name, or else its name."""
        metadata = instruction.metadata
        return metadata.op_name if metadata is not None and metadata.op_name else instruction.name


def _parsed(line: str) -> Instruction | None:
    try:
        return hlo.parse_instruction(line) if line else None
    except HloSyntaxError:
        return None
