"""The fast reader: lines cut by one regular expression each, terms by exact text through a memo.

It reads the form in which XLA writes text. Whatever does not fit - a line over several lines, an unknown opcode, an error -
goes through the grammar (`reference`) and the linker, first the line alone, then everything from its computation on; so the
two readers give equal modules, and errors are the grammar's.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from hlotext.ir import opcodes
from hlotext.ir.attributes import RawValue
from hlotext.ir.computation import Computation
from hlotext.ir.instruction import CallAttributes, Instruction
from hlotext.ir.literal import Literal
from hlotext.ir.module import Module
from hlotext.ir.opcode import Count, Payload
from hlotext.ir.shape import Shape
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


class _Head(NamedTuple):
    """A result shape with an opcode: what the hot loop needs to know of op lines that begin with them."""

    shape: Shape
    opcode: str
    minimum: int
    maximum: int
    """Bounds of the number of operands."""
    arguments: dict[str, Any] | None
    """For `parameter` and `constant` the numbers and literals met so far, by text; None for what takes operands."""
    met: dict[Any, Any] | None
    """For an opcode of which XLA's reader asks more than the number of operands and the names of attributes, the
    operands' shapes and attributes that were found to be right, by their ids; None for the others."""
    tails: dict[str, dict[str, Any]]
    """The attributes met on the opcode so far by the text of all of them."""


_BLANKS = " \t\r\n"
_CONTINUES = re.compile(r"[,(\[{]|T\s*\(")
"""What shows that an op line which looks complete goes on below."""

_ODD = re.compile(r"[\r\n]|//")
"""What a shape in front of an opcode cannot hold on one line: a line end, or a comment that takes the opcode with it."""


_BEFORE_HEADER = frozenset(("", " ", "\n", "/", "\r", "\t"))
"""Characters at which more blanks or a comment stand before a header."""

_shape_of = operator.attrgetter("_shape")

_WIDEST = 32
"""Line end and blanks before op lines up to which they are read fast; each width has a pattern of its own."""


Header = tuple[bool, str, int, str, int]
"""The line that opens a computation: whether it is the entry, the name, the offset of its brace, the result's shape
(empty without a signature) and its offset. (A plain tuple, like the next one: there is one for each computation.)"""

Closing = tuple[int, str | None]
"""The end of a computation: the offset behind its closing brace and its thread, and the thread as it is quoted."""


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
        self._plain_header = patterns.plain_header().match
        self._usual_line = patterns.op_line("\n  ", "%").scanner  # type: ignore[attr-defined]
        self._closing = patterns.computation_end().match
        self._without_comments = patterns.block_comment().sub
        self._parts = module._parts
        self._heads: dict[str, _Head] = {}
        self._tails: dict[str, dict[str, dict[str, Any]]] = {}
        self._values: dict[str, tuple[str, Any]] = {}
        self._shapes: dict[str, Shape] = {}
        self._results: dict[tuple[str, int], Shape | None] = {}
        """Results in headers that were found to fit a root's shape: by text and the shape's id, with the shape."""

    # ---- computations

    def computations(self, position: int, end: int) -> int:
        """Reads computations from an offset on, up to the next module or the end; gives the offset behind the last."""
        text, blank = self.text, patterns.blank().match
        while True:
            start = position + 2
            first = text[start : start + 1]
            if text[position:start] != "\n\n" or first in _BEFORE_HEADER:  # XLA writes nothing else there
                match = blank(text, position, end)
                start = match.end() if match is not None else position
                first = text[start : start + 1]
            if start >= end or (first == "H" and is_module(text, start)):
                return position
            following = self.computation(start, end)
            if following == start:
                return position  # what stands here belongs to no module
            position = following

    def computation(self, start: int, end: int) -> int:
        """Reads one computation; gives the offset behind it, or `start` when it stands before something else."""
        header = self.header(start, end)
        linker = self.linker
        if header is None:
            if linker.computations and is_behind(self.text, start, next_module(self.text, start)):
                return start
            return self._rest(start, end)
        is_entry, name, brace, result, place = header
        scope = linker.begin(name, start, is_entry)
        computation = scope.computation
        computation._brace = brace
        earlier, pending = len(linker.module._computations) - 1, len(linker.pending)
        try:
            closing = self._body(scope, brace + 1, end)
            if self._goes_on(closing[0], end):
                raise UnfitError
        except UnfitError:
            # Forget what was read of it and let the grammar see the whole computation.
            linker.taken.difference_update(c.name for c in linker.module._computations[earlier:])
            del linker.module._computations[earlier:]
            del linker.pending[pending:]
            linker.computations.pop(computation.name, None)
            if linker.module._entry is computation:
                linker.module._entry = None
            return self._rest(start, end)
        return self._close(scope, closing, result, place)

    def header(self, start: int, end: int) -> Header | None:
        """The header of a computation that stands at an offset; None when the grammar must look at it."""
        match = self._plain_header(self.text, start, end)
        if match is not None:
            entry, name, result = match.groups()
            return entry is not None, name, match.end() - 1, result[:-2], match.start(3)
        match = self._header(self.text, start, end)
        if match is None:
            return None
        entry, name, signature, _ = match.groups()
        result, place = "", 0
        if signature is not None:
            found = self._result(signature, match.start(3))
            if found is None:
                return None
            result, place = found
        return entry is not None, name.removeprefix("%"), match.end() - 1, result, place

    def _goes_on(self, position: int, end: int) -> bool:
        """Whether a comma follows a closing brace on one of the lines below."""
        if self.text[position : position + 3] in ("\n\n%", "\n\nE"):
            return False
        blank = patterns.blank().match(self.text, position, end)
        return self.text.startswith(",", position if blank is None else blank.end())

    def _result(self, text: str, start: int) -> tuple[str, int] | None:
        """The result's shape in the signature at an offset, and its offset; None when the grammar must look."""
        place, separator = 1, ", "
        if text.startswith(") -> ", 1):
            place, separator = 6, ""
        while separator == ", ":
            parameter = patterns.signature_parameter().match(text, place)
            if parameter is None or self._shape_of(parameter[1], start + parameter.start(1)) is None:
                return None
            place, separator = parameter.end(), parameter[2]
        return text[place:-2], start + place

    def _close(self, scope: Scope, closing: Closing, result: str, place: int) -> int:
        """Checks a computation whose lines have been read; gives the offset behind it."""
        computation = scope.computation
        end, thread = closing
        computation._end = end
        if computation._parts_read is not None:
            computation._parts_read = len(self._parts)
        if thread is not None:
            try:
                computation.execution_thread = unquote(thread)
            except TermError as error:
                self.reporter.error("X112", error.message, end - len(thread) + error.position)
        instructions = computation._instructions
        if len(scope.defined) != len(instructions):
            module_checks.duplicates(self.reporter, computation)
        self.linker.finish(scope)
        is_root_lost = scope.is_damaged and computation._root is None
        if not result or not instructions or is_root_lost:
            return end
        root = computation._root or instructions[-1]
        if (result, id(root._shape)) not in self._results:
            self._check_result(computation, result, place, place + len(result))
        return end

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
        shape = computation.root._shape
        self._results[text, id(shape)] = shape

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
        text, mark = self.text, "%"
        scanner = self._usual_line
        if text[position : position + 4] == "\n  %" or text[position : position + 8] == "\n  ROOT %":
            scope.computation.name_mark = mark
        else:
            match = patterns.indentation().match(text, position, end)
            if match is None or len(match[0]) > _WIDEST:
                raise UnfitError
            mark = "%" if text.startswith(("%", "ROOT %"), match.end()) else ""
            if match[0] == "\n  ":
                scope.computation.name_mark = mark
            scanner = patterns.op_line(match[0], mark).scanner  # type: ignore[attr-defined]
        while True:
            position = self._lines(scope, scanner(text, position, end).match, position, mark)
            closing = self.closing(position, end)
            if closing is not None:
                return closing
            scope.computation.name_mark = None
            position = self._slow_line(scope, position, end)

    def closing(self, position: int, end: int) -> Closing | None:
        """The end of a computation, if it stands at an offset in the form in which XLA writes it."""
        if self.text[position : position + 3] == "\n}\n":
            return position + 2, None
        match = self._closing(self.text, position, end)
        return (match.end(), match[1]) if match is not None else None

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
        self, scope: Scope, matches: Callable[[], re.Match[str] | None], position: int, mark: str
    ) -> int:
        """Reads op lines as long as they have the usual form; gives the offset behind the last one.

        `mark` is what stands before names.

        The hot loop of the reader, one turn for each op line, so its steps stand here and not in methods. What it buys is
        in the benchmarks; what it gives is compared with the reference reader on every file of the corpus.
        """
        heads, defined = self._heads, scope.defined
        computation = scope.computation
        append = computation._instructions.append
        operand_named = defined.__getitem__
        separator = f", {mark}"
        for match in iter(matches, None):
            root, name, head_text, names, inner, tail = match.groups()
            head = heads.get(head_text)
            if head is None and (head := self._head(head_text, match.start(3))) is None:
                return position
            shape, opcode, minimum, maximum, arguments, met, tails = head
            operands: tuple[Instruction, ...] = ()
            argument: Any = None
            if arguments is not None:
                argument = arguments.get(inner)
                if argument is None and (argument := self._argument(head, inner)) is None:
                    return position
            elif names is not None:
                operand = defined.get(names)
                if operand is not None:
                    operands = (operand,)
                else:
                    try:
                        operands = tuple(map(operand_named, names.split(separator)))
                    except KeyError:
                        found = self._operands(scope, f"{mark}{names}", mark, match.start(4))
                        if found is None:
                            return position
                        operands = found
                    else:
                        if len(operands) > 5:
                            computation.name_mark = None  # XLA would have numbered them
                if not minimum <= len(operands) <= maximum:
                    return position
            elif inner:
                found = self._operands(scope, inner, mark, match.start(5))
                if found is None or not minimum <= len(found) <= maximum:
                    return position
                operands = found
            elif minimum:
                return position
            attributes = tails.get(tail)
            if attributes is None and (attributes := self._tail(scope, head, tail)) is None:
                return position
            end = match.end()
            instruction = Instruction(name, opcode, shape, operands, attributes, argument, computation, end)
            if met is not None and not self._meets_conditions(instruction, met):
                return position
            if root is not None:
                if computation._root is not None:
                    return position
                computation._root = instruction
            defined[name] = instruction
            append(instruction)
            position = end
        return position

    def _head(self, text: str, position: int) -> _Head | None:
        """What is known of a shape with an opcode; None when the grammar must look at them."""
        shape_text, _, opcode = text.rpartition(" ")
        row = opcodes.OPCODES.get(opcode)
        if row is None or _ODD.search(text):
            return None
        shape = self._shape_of(shape_text, position)
        if shape is None:
            return None
        if opcode == "async-start":
            self.linker.has_async_start = True
        tails = self._tails.setdefault(opcode, {})
        arity = row.arity
        has_conditions = (
            opcode in checks.BY_OPCODE
            or arity.count in (Count.EVEN, Count.ODD)
            or opcode in opcodes.CONTEXT_DEPENDENT
        )
        self._parts.append((text, opcode, shape))
        head = self._heads[text] = _Head(
            shape,
            row.name,
            arity.minimum,
            1 << 60 if arity.maximum is None else arity.maximum,
            {} if row.payload in (Payload.PARAMETER_NUMBER, Payload.LITERAL) else None,
            {} if has_conditions else None,
            tails,
        )
        return head

    def _argument(self, head: _Head, text: str | None) -> int | Literal | None:
        """The number of a parameter or the value of a constant; None when the grammar must look at it."""
        if text is None or head.arguments is None or "//" in text:
            return None
        value: int | Literal
        if head.opcode == "parameter":
            if not (text.isdecimal() and text.isascii() and len(text) < 10):
                return None
            value = int(text)
        else:
            try:
                value = read_literal(text, head.shape)
            except TermError:
                return None
        head.arguments[text] = value
        self._parts.append((text, head.opcode, value))
        return value

    def _meets_conditions(self, instruction: Instruction, met: dict[Any, Any]) -> bool:
        """Whether XLA's conditions hold; if not, the grammar and the linker say what is wrong."""
        opcode = instruction._opcode
        if opcode in opcodes.CONTEXT_DEPENDENT and instruction.computation is not None:
            instruction.computation._parts_read = None
        attributes: Any = instruction._attributes
        if type(attributes) is CallAttributes:
            attributes = attributes.common
        shapes = tuple(map(_shape_of, instruction._operands))
        key = (id(attributes), *map(id, shapes))
        if key in met:
            return True
        if not opcodes.OPCODES[opcode].arity.accepts(len(shapes)):
            return False
        quiet = Reporter(self.source, tolerant=True)
        checks.instruction(quiet, instruction, 0, {})
        if quiet.diagnostics:
            return False
        if opcode not in checks.LOOK_FURTHER:
            met[key] = attributes, shapes  # which keeps them alive, so that their ids stay theirs
        return True

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

    def _operands(self, scope: Scope, text: str, mark: str, start: int) -> tuple[Instruction, ...] | None:
        """Operands that are no plain list of names; None when the grammar must look at them."""
        defined = scope.defined
        names = text.split(", ")
        if text.startswith(mark) and text.count("/*") == (len(names) - 1) // 5:  # as XLA writes them
            for number in range(5, len(names), 5):
                names[number] = names[number].removeprefix(f"/*index={number}*/")
            try:
                return tuple(map(defined.__getitem__, ", ".join(names).removeprefix(mark).split(f", {mark}")))
            except KeyError:
                pass
        scope.computation.name_mark = None
        if "\r" in text:
            return None
        if "/*" in text:
            if text.rfind("/*") > text.rfind("*/"):
                return None  # a comment without an end would be looked for from each of its beginnings
            text = self._without_comments("", text)
        try:
            if "[" in text:
                return self._declared_operands(scope, text, start)
            return tuple([defined[name.removeprefix("%")] for name in text.split(", ")])
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

    def _tail(self, scope: Scope, head: _Head, tail: str) -> dict[str, Any] | None:
        """The attributes behind an op line's parentheses; None when the grammar must look at them."""
        if "\r" in tail:
            return None
        for attribute in ("calls", "to_apply"):
            before, found, after = tail.partition(f", {attribute}=")
            if found and '"' not in before:
                return self._tail_with_call(scope, head, tail, attribute, before, after)
        attributes = self._cut(scope, head, tail)
        if attributes is not None:
            self._remember(scope, head, tail, tail, attributes)
        return attributes

    def _remember(self, scope: Scope, head: _Head, key: str, tail: str, attributes: dict[str, Any]) -> None:
        """Keeps the attributes of a tail for the next line that has them, unless they belong to this computation."""
        if "control-predecessors" in attributes:
            scope.computation._parts_read = None
        else:
            head.tails[key] = attributes
            self._parts.append((tail, head.opcode, attributes))

    def _tail_with_call(
        self, scope: Scope, head: _Head, tail: str, attribute: str, before: str, after: str
    ) -> dict[str, Any] | None:
        """The same with `calls=` or `to_apply=`: only the name differs from line to line, so the rest is looked up."""
        name, comma, behind = after.partition(",")
        callee = self.linker.computations.get(name.removeprefix("%"))
        if callee is None:
            scope.computation._parts_read = None
            return self._cut(scope, head, tail)
        # A mark, or none, belongs to how the line is written. No tail looks like this, since no value begins like that.
        rest = f"{before}, {attribute}={'%' if name.startswith('%') else ''},{comma}{behind}"
        common = head.tails.get(rest)
        if common is None:
            attributes = self._cut(scope, head, tail)
            if attributes is None or attributes.get(attribute) is not callee:
                return None
            if before.count("{") != before.count("}"):
                scope.computation._parts_read = None  # the name stands inside of some value
            else:
                self._remember(scope, head, rest, tail, attributes)
            return attributes
        shared = CallAttributes(common)
        shared[attribute] = callee
        shared.common = common
        return shared

    def _cut(self, scope: Scope, head: _Head, tail: str) -> dict[str, Any] | None:
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
        if not checks.attributes_fit(head.opcode, tuple(attributes)) or "parameter_replication" in attributes:
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
