"""The fast reader: lines cut by one regular expression each, terms by exact text through a memo.

It reads the form in which XLA writes text. Whatever does not fit - a line over several lines, an unknown opcode, an error -
goes through the grammar (`reference`) and the linker, first the line alone, then everything from its computation on; so the
two readers give equal modules, and errors are the grammar's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from hlotext.ir import opcodes
from hlotext.ir.attributes import RawValue
from hlotext.ir.computation import Computation
from hlotext.ir.instruction import CallAttributes, Instruction
from hlotext.ir.literal import Literal
from hlotext.ir.module import Module
from hlotext.ir.opcode import Count, Opcode, Payload
from hlotext.ir.shape import Shape, join_indexed
from hlotext.ir.source import Source
from hlotext.syntax import checks, fast_values, module_checks, patterns, terms
from hlotext.syntax.attribute_rules import attribute_rule
from hlotext.syntax.boundaries import end_of_computations, is_behind, is_module, next_module
from hlotext.syntax.errors import TermError
from hlotext.syntax.linker import Infer, Linker, Scope, note_unknown_types
from hlotext.syntax.literals import read_literal
from hlotext.syntax.records import InstructionRecord
from hlotext.syntax.reporter import Reporter
from hlotext.syntax.words import unquote

_NAMED = frozenset({"computation", "computation_list", "instruction_list"})
"""Rules whose values name nodes of the module."""


class _Plan(NamedTuple):
    """What the hot loop needs to know of an opcode, and the attribute texts met on it so far."""

    name: str
    minimum: int
    maximum: int
    """Bounds of the number of operands."""
    arguments: dict[str, int] | None
    """For `parameter` the numbers met so far; None for what takes operands or a literal."""
    takes_literal: bool
    has_conditions: bool
    """XLA's reader asks more of it than the number of operands and the names of attributes."""
    tails: dict[str, dict[str, Any]]
    """The attributes by the text of all of them."""

    @classmethod
    def of(cls, row: Opcode) -> _Plan:
        arity = row.arity
        return cls(
            row.name,
            arity.minimum,
            1 << 60 if arity.maximum is None else arity.maximum,
            {} if row.payload is Payload.PARAMETER_NUMBER else None,
            row.payload is Payload.LITERAL,
            row.name in checks.BY_OPCODE or arity.count in (Count.EVEN, Count.ODD),
            {"": {}} if checks.attributes_fit(row.name, ()) else {},
        )


_BLANKS = " \t\r\n"
_CONTINUES = re.compile(r"[,(\[{]|T\s*\(")
"""What shows that an op line which looks complete goes on below."""


_WIDEST = 32
"""Line end and blanks before op lines up to which they are read fast; each width has a pattern of its own."""


class Closing(NamedTuple):
    """The end of a computation."""

    end: int
    """The offset behind its closing brace and its thread."""
    thread: str | None
    """The thread, as it is quoted; None where none is named."""


class UnfitError(Exception):
    """The computation is not of the form that the fast reader reads."""


class Scanner:
    """Reads the computations of one module."""

    def __init__(self, module: Module, reporter: Reporter, infer: Infer | None) -> None:
        self.source: Source = reporter.source
        self.text = reporter.source.text
        self.reporter = reporter
        self.linker = Linker(module, reporter, infer)
        self._header = patterns.computation_header().match
        self._closing = patterns.computation_end().match
        self._without_comments = patterns.block_comment().sub
        self._plans: dict[str, _Plan] = {}
        self._values: dict[str, tuple[str, Any]] = {}
        self._shapes: dict[str, Shape] = {}
        self._literals: dict[tuple[str, Shape], Literal] = {}
        self._results: set[tuple[str, Shape | None]] = set()

    # ---- computations

    def computations(self, position: int, end: int) -> int:
        """Reads computations from an offset on, up to the next module or the end; gives the offset behind the last."""
        text, blank = self.text, patterns.blank().match
        while True:
            if text.startswith("\n\n", position) and not text.startswith(
                (" ", "\n", "/", "\r", "\t"), position + 2
            ):
                start = position + 2  # as XLA writes it
            else:
                match = blank(text, position, end)
                start = match.end() if match is not None else position
            if start >= end or is_module(text, start):
                return position
            following = self.computation(start, end)
            if following == start:
                return position  # what stands here belongs to no module
            position = following

    def computation(self, start: int, end: int) -> int:
        """Reads one computation; gives the offset behind it, or `start` when it stands before something else."""
        header = self._header(self.text, start, end)
        result = self._result(header) if header is not None else None
        if header is None or result is None:
            if self.linker.computations and is_behind(self.text, start, next_module(self.text, start)):
                return start
            return self._rest(start, end)
        entry, name, _, _ = header.groups()
        linker = self.linker
        scope = linker.begin(name.removeprefix("%"), start, entry is not None)
        computation = scope.computation
        computation._brace = header.end() - 1
        mark = len(linker.module._computations), len(linker.pending)
        try:
            closing = self._body(scope, computation._brace + 1, end)
            if self._goes_on(closing.end, end):
                raise UnfitError
        except UnfitError:
            # Forget what was read of it and let the grammar see the whole computation.
            linker.taken.difference_update(c.name for c in linker.module._computations[mark[0] - 1 :])
            del linker.module._computations[mark[0] - 1 :]
            del linker.pending[mark[1] :]
            linker.computations.pop(computation.name, None)
            if linker.module._entry is computation:
                linker.module._entry = None
            return self._rest(start, end)
        return self._close(scope, closing, *result)

    def _goes_on(self, position: int, end: int) -> bool:
        """Whether a comma follows a closing brace on one of the lines below."""
        if self.text.startswith(("\n\n%", "\n\nENTRY"), position):
            return False
        blank = patterns.blank().match(self.text, position, end)
        return self.text.startswith(",", position if blank is None else blank.end())

    def _result(self, header: re.Match[str]) -> tuple[str, int] | None:
        """The result's shape in a header and its offset, empty without a signature; None when the grammar must look."""
        text, start = header[3], header.start(3)
        if text is None:
            return "", start
        plain = patterns.plain_signature().fullmatch(text)
        if plain is not None:
            return plain[1][:-2], start + plain.start(1)
        place, separator = 1, ", "
        while separator == ", ":
            parameter = patterns.signature_parameter().match(text, place)
            if parameter is None or self._shape_of(parameter[1], start + parameter.start(1)) is None:
                return None
            place, separator = parameter.end(), parameter[2]
        return text[place:-2], start + place

    def _close(self, scope: Scope, closing: Closing, result: str, place: int) -> int:
        """Checks a computation whose lines have been read; gives the offset behind it."""
        computation = scope.computation
        computation._end = closing.end
        if closing.thread is not None:
            try:
                computation.execution_thread = unquote(closing.thread)
            except TermError as error:
                start = closing.end - len(closing.thread)
                self.reporter.error("X112", error.message, start + error.position)
        if len(scope.defined) != len(computation._instructions):
            module_checks.duplicates(self.reporter, computation)
        self.linker.finish(scope)
        is_root_lost = scope.is_damaged and computation._root is None
        if not result or not computation._instructions or is_root_lost:
            return computation._end
        if (result, computation.root._shape) not in self._results:
            self._check_result(computation, result, place, place + len(result))
        return computation._end

    def _check_result(self, computation: Computation, text: str, position: int, end: int) -> None:
        """The result shape in the header against the root."""
        blank = patterns.blank().match(text)
        if blank is not None and blank.end():
            text, position = text[blank.end() :], position + blank.end()
        shape = self._shape_of(text, position)
        if shape is None:
            try:
                terms.read("shape", text)
            except TermError as error:
                self.reporter.error("X101", error.message, position + error.position)
            return
        module_checks.signature(self.reporter, computation, shape, position, end)
        self._results.add((text, computation.root._shape))

    def _rest(self, start: int, end: int) -> int:
        """The grammar reads everything from here to the next module."""
        from hlotext.syntax import reference  # imports Lark, which most texts do not need

        stop = next_module(self.text, start)
        try:
            record = reference.parse(self.source, "headerless_module", start, stop)
        except reference.ParseError as failure:
            behind = end_of_computations(failure.read, self.text, stop)
            self.linker.add_partial(failure.read)
            if behind is None:
                failure.report(self.reporter)
                return end
            return behind
        for computation in record.computations:
            self.linker.add_computation(computation)
        return int(record.end)

    # ---- op lines

    def _body(self, scope: Scope, position: int, end: int) -> Closing:
        """Reads the op lines of a computation up to its closing brace."""
        text = self.text
        indent = patterns.indentation().match(text, position, end)
        if indent is None or len(indent[0]) > _WIDEST:
            raise UnfitError
        mark = "%" if text.startswith(("%", "ROOT %"), indent.end()) else ""
        if indent[0] == "\n  ":
            scope.computation.name_mark = mark
        scan = patterns.op_line(indent[0], mark).scanner  # type: ignore[attr-defined]
        while True:
            position = self._lines(scope, scan(text, position, end).match, position, len(mark))
            closing = self._closing(text, position, end)
            if closing is not None:
                return Closing(closing.end(), closing[1])
            scope.computation.name_mark = None
            position = self._slow_line(scope, position, end)

    def _slow_line(self, scope: Scope, position: int, end: int) -> int:
        """The grammar reads the next op line; gives the offset behind it."""
        from hlotext.syntax import reference  # imports Lark, which most texts do not need

        if len(scope.defined) != len(scope.computation._instructions):
            raise UnfitError  # a name stands twice, which comes before anything that may be wrong here
        blank = patterns.blank().match(self.text, position, end)
        start = blank.end() if blank is not None else position
        stop = self.text.find("\n", start, end)
        stop = end if stop < 0 else stop
        try:
            record: InstructionRecord = reference.parse(self.source, "instruction", start, stop)
        except reference.ParseError:
            raise UnfitError from None
        following = patterns.blank().match(self.text, record.end, end)
        if following is not None and _CONTINUES.match(self.text, following.end()):
            raise UnfitError
        self.linker.add_instruction(scope, record)
        return record.end

    def _lines(
        self, scope: Scope, matches: Callable[[], re.Match[str] | None], position: int, mark: int
    ) -> int:
        """Reads op lines as long as they have the usual form; gives the offset behind the last one.

        `mark` is the length of what stands before names.

        The hot loop of the reader, one turn for each op line, so its steps stand here and not in methods. What it buys is
        in the benchmarks; what it gives is compared with the reference reader on every file of the corpus.
        """
        plans, shapes, defined = self._plans, self._shapes, scope.defined
        computation = scope.computation
        append = computation._instructions.append
        operand_named = defined.__getitem__
        for match in iter(matches, None):
            root, name, shape_text, opcode, names, inner, tail = match.groups()
            plan = plans.get(opcode)
            if plan is None and (plan := self._plan(opcode)) is None:
                return position
            shape = shapes.get(shape_text)
            if shape is None and (shape := self._shape(shape_text, match.start(3))) is None:
                return position
            opcode, minimum, maximum, arguments, takes_literal, has_conditions, tails = plan
            operands: tuple[Instruction, ...] = ()
            argument: Any = None
            if names is not None:
                operand = defined.get(names[mark:])
                if operand is not None:
                    operands = (operand,)
                else:
                    try:
                        operands = tuple(map(operand_named, names.replace("%", "").split(", ")))
                    except KeyError:
                        return position
                    if len(operands) > 5:
                        computation.name_mark = None  # XLA would have numbered them
                if not minimum <= len(operands) <= maximum or arguments is not None or takes_literal:
                    return position
            elif arguments is not None:
                argument = arguments.get(inner)
                if argument is None and (argument := self._number(inner, arguments)) is None:
                    return position
            elif takes_literal:
                if (argument := self._literal(inner, shape)) is None:
                    return position
            elif inner:
                found = self._operands(scope, inner, match.start(6))
                if found is None or not minimum <= len(found) <= maximum:
                    return position
                operands = found
            elif minimum:
                return position
            attributes = tails.get(tail)
            if attributes is None and (attributes := self._tail(scope, plan, tail)) is None:
                return position
            end = match.end()
            instruction = Instruction(name, opcode, shape, operands, attributes, argument, computation, end)
            if has_conditions and not self._meets_conditions(instruction):
                return position
            if root is not None:
                if computation._root is not None:
                    return position
                computation._root = instruction
            defined[name] = instruction
            append(instruction)
            position = end
        return position

    def _plan(self, opcode: str) -> _Plan | None:
        row = opcodes.OPCODES.get(opcode)
        if row is None:
            return None
        plan = self._plans[opcode] = _Plan.of(row)
        return plan

    @staticmethod
    def _number(text: str, numbers: dict[str, int]) -> int | None:
        """The number of a parameter; None when the grammar must look at it."""
        if not (text.isdecimal() and text.isascii() and len(text) < 10):
            return None
        number = numbers[text] = int(text)
        return number

    def _literal(self, text: str, shape: Shape) -> Literal | None:
        """The value of a constant; None when the grammar must look at it."""
        literal = self._literals.get((text, shape))
        if literal is None:
            try:
                literal = self._literals[text, shape] = read_literal(text, shape)
            except TermError:
                return None
        return literal

    def _meets_conditions(self, instruction: Instruction) -> bool:
        """Whether XLA's conditions hold; if not, the grammar and the linker say what is wrong."""
        row = opcodes.OPCODES[instruction._opcode]
        if not row.arity.accepts(len(instruction._operands)):
            return False
        quiet = Reporter(self.source, tolerant=True)
        checks.instruction(quiet, instruction, 0, {})
        return not quiet.diagnostics

    def _shape_of(self, text: str, position: int) -> Shape | None:
        """The shape of a text that stands at an offset; None when the grammar must look at it."""
        return self._shapes.get(text) or self._shape(text, position)

    def _shape(self, text: str, position: int) -> Shape | None:
        try:
            shape: Shape = fast_values.read("shape", text)
        except TermError:
            return None
        note_unknown_types(self.reporter, shape, position)
        self._shapes[text] = shape
        return shape

    def _operands(self, scope: Scope, text: str, start: int) -> tuple[Instruction, ...] | None:
        """Operands that are no plain list of names; None when the grammar must look at them."""
        defined = scope.defined
        plain = text
        if "/*" in text:
            if text.rfind("/*") > text.rfind("*/"):
                return None  # a comment without an end would be looked for from each of its beginnings
            plain = self._without_comments("", text)
        try:
            if "[" in plain:
                scope.computation.name_mark = None
                return self._declared_operands(scope, plain, start)
            names = plain.split(", ")
            if text != join_indexed(names):
                scope.computation.name_mark = None
            return tuple([defined[name.removeprefix("%")] for name in names])
        except KeyError:
            return None

    def _declared_operands(self, scope: Scope, text: str, start: int) -> tuple[Instruction, ...] | None:
        """Operands with their shapes written before them."""
        found = []
        position = 0
        while position < len(text) and (match := patterns.declared_operand().match(text, position)):
            position = match.end()
            operand = scope.defined[match[2]]
            shape = self._shape_of(match[1], start)
            if shape is None:
                return None
            if (
                operand.shape is not None
                and shape != operand.shape
                and not checks.compatible(shape, operand.shape)
            ):
                return None
            found.append(operand)
        return tuple(found) if position == len(text) else None

    # ---- attributes

    def _tail(self, scope: Scope, plan: _Plan, tail: str) -> dict[str, Any] | None:
        """The attributes behind an op line's parentheses; None when the grammar must look at them."""
        called = patterns.called().search(tail)
        if called is not None and '"' not in tail[: called.start()]:
            return self._tail_with_call(scope, plan, tail, called)
        attributes = self._cut(scope, plan, tail)
        if attributes is not None and "control-predecessors" not in attributes:
            plan.tails[tail] = attributes
        return attributes

    def _tail_with_call(
        self, scope: Scope, plan: _Plan, tail: str, called: re.Match[str]
    ) -> dict[str, Any] | None:
        """The same with `calls=` or `to_apply=`: only the name differs from line to line, so the rest is looked up."""
        attribute, mark, name = called.groups()
        callee = self.linker.computations.get(name)
        if callee is None:
            return None
        rest = f"{tail[: called.start()]}, {attribute}={mark}{tail[called.end() :]}"
        common = plan.tails.get(rest)
        if common is None:
            attributes = self._cut(scope, plan, tail)
            if attributes is None or attributes.get(attribute) is not callee:
                return None
            if "control-predecessors" not in attributes:
                plan.tails[rest] = attributes
            return attributes
        shared = CallAttributes(common)
        shared[attribute] = callee
        shared.common = common
        return shared

    def _cut(self, scope: Scope, plan: _Plan, tail: str) -> dict[str, Any] | None:
        """Cuts a tail into attributes and types each; None when the grammar must look at it."""
        attributes: dict[str, Any] = {}
        values = self._values
        pieces = patterns.attribute().findall(tail)
        for piece in pieces:
            pair = values.get(piece)
            if pair is None and (pair := self._value(scope, piece)) is None:
                return None
            attributes[pair[0]] = pair[1]
        if sum(map(len, pieces)) + 2 * len(pieces) != len(tail) or len(attributes) != len(pieces):
            return None
        if not checks.attributes_fit(plan.name, tuple(attributes)) or "parameter_replication" in attributes:
            return None
        return attributes

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
            value = fast_values.read(rule, text)
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
            names = (
                [item.strip(_BLANKS).removeprefix("%") for item in text[1:-1].split(",")]
                if text[1:-1].strip(_BLANKS)
                else []
            )
            if not all(item in defined for item in names):
                return None
            return name, tuple(dict.fromkeys(defined[item] for item in names))
        if rule == "computation":
            found = self.linker.computations.get(text.removeprefix("%"))
            if found is None:
                return None
            pair = self._values[piece] = (name, found)
            return pair
        callees = tuple(
            self.linker.computations.get(item.strip(_BLANKS).removeprefix("%"))
            for item in text[1:-1].split(",")
        )
        if None in callees:
            return None
        return name, callees
