"""Op lines of the source that are, letter for letter, what the printer would write: they are copied, not made anew.

A line is made of a name, a shape, operands and the text of its attributes. Of shapes, attribute texts and literals a
module has few distinct ones (`Module._parts`), so each is printed and compared once, unless the reader has seen on the way
that it is what XLA writes; the reader has also said whether names and operands stand as XLA writes them
(`Computation._name_mark`). Where all parts are written as the printer writes them, whole computations are copied, and runs
of them where their headers are. That prints a large module at many times the speed of making its lines; a test compares
both on the corpus.
"""

from __future__ import annotations

import operator
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.raw import CallAttributes
from hlotext.ir.tables import opcodes
from hlotext.ir.values.print_options import PrintOptions, SubcomputationMode
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import Sharding

if TYPE_CHECKING:
    from hlotext.syntax.printing.xla_styles import TextPrinter


class LineCopier:
    """Copies unchanged lines of a module for a printer."""

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
            and not options.is_in_nested_computation
            # Frames are looked up in the module, which a part alone does not know.
            and not options.print_inline_stack_frames
        )
        self._copied: set[int] = set()
        """The parts, by id, that are written as the printer writes them."""
        self._odd: set[int] | None = None
        """Those that are not, or not on every line; None before anything was learned."""
        self._spread: set[int] = set()
        """Attributes with one sharding, which is printed for each leaf of a tuple."""
        self._shown: dict[int, str] = {}
        """The module's shapes as headers show them, by id."""

    def learn(self, module: Module) -> None:
        """Determines which parts of a module's lines are written as the printer writes them."""
        if not self.can_copy:
            return
        module.materialize()  # parts become known as computations are read
        is_default = self.printer.options == PrintOptions.default()
        copied, odd = {id(None)}, set[int]()
        tuples, doubtful = set[str](), list[tuple[str, int]]()
        for text, opcode, value, is_known in module._parts:
            if (is_known and is_default) or self._written(opcode, value) == text:
                copied.add(id(value))
            else:
                odd.add(id(value))
            if type(value) is dict:
                sharding = value.get("sharding")
                if isinstance(sharding, Sharding) and not sharding.is_tuple:
                    self._spread.add(id(value))
                    doubtful.append((opcode, id(value)))
            elif isinstance(value, Shape):
                self._shown[id(value)] = value.text_without_layout()
                if value.is_tuple:
                    tuples.add(opcode)
        # One value may have been read from two texts.
        self._copied = copied - odd
        self._odd = odd.union(attributes for opcode, attributes in doubtful if opcode in tuples)

    def _written(self, opcode: str, value: Any) -> str | None:
        """Printed text of a part; None if it depends on other instructions."""
        printer = self.printer
        if isinstance(value, Shape):
            return f"{printer.shape(value)} {opcode}"
        if not isinstance(value, dict):
            return printer.argument(Instruction("", opcode, None, (), {}, value), printer.names(_NOWHERE))
        if opcode == "compare" and ("type" in value or "order" in value):
            return None  # printed if the operands' type has another one
        found = printer.attributes(Instruction("", opcode, None, (), value), printer.names(_NOWHERE), 1, None)
        return "".join([f", {attribute}" for attribute in found])

    def opcodes(self, module: Module) -> Iterable[str]:
        """Returns the opcodes of a module, without visiting each line if the lines consist of known parts."""
        if not module.is_modified and all(map(_parts_of, module._computations)):
            return {part[1] for part in module._parts}
        return map(_opcode_of, module.instructions())

    def runs(self, module: Module, hidden: Container[Computation]) -> dict[Computation, int]:
        """Returns runs of computations that can be copied from the source verbatim.

        The value is the end offset of the run for its first computation, and 0 for the others.
        """
        found: dict[Computation, int] = {}
        if self._odd is None or not self.printer.options.print_program_shape or module._source is None:
            return found
        text, shown, mark = module._source.text, self._shown, self.mark
        entry = module.entry if module._computations else None
        closing = self.printer.closing
        first, position = None, -1
        for computation in module._computations:
            root, instructions = computation._root, computation._instructions
            if (
                root is None
                or computation._name_mark != mark
                or computation._is_modified
                or not self._is_copied(computation)
                or computation._is_signature_touched
                or computation._is_inline
                or computation in hidden
            ):
                first = None
                continue
            parameters: list[Any] = [i for i in instructions if i._head.opcode == "parameter"]
            for number, parameter in enumerate(parameters):
                if parameter._head.argument != number:
                    parameters.sort(key=_number)
                    break
            try:
                shapes = ", ".join([f"{p._name}: {shown[id(p._head.shape)]}" for p in parameters])
                result = shown[id(root._head.shape)]
            except KeyError:  # not the reader's own shape
                first = None
                continue
            head = f"{'ENTRY ' if computation is entry else ''}{mark}{computation._name} ({shapes}) -> {result} {{"
            start, end = computation._start, computation._end
            if text[start : computation._brace + 1] != head or not text.endswith(
                closing(computation, ""), start, end
            ):
                first = None
                continue
            if first is None or start != position + 2 or text[position:start] != "\n\n":
                first = computation
            else:
                found[computation] = 0
            found[first] = position = end
        return found

    def body(self, computation: Computation) -> str | None:
        """Returns the lines of a computation, each with the line end before it; None if none can be copied."""
        module = computation.module
        if (
            not self._copied
            or computation._name_mark != self.mark
            or computation._root is None
            or module is None
            or module.source is None
        ):
            return None
        text = module.source.text
        is_modified = computation.is_modified
        start = position = computation._brace + 1
        if not is_modified and self._is_copied(computation):
            return text[start : text.rindex("\n", start, computation._end)]
        pieces: list[str] = []
        for instruction in computation._instructions:
            end = self._end_of_copied(instruction)
            # A line may have been moved, or the one before it taken out.
            if end is not None and (not is_modified or text.rfind("\n", position, end) == position):
                position = end
                continue
            if position > start:
                pieces.append(text[start:position])
            mark = "ROOT " if instruction.is_root else ""
            pieces.append(
                f"\n  {mark}{self.printer.instruction(instruction, self.printer.names(computation), 1)}"
            )
            start = position = max(instruction._end, position)
        pieces.append(text[start:position])
        return "".join(pieces)

    def _is_copied(self, computation: Computation) -> bool:
        """True if the op lines of a computation that was not edited are what the printer writes."""
        odd = self._odd
        if not computation._parts_read or odd is None:
            return False
        if odd:
            for instruction in computation._instructions:
                attributes: Any = instruction._attributes
                if type(attributes) is CallAttributes:
                    attributes = attributes.common
                head = instruction._head
                if (
                    id(attributes) in odd or id(head.shape) in odd or id(head.argument) in odd
                ) and self._end_of_copied(instruction) is None:
                    return False
        return True

    def _end_of_copied(self, instruction: Instruction) -> int | None:
        """Where an op line ends in the source if it is what the printer writes; None if it is not."""
        attributes: Any = instruction._attributes
        shape = instruction._head.shape
        if type(attributes) is CallAttributes:
            attributes = attributes.common
        if (
            instruction.is_modified
            or type(instruction._place) is not int
            or not self._copied.issuperset((id(attributes), id(shape), id(instruction._head.argument)))
            or instruction._head.opcode in opcodes.CONTEXT_DEPENDENT
            or (id(attributes) in self._spread and shape is not None and shape.is_tuple)
        ):
            return None
        return instruction._end


_number = operator.attrgetter("_head.argument")
_parts_of = operator.attrgetter("_parts_read")
_opcode_of = operator.attrgetter("_head.opcode")
_NOWHERE = Computation("")
