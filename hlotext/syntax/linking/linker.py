"""From records to nodes: names become references, and XLA's conditions on a module are checked.

Both readers end here, so an error is found and said the same way whichever reader met the text first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.findings.errors import TermError
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.raw import CallAttributes
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Opcode
from hlotext.ir.values.left_out import LeftOut
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.shape import Shape
from hlotext.semantics.message_text import shown
from hlotext.syntax import checks, module_checks, reading
from hlotext.syntax.language import patterns
from hlotext.syntax.linking import async_sugar
from hlotext.syntax.linking.scope import Scope
from hlotext.syntax.linking.undefined import Undefined, note_unknown_types
from hlotext.syntax.literals import read_literal
from hlotext.syntax.source.reporter import Place, Reporter

if TYPE_CHECKING:
    from hlotext.syntax.reading.records import (
        ComputationRecord,
        InlineBody,
        InstructionRecord,
        InstructionReference,
        OperandRecord,
        OperationRecord,
        PartialRecord,
        SignatureRecord,
    )

Infer = Callable[[Instruction], Shape]
"""Infers an omitted result shape; raises ValueError if that is impossible."""


class Linker:
    """Builds the nodes of a module from records."""

    def __init__(
        self,
        module: Module,
        reporter: Reporter,
        infer: Infer | None = None,
        computations: dict[str, Computation] | None = None,
    ) -> None:
        self.module = module
        self.reporter = reporter
        self.infer = infer
        self.computations = {} if computations is None else computations
        self.taken: set[str] = set()
        """Names of computations made for sugared asynchronous operations."""
        self.undefined = Undefined(reporter)
        self.pending: list[tuple[Scope, Instruction, str, Any]] = []
        """Attributes that name computations which were not defined yet: scope, instruction, attribute name, value."""
        self.has_lost_computations = False
        """The name of a computation could not be made out."""
        self.mark = -1, 0, 0
        """Where the last computation begins, and how many computations and pending attributes there were before it."""

    # ---- computations

    def begin(self, name: str, start: int, is_entry: bool, brace: int = -1) -> Scope:
        """Opens a computation, to which instructions are then added."""
        self.mark = start, len(self.module._computations), len(self.pending)
        computation = Computation(name, module=self.module, start=start, brace=brace)
        if (first := self.computations.get(name)) is not None:
            related: list[Place] = [("first defined here", first._start, first._brace)]
            self.reporter.error("X105", f"computation {name} is defined twice", start, related=related)
        self.computations[name] = computation
        if is_entry:
            if self.module._entry is not None:
                related = [("the first one", self.module._entry._start, self.module._entry._start + 5)]
                self.reporter.error(
                    "X107", "a module can have only one ENTRY computation", start, related=related
                )
            self.module._entry = computation
        self.module._computations.append(computation)
        return Scope(computation)

    def add_computation(self, record: ComputationRecord) -> Computation:
        """Adds a whole computation."""
        scope = self.begin(record.name, record.start, record.is_entry, record.brace)
        scope.computation._end = record.end
        scope.computation._execution_thread = record.execution_thread
        scope.computation._backend_config = record.backend_config
        for instruction in record.instructions:
            self.add_instruction(scope, instruction)
        self.finish(scope)
        if record.signature is not None:
            self.check_signature(scope.computation, record.signature)
        return scope.computation

    def check_signature(self, computation: Computation, signature: SignatureRecord) -> None:
        """Checks that the result shape in a computation's header is compatible with its root."""
        blank = patterns.blank().match(self.reporter.source.text, signature.position)
        start = signature.position if blank is None else blank.end()
        module_checks.signature(self.reporter, computation, signature.result, start, signature.end)

    def forget(self, computations: int, pending: int) -> None:
        """Discards all computations and all pending references except the first ones, as many as given."""
        listed = self.module._computations
        for computation in listed[computations:]:
            self.taken.discard(computation.name)
            if self.computations.get(computation.name) is computation:
                del self.computations[computation.name]
            if self.module._entry is computation:
                self.module._entry = None
        del listed[computations:]
        del self.pending[pending:]

    def add_partial(self, record: PartialRecord) -> None:
        """Adds what precedes a syntax error, since any other error in it must be reported first."""
        if record.head is not None:
            from hlotext.syntax.linking.head_linker import link_head  # only errors and rare headers need it

            link_head(self.module, self.reporter, record.head)
        for computation in record.computations:
            self.add_computation(computation)
        if record.unfinished is not None:
            unfinished = record.unfinished
            scope = self.begin(unfinished.name, unfinished.start, unfinished.is_entry, unfinished.brace)
            scope.computation._end = unfinished.end
            for instruction in unfinished.instructions:
                self.add_instruction(scope, instruction)

    def finish(self, scope: Scope) -> None:
        """Closes a computation and checks it."""
        computation = scope.computation
        if not computation._instructions and not scope.is_unclosed:
            what = f"computation {computation.name}" if computation.name else "this computation"
            self.reporter.error("X122", f"{what} has no instructions", max(computation._brace, 0))
        if not scope.is_damaged:
            module_checks.parameters(self.reporter, computation, scope.parameters)
        module_checks.names(self.reporter, computation, scope.defined)

    # ---- instructions

    def add_instruction(self, scope: Scope, record: InstructionRecord) -> Instruction:
        """Adds the instruction of an op line to a computation."""
        operation = record.operation
        if operation.shape is not None:
            note_unknown_types(self.reporter, operation.shape, record.start)
        attributes = self.attributes(scope, record)
        operands = self.operands(scope, operation)
        name = record.name or "_"
        instruction = Instruction(
            name, operation.opcode, operation.shape, operands, attributes, None, scope.computation, (record.start, record.end)
        )  # fmt: skip
        if not self.set_argument(instruction, operation):
            return self.add_bad(scope, record.start, record.end, name, operation.shape, record.is_root)
        position = {attribute.name: attribute.position for attribute in record.attributes}
        self.resolve(scope, instruction, position)
        if (short := _short_spelling(instruction)) is not None:
            self.unsweeten(scope, instruction, short, operation.position, position)
        elif operation.opcode == "async-done":
            instruction._operands = operands[:1]  # as XLA, which leaves out the others (`CreateAsyncDone`)
        checks.opcode(self.reporter, instruction, operation.position, position)
        self.fill_shape(instruction, operation.position)
        checks.instruction(self.reporter, instruction, operation.position, position)
        self.define(scope, instruction, record.is_root)
        return instruction

    def add_bad(
        self, scope: Scope, start: int, end: int, name: str, shape: Shape | None, is_root: bool
    ) -> BadInstruction:
        """Adds a placeholder for invalid lines to a computation, which keeps their text and name."""
        text = self.reporter.source.text[start:end].rstrip()
        bad = BadInstruction(
            name,
            shape,
            scope.computation,
            place=(start, start + len(text)),
            text=text,
        )
        scope.is_damaged = True
        scope.has_lost_names = scope.has_lost_names or not name
        first = scope.defined.get(name)
        if name and (first is None or _is_missing(first)):
            scope.defined[name] = bad
        scope.computation._instructions.append(bad)
        if is_root and scope.computation._root is None:
            scope.computation._root = bad
        return bad

    def unsweeten(
        self,
        scope: Scope,
        instruction: Instruction,
        short: tuple[Opcode, Opcode],
        position: int,
        places: dict[str, int],
    ) -> None:
        """Replaces a sugared asynchronous instruction by the generic form."""
        plain, wrapped = short[0].name, short[1].name
        if plain == "async-start":
            inner = {
                key: value
                for key, value in instruction._attributes.items()
                if key not in async_sugar.ON_START
            }
            operands = instruction._operands
            body = async_sugar.wrap(self.module, instruction, wrapped, self.taken, self.computations)
            # Operands that are missing are passed by updates, be they as many as the opcode must have.
            missing = [p for p in body.parameters[len(operands) :] if p._form is Form.IMPLICIT]
            shadow = Instruction("", wrapped, None, (*operands, *missing), inner)
            checks.opcode(self.reporter, shadow, position, places)
            self.taken.add(body.name)
            self._put_before(scope, body)
            self._hand_on_pending(scope, instruction, body.root)
            return
        if "calls" in instruction._attributes:
            self.reporter.error(
                "X109", f"{instruction._head.opcode} has no attribute calls", places.get("calls", position)
            )
        instruction._opcode = plain
        if plain == "async-done":
            instruction._operands = instruction._operands[:1]
        async_sugar.pass_on(instruction)
        async_sugar.hand_in(instruction)
        # A done without its operand, which is an error of its own, has what it calls itself.
        operation = instruction.async_wrapped_instruction if instruction._operands else None
        if operation is not None and operation.opcode != wrapped:
            start = instruction._operands[0]
            message = f"this completes an asynchronous {wrapped}, but {start.name} runs {operation.opcode}"
            related = [(f"{start.name} is defined here", start._start, start._end)]
            self.reporter.error("X120", message, position, related=related)

    def _hand_on_pending(self, scope: Scope, start: Instruction, operation: Instruction) -> None:
        """Moves uses of names that were undefined from a short spelling to the operation that it wraps."""
        for place in range(len(self.pending) - 1, -1, -1):
            inside, instruction, name, value = self.pending[place]
            if instruction is start and name in operation._attributes:
                self.pending[place] = inside, operation, name, value
            elif inside is scope and instruction is not start:
                return  # an earlier line

    def define(self, scope: Scope, instruction: Instruction, is_root: bool) -> None:
        """Appends an instruction to its computation and registers its name."""
        computation = scope.computation
        first = scope.defined.get(instruction.name)
        if first is not None and first._form is Form.COMPACT:
            scope.make_way(first)
        elif first is not None and not _is_missing(first):
            module_checks.duplicate(self.reporter, instruction, first)
        scope.defined[instruction.name] = instruction
        computation._instructions.append(instruction)
        if instruction._head.opcode == "parameter":
            scope.parameters.append(instruction._head.argument)
        if is_root:
            if computation._root is not None:
                start = computation._root._start
                related: list[Place] = [("the first one", start, start + 4)]
                self.reporter.error(
                    "X106", "a computation can have only one ROOT", instruction._start, related=related
                )
            computation._root = instruction

    def attributes(self, scope: Scope, record: InstructionRecord) -> dict[str, Any]:
        """Returns the attributes as a dict. Reports duplicates."""
        values: dict[str, Any] = {}
        places: dict[str, int] = {}
        for attribute in record.attributes:
            name = attribute.name
            if name in values:
                related = [("first given here", places[name], None)]
                message = f"attribute {name} is given twice"
                self.reporter.error("X111", message, attribute.position, related=related)
            values[name], places[name] = attribute.value, attribute.position
        return values

    def set_argument(self, instruction: Instruction, operation: OperationRecord) -> bool:
        """Sets the number of a `parameter` or value of a `constant`. Returns False if it is invalid."""
        if operation.opcode == "parameter":
            instruction._argument = operation.argument
        elif operation.opcode == "constant":
            if instruction._head.shape is None:
                self.reporter.error("X117", "a constant needs a shape", operation.position)
                return False
            start, end = operation.argument
            try:
                instruction._argument = read_literal(
                    self.reporter.source.text[start:end], instruction._head.shape
                )
            except TermError as error:
                self.reporter.error("X118", error.message, start + error.position, help=error.help)
                return False
        return True

    def operands(self, scope: Scope, operation: OperationRecord) -> tuple[Instruction, ...]:
        return tuple(self.operand(scope, operand) for operand in operation.operands)

    def operand(self, scope: Scope, record: OperandRecord) -> Instruction:
        """Returns the instruction of an operand, which is created if the operand is a nested operation."""
        if record.operation is not None:
            return self.nested(scope, record)
        if record.name is None:
            return self.unknown_operand(scope, record)
        found = scope.defined.get(record.name)
        if found is None:
            return self.unknown_operand(scope, record)
        for index in record.indices:
            found = self.element(scope, found, index, record.position)
        if record.shape is not None:
            checks.operand_shape(self.reporter, found, record.shape, record.position)
        return found

    def nested(self, scope: Scope, record: OperandRecord) -> Instruction:
        """Creates an instruction for a nested operation, with the name that XLA gives it."""
        operation = record.operation
        assert operation is not None
        operands = self.operands(scope, operation)
        name = scope.unique(f"{operation.opcode}.anon")
        nested = Instruction(
            name, operation.opcode, record.shape, operands, {}, None, scope.computation, form=Form.NESTED
        )  # fmt: skip
        self.set_argument(nested, attrs.evolve(operation, shape=record.shape))
        checks.opcode(self.reporter, nested, operation.position, {})
        self.fill_shape(nested, operation.position)
        self.define(scope, nested, is_root=False)
        return nested

    def element(self, scope: Scope, operand: Instruction, index: int, position: int) -> Instruction:
        """Returns the get-tuple-element for `%t#index`, one for each element."""
        if scope.elements is None:
            scope.elements = {}
        found = scope.elements.get((operand, index))
        if found is not None:
            return found
        shape = operand.shape
        if shape is None and isinstance(operand, BadInstruction):
            return operand  # which element of it is not known either
        if shape is None or not shape.is_tuple or not 0 <= index < len(shape.tuple_shapes):
            what = f"is {shown(shape)}" if shape is not None else "has no known shape"
            self.reporter.error("X112", f"{operand.name} {what}, so it has no element #{index}", position)
            return operand
        name = scope.unique(f"{operand.name}_{index}")  # as XLA names it
        element = Instruction(
            name, "get-tuple-element", shape.tuple_shapes[index], (operand,), {"index": index}, None,
            scope.computation, form=Form.COMPACT,
        )  # fmt: skip
        self.define(scope, element, is_root=False)
        scope.elements[operand, index] = element
        return element

    def unknown_operand(self, scope: Scope, record: OperandRecord) -> Instruction:
        """Handles an undefined operand: creates a parameter in a pasted op line, else reports an error."""
        name = record.name
        if not scope.takes_unknown:
            if name is None:
                self.reporter.error("X101", "an operand needs a name here", record.position)
            elif not scope.has_lost_names:
                self.undefined.instruction("X102", "operand", name, record.position, scope.defined)
            return self._missing(scope, name or "")
        if record.shape is not None:
            note_unknown_types(self.reporter, record.shape, max(self.module._start, 0))
        number = len(scope.parameters)
        name = name or scope.unique(f"_{number}")
        operand = Instruction(
            name, "parameter", record.shape, (), {}, number, scope.computation, form=Form.IMPLICIT
        )  # fmt: skip
        self.define(scope, operand, is_root=False)
        return operand

    @staticmethod
    def _missing(scope: Scope, name: str) -> BadInstruction:
        """Placeholder for an undefined operand, so that its users have one."""
        missing = BadInstruction(name, None, scope.computation, form=Form.IMPLICIT)
        if name:
            scope.defined[name] = missing
        scope.computation._instructions.append(missing)
        return missing

    def fill_shape(self, instruction: Instruction, position: int) -> None:
        """Infers an omitted result shape. Reports an error if that is impossible."""
        if instruction._head.shape is not None or instruction.opcode == "constant":
            return
        if any(isinstance(operand, BadInstruction) for operand in instruction._operands):
            return  # what is wrong has been said where the operand should be defined
        row = opcodes.opcode(instruction.opcode)
        reason = f"the result shape of {instruction.opcode} must be written, since it cannot be inferred from the operands"
        help = f"for example: {row.example}" if row is not None else ""
        if (
            row is not None
            and row.shape_optional
            and all(operand.shape is not None for operand in instruction.operands)
        ):
            if self.infer is None:
                return
            try:
                instruction._shape = self.infer(instruction)
                return
            except ValueError as error:
                reason, help = f"the omitted result shape cannot be inferred: {error}", ""
        self.reporter.error("X117", reason, position, position + len(instruction.opcode), help)

    # ---- references

    def resolve(self, scope: Scope, instruction: Instruction, places: dict[str, int]) -> None:
        """Replaces the references in an instruction's attributes by nodes. Computations defined later are resolved at
        the end.
        """
        for name, value in instruction._attributes.items():
            kind = type(value)
            if kind is reading.records.ComputationReference or kind is reading.records.InlineBody:
                _set(instruction, name, self.computation(scope, instruction, name, value))
            elif kind is tuple and value:
                first = type(value[0])
                if first is reading.records.InstructionReference:
                    _set(instruction, name, self.predecessors(scope, value))
                elif first is reading.records.ComputationReference or first is reading.records.InlineBody:
                    callees = tuple(self.computation(scope, instruction, name, item) for item in value)
                    _set(instruction, name, callees)
            elif kind is RawValue:
                checks.raw_value(self.reporter, instruction, name, value, places)
            elif name == "metadata" and value.other_fields:
                checks.mistaken_metadata(self.reporter, value, places.get(name, instruction._start))

    def computation(self, scope: Scope, instruction: Instruction, name: str, value: Any) -> Any:
        """Returns the computation that a reference names, or the reference itself if it is not defined yet."""
        if type(value) is reading.records.InlineBody:
            return self.inline(scope, value)
        found = self.computations.get(value.name)
        if found is None:
            self.pending.append((scope, instruction, name, value))
            return value
        return found

    def predecessors(
        self, scope: Scope, references: tuple[InstructionReference, ...]
    ) -> tuple[Instruction | LeftOut, ...]:
        """Returns the control predecessors without duplicates, as instructions, or as names that a compact text omits."""
        found: dict[Instruction | LeftOut, None] = {}
        for reference in references:
            predecessor = scope.defined.get(reference.name)
            if predecessor is None and scope.takes_unknown:
                predecessor = self.unknown_operand(scope, reading.records.OperandRecord(None, reference.name))
            if predecessor is None and scope.has_lost_names:
                continue
            if predecessor is None and self.undefined.is_left_out(reference.name, reference.position):
                found[LeftOut(reference.name)] = None
                message = f"control predecessor {reference.name} is omitted in this compact text"
                self.reporter.note("X207", message, reference.position)
            elif predecessor is None:
                what, place = "control predecessor", reference.position
                self.undefined.instruction("X121", what, reference.name, place, scope.defined)
            else:
                found[predecessor] = None
        return tuple(found)

    def inline(self, scope: Scope, body: InlineBody) -> Computation:
        """Returns the computation of an inline body, which cannot refer to instructions around it."""
        computation = Computation(
            "", module=self.module, is_inline=True, start=body.position, brace=body.position
        )
        inner = Scope(computation)
        inner.outer = scope
        for record in body.instructions:
            self.add_instruction(inner, record)
        self.finish(inner)
        self._put_before(scope, computation)
        return computation

    def _put_before(self, scope: Scope, computation: Computation) -> None:
        """Puts a computation before the one that is being read, which is among the last."""
        while scope.outer is not None:
            scope = scope.outer
        computations = self.module._computations
        place = len(computations) - 1
        while computations[place] is not scope.computation:
            place -= 1
        computations.insert(place, computation)

    def finish_module(self) -> None:
        """Resolves forward references to computations, then checks the header against the computations."""
        lists: dict[tuple[Instruction, str], None] = {}
        for scope, instruction, name, reference in self.pending:
            found = self.computations.get(reference.name)
            if found is None and scope.takes_unknown:
                # A pasted op line: the computation stands elsewhere, and only its name is known.
                found = self.computations[reference.name] = Computation(reference.name, is_sugared=True)
            if found is None and not self.has_lost_computations and self.reporter.is_full:
                self.reporter.leave_out()
            elif found is None and not self.has_lost_computations:
                is_other = any(reference.name in one for one in self.module._computations)
                help = (
                    f"{reference.name} is an instruction"
                    if is_other
                    else self.reporter.did_you_mean(reference.name, self.computations)
                    or checks.computation_to_define(instruction, reference.name)
                )
                message = f"computation {reference.name} is not defined"
                self.reporter.error("X104", message, reference.position, help=help)
            if isinstance(instruction._attributes[name], tuple):
                lists[instruction, name] = None
            else:
                # Undefined names stay text.
                _set(instruction, name, RawValue(f"%{reference.name}") if found is None else found)
        self.pending.clear()
        for instruction, name in lists:
            _set(instruction, name, self._resolved(instruction._attributes[name]))
        module_checks.module(self.reporter, self.module)

    def _resolved(self, value: tuple[Any, ...]) -> tuple[Computation, ...] | RawValue:
        """A list of computations, some of which were named before they were defined; as text where one never is."""
        names = [item.name for item in value]
        found: list[Any] = [
            self.computations.get(item.name, item)
            if type(item) is reading.records.ComputationReference
            else item
            for item in value
        ]
        if any(type(item) is reading.records.ComputationReference for item in found):
            return RawValue(f"{{{', '.join(f'%{name}' for name in names)}}}")
        return tuple(found)


def _short_spelling(instruction: Instruction) -> tuple[Opcode, Opcode] | None:
    """Rows that the short spelling of an asynchronous operation stands for; None for any other opcode."""
    name, operands = instruction._head.opcode, instruction._operands
    found = opcodes.async_wrapped(name)
    if found is None and name in opcodes.NATIVE_ASYNC:
        found = opcodes.generic_half(
            name, instruction._head.shape, operands[0]._head.opcode if operands else None
        )
    return found


def _set(instruction: Instruction, name: str, value: Any) -> None:
    """Sets an attribute of an instruction that was just made, whose attributes are its own."""
    attributes: Any = instruction._attributes
    if type(attributes) is CallAttributes:
        attributes.callee = value
    else:
        attributes[name] = value


def _is_missing(instruction: Instruction) -> bool:
    """True if an instruction is the placeholder of an undefined one."""
    return isinstance(instruction, BadInstruction) and instruction.is_missing
