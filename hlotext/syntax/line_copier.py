"""Op lines of the source that are, letter for letter, what the printer would write: they are copied, not made anew.

A line is made of a name, a shape, operands and the text of its attributes. Of shapes, attribute texts and literals a
module has few distinct ones, shared by all lines that have them, so each is printed and compared once; the reader has said
whether names and operands stand as XLA writes them (`Computation.name_mark`). Copying prints a large module at several
times the speed of making its lines; a test compares both on the corpus.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hlotext.ir import opcodes
from hlotext.ir.computation import Computation
from hlotext.ir.instruction import CallAttributes, Instruction
from hlotext.ir.literal import Literal
from hlotext.ir.opcode import Derived
from hlotext.ir.print_options import SubcomputationMode
from hlotext.syntax import patterns

if TYPE_CHECKING:
    from hlotext.syntax.printer import TextPrinter

Names = Callable[[Instruction], str]


class LineCopier:
    """Copies the lines of one module for one printer. Printed objects live as long as it does, so ids identify them."""

    def __init__(self, printer: TextPrinter) -> None:
        options = printer.options
        self.printer = printer
        self.mark = printer.percent
        self.can_copy = (
            options.print_ids
            and options.print_operand_names
            and options.print_result_shape
            and options.print_operand_index_annotation_interval == 5
            and options.print_subcomputation_mode is SubcomputationMode.NAME_ONLY
            and not options.print_operand_shape
            and not options.compact_operands
            and not options.canonicalize_instruction_names
            and not options.compact_gte
            and not options.indent_amount
        )
        self._same: dict[int, int] = {}
        """For shapes, attribute dicts and literals by id: on which lines the source's text is what the printer writes,
        `_ARRAYS`, `_TUPLES`, both or none."""

    def body(self, computation: Computation, names: Names) -> str | None:
        """The lines of a computation, each with the line end before it; None when nothing can be copied."""
        module = computation.module
        if not self.can_copy or computation.name_mark != self.mark or module is None or module.source is None:
            return None
        text = module.source.text
        same = self._same
        is_touched = computation.is_touched
        pieces: list[str] = []
        start = position = computation._brace + 1
        for instruction in computation._instructions:
            attributes = instruction._attributes
            argument = instruction._argument
            if (
                not is_touched
                and same.get(id(attributes.common if type(attributes) is CallAttributes else attributes), 0)
                & same.get(id(instruction._shape), 0)
                and (type(argument) is not Literal or same.get(id(argument)))
            ) or self._is_copy(instruction, position, text):
                position = instruction._place  # type: ignore[assignment]  # a line that can be copied has one offset
                continue
            if position > start:
                pieces.append(text[start:position])
            mark = "ROOT " if instruction.is_root else ""
            pieces.append(f"\n  {mark}{self.printer.instruction(instruction, names, 1)}")
            start = position = max(instruction._end, position)
        if not pieces:
            return text[start:position]
        pieces.append(text[start:position])
        return "".join(pieces)

    def _is_copy(self, instruction: Instruction, position: int, text: str) -> bool:
        """Whether the op line that starts behind that offset is what the printer writes. Compares parts not met yet."""
        shape, literal = instruction._shape, instruction.literal
        # What an async operation or a derived attribute prints depends on other instructions.
        if shape is None or instruction.is_touched or instruction._opcode in _DEPENDENT:
            return False
        line = patterns.op_line("\n  ", self.mark).match(text, position)
        if line is None or line.end() != instruction._end:
            return False
        printer, same = self.printer, self._same
        attributes = instruction._attributes
        key = id(attributes.common if type(attributes) is CallAttributes else attributes)
        if key not in same:
            computation = instruction.computation
            assert computation is not None
            found = printer.attributes(instruction, printer.names(computation), 1, None)
            is_same = "".join(f", {attribute}" for attribute in found) == line[6]
            # A sharding is printed once for each leaf of a tuple, so what holds for an array need not hold for those.
            same[key] = (_ARRAYS if "sharding" in attributes else _ARRAYS | _TUPLES) if is_same else 0
        if id(shape) not in same:
            is_same = f"{printer.shape(shape)} {instruction._opcode}" == line[3]
            same[id(shape)] = (_TUPLES if shape.is_tuple else _ARRAYS) if is_same else 0
        if literal is not None and id(literal) not in same:
            same[id(literal)] = _ARRAYS if printer.literal(literal) == line[5] else 0
        return bool(same[key] & same[id(shape)]) and (literal is None or bool(same[id(literal)]))


_ARRAYS, _TUPLES = 1, 2
_DEPENDENT = frozenset(
    row.name
    for row in opcodes.OPCODES.values()
    if row.name.startswith("async-") or any(isinstance(use.default, Derived) for use in row.attributes)
)
