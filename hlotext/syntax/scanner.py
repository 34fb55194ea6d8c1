"""The fast reader: lines cut by one regular expression each, terms by exact text through a memo.

It reads the form in which XLA writes text. Whatever does not fit - a line over several lines, an unknown opcode, an error -
goes through the grammar (`reference`) and the linker, first the line alone, then its computation, then the rest of the
text; so the two readers give equal modules, and errors are the grammar's.
"""

from __future__ import annotations

from typing import Any

from hlotext.ir import opcodes
from hlotext.ir.attributes import RawValue
from hlotext.ir.computation import Computation
from hlotext.ir.instruction import Instruction
from hlotext.ir.literal import Literal
from hlotext.ir.module import Module
from hlotext.ir.opcode import Count
from hlotext.ir.shape import Shape
from hlotext.ir.source import Source
from hlotext.syntax import checks, patterns, reference, terms
from hlotext.syntax.attribute_rules import attribute_rule
from hlotext.syntax.builders.instruction import bare
from hlotext.syntax.builders.tokens import unquote
from hlotext.syntax.errors import TermError
from hlotext.syntax.fast_values import FAST_RULES
from hlotext.syntax.linker import Infer, Linker, Scope, note_unknown_types
from hlotext.syntax.literals import read_literal
from hlotext.syntax.records import InstructionRecord
from hlotext.syntax.reporter import Reporter

_NAMED = frozenset({"computation", "computation_list", "instruction_list"})
"""Rules whose values name nodes of the module."""
_SPECIAL = frozenset(checks._BY_OPCODE) | {"constant", "parameter"}
"""Opcodes with conditions of their own."""


class Unfit(Exception):
    """The line is not of the form that the fast reader reads."""


class Scanner:
    """Reads the computations of one module."""

    def __init__(self, module: Module, reporter: Reporter, infer: Infer | None) -> None:
        self.source: Source = reporter.source
        self.text = reporter.source.text
        self.reporter = reporter
        self.linker = Linker(module, reporter, infer)
        self._values: dict[str, tuple[str, Any]] = {}
        self._shapes: dict[str, Shape] = {}
        self._literals: dict[tuple[str, str], Literal] = {}
        self._fit: set[tuple[str, tuple[str, ...]]] = set()

    # ---- computations

    def computations(self, position: int, end: int) -> int:
        """Reads computations from an offset on, up to the next module or the end; gives the offset behind the last."""
        blank = patterns.blank()
        while True:
            match = blank.match(self.text, position, end)
            start = match.end() if match is not None else position
            if start >= end or not self._starts_computation(start):
                return position
            position = self.computation(start, end)

    def _starts_computation(self, start: int) -> bool:
        return not self.text.startswith("HloModule", start)

    def computation(self, start: int, end: int) -> int:
        """Reads one computation; gives the offset behind it."""
        header = patterns.computation_header().match(self.text, start, end)
        if header is None:
            return self._rest(start, end)
        entry, name, result, _ = header.groups()
        linker = self.linker
        scope = linker.begin(bare(name), start, entry is not None)
        computation = scope.computation
        computation._brace = header.start(4)
        mark = len(linker.module._computations), len(linker.pending)
        try:
            position = self._body(scope, header.end(), end)
        except Unfit:
            # Forget what was read of it and let the grammar see the whole computation.
            del linker.module._computations[mark[0] - 1 :]
            del linker.pending[mark[1] :]
            linker.computations.pop(computation.name, None)
            if linker.module._entry is computation:
                linker.module._entry = None
            return self._rest(start, end)
        closing = patterns.computation_end().match(self.text, position, end)
        assert closing is not None
        if closing[1] is not None:
            computation.execution_thread = unquote(closing[1])
        computation._end = closing.end()
        linker.finish(scope)
        if result is not None:
            self._check_result(computation, result, header.start(3))
        return closing.end()

    def _check_result(self, computation: Computation, text: str, position: int) -> None:
        """The result shape in the header against the root."""
        shape = self._shapes.get(text)
        if shape is None:
            try:
                shape = self._shapes[text] = terms.read("shape", text)
            except TermError as error:
                self.reporter.error("X101", error.message, position + error.position)
                return
        checks.signature(self.reporter, computation, shape, position)

    def _rest(self, start: int, end: int) -> int:
        """The grammar reads everything from here to the next module."""
        stop = self.text.find("\nHloModule ", start, end)
        try:
            record = reference.parse(self.source, "headerless_module", start, end if stop < 0 else stop)
        except reference.ParseFailure as failure:
            failure.report(self.reporter)
            return end
        for computation in record.computations:
            self.linker.add_computation(computation)
        return int(record.end)

    # ---- op lines

    def _body(self, scope: Scope, position: int, end: int) -> int:
        """Reads the op lines of a computation; gives the offset of the line end before its closing brace."""
        text = self.text
        indent = patterns.indentation().match(text, position, end)
        if indent is None:
            raise Unfit
        closing = patterns.computation_end()
        pattern = patterns.op_line(indent[0])
        while True:
            for match in iter(pattern.scanner(text, position, end).match, None):  # type: ignore[attr-defined]
                if not self._line(scope, match, len(indent[0])):
                    break
                position = match.end()
            if closing.match(text, position, end) is not None:
                return position
            position = self._slow_line(scope, position, end)

    def _slow_line(self, scope: Scope, position: int, end: int) -> int:
        """The grammar reads the next op line; gives the offset behind it."""
        blank = patterns.blank().match(self.text, position, end)
        start = blank.end() if blank is not None else position
        stop = self.text.find("\n", start, end)
        stop = end if stop < 0 else stop
        try:
            record: InstructionRecord = reference.parse(self.source, "instruction", start, stop)
        except reference.ParseFailure as failure:
            if failure.is_at_end or self.text.startswith("}", start) or start >= end:
                raise Unfit from None
            failure.report(self.reporter)
            return stop
        self.linker.add_instruction(scope, record)
        return record.end

    def _line(self, scope: Scope, match: Any, indent: int) -> bool:
        """Makes the instruction of a cut op line; False when the grammar must look at it."""
        root, name, shape_text, opcode, inner, tail = match.groups()
        row = opcodes.OPCODES.get(opcode)
        if row is None or name in scope.defined:
            return False
        shape = self._shapes.get(shape_text)
        if shape is None:
            shape = self._shape(shape_text, match.start(3))
            if shape is None:
                return False
        argument: Any = None
        operands: tuple[Instruction, ...] = ()
        if opcode in _SPECIAL:
            if opcode == "parameter":
                if not inner.isdecimal():
                    return False
                argument = int(inner)
            elif opcode == "constant":
                argument = self._literal(inner, shape, shape_text)
                if argument is None:
                    return False
        if argument is None and inner:
            found = self._operands(scope, inner)
            if found is None:
                return False
            operands = found
        attributes: dict[str, Any] = {}
        if tail:
            values = self._values
            pieces = patterns.attribute().findall(tail)
            length = 0
            for piece in pieces:
                pair = values.get(piece)
                if pair is None:
                    pair = self._value(scope, piece)
                    if pair is None:
                        return False
                attributes[pair[0]] = pair[1]
                length += len(piece) + 2
            if length != len(tail) or len(attributes) != len(pieces):
                return False
        if argument is None:
            arity = row.arity
            count = len(operands)
            if count < arity.minimum or (arity.maximum is not None and count > arity.maximum):
                return False
            if arity.count is not Count.ANY and not arity.accepts(count):
                return False
        key = (opcode, tuple(attributes))
        if key not in self._fit:
            if not checks.attributes_fit(*key):
                return False
            self._fit.add(key)
        instruction = Instruction(
            name, row.name, shape, operands, attributes, argument, scope.computation, match.start() + indent, match.end()
        )  # fmt: skip
        if opcode in _SPECIAL or "parameter_replication" in attributes:
            position = match.start(4)
            checks.instruction(self.reporter, instruction, position, {})
        computation = scope.computation
        if root is not None:
            if computation._root is not None:
                return False
            computation._root = instruction
        scope.defined[name] = instruction
        computation._instructions.append(instruction)
        return True

    def _shape(self, text: str, position: int) -> Shape | None:
        try:
            shape: Shape = terms.read("shape", text)
        except TermError:
            return None
        note_unknown_types(self.reporter, shape, position)
        self._shapes[text] = shape
        return shape

    def _literal(self, text: str, shape: Shape, shape_text: str) -> Literal | None:
        found = self._literals.get((text, shape_text))
        if found is None:
            try:
                found = self._literals[text, shape_text] = read_literal(text, shape)
            except TermError:
                return None
        return found

    def _operands(self, scope: Scope, text: str) -> tuple[Instruction, ...] | None:
        """The operands of a line; None when they are not plain names of what is defined."""
        defined = scope.defined
        try:
            return tuple([defined[name] for name in text.replace("%", "").split(", ")])
        except KeyError:
            pass
        plain = patterns.blank_comments().sub("", text)
        try:
            if "[" not in plain:
                return tuple([defined[name] for name in plain.replace("%", "").split(", ")])
            return self._declared_operands(scope, plain)
        except KeyError:
            return None

    def _declared_operands(self, scope: Scope, text: str) -> tuple[Instruction, ...] | None:
        """Operands with their shapes written before them."""
        found = []
        position = 0
        for match in patterns.declared_operand().finditer(text):
            if match.start() != position:
                return None
            position = match.end()
            operand = scope.defined[match[2]]
            shape = self._shapes.get(match[1]) or self._shape(match[1], 0)
            if shape is None or not (operand.shape is None or shape == operand.shape or checks.compatible(shape, operand.shape)):
                return None
            found.append(operand)
        return tuple(found) if position == len(text) else None

    def _value(self, scope: Scope, piece: str) -> tuple[str, Any] | None:
        """Name and value of an attribute met for the first time; None when the grammar must look at it."""
        name, _, text = piece.partition("=")
        rule = attribute_rule(name)
        if rule is None:
            return None
        value: Any
        try:
            if rule in _NAMED:
                return self._named(scope, name, rule, text, piece)
            fast = FAST_RULES.get(rule)
            value = fast(text) if fast is not None else None
            if value is None:
                value = terms.read(rule, text)
        except TermError:
            return None
        if isinstance(value, RawValue):
            return None
        pair = self._values[piece] = (name, value)
        return pair

    def _named(self, scope: Scope, name: str, rule: str, text: str, piece: str) -> tuple[str, Any] | None:
        """The value of an attribute that names computations or instructions."""
        if rule == "instruction_list":
            defined = scope.defined
            names = [bare(item.strip()) for item in text[1:-1].split(",")] if text[1:-1].strip() else []
            if not all(item in defined for item in names):
                return None
            return name, tuple(dict.fromkeys(defined[item] for item in names))
        if rule == "computation":
            found = self.linker.computations.get(bare(text))
            if found is None:
                return None
            pair = self._values[piece] = (name, found)
            return pair
        callees = tuple(self.linker.computations.get(bare(item.strip())) for item in text[1:-1].split(","))
        if None in callees:
            return None
        return name, callees
