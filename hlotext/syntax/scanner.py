"""The fast reader: lines cut by one regular expression each, terms by exact text through a memo.

It reads the form in which XLA writes text. Whatever does not fit - a line over several lines, an unknown opcode, an error -
goes through the grammar (`reference`) and the linker, first the line alone, then everything from its computation on; so the
two readers give equal modules, and errors are the grammar's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hlotext.ir.computation import Computation
from hlotext.ir.instruction import Instruction
from hlotext.ir.module import Module
from hlotext.ir.shape import Shape
from hlotext.ir.source import Source
from hlotext.syntax import module_checks, patterns, terms
from hlotext.syntax.boundaries import end_of_computations, is_behind, is_module, next_module
from hlotext.syntax.errors import TermError
from hlotext.syntax.line_parts import LineParts
from hlotext.syntax.linker import Infer, Linker, Scope
from hlotext.syntax.records import InstructionRecord
from hlotext.syntax.reporter import Reporter
from hlotext.syntax.tails import Tails
from hlotext.syntax.words import unquote

_CONTINUES = re.compile(r"[,(\[{]|T\s*\(")
"""What shows that an op line which looks complete goes on below."""

_BEFORE_HEADER = frozenset(("", " ", "\n", "/", "\r", "\t"))
"""Characters at which more blanks or a comment stand before a header."""

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
        self._parts = LineParts(self.linker)
        self._tail = Tails(module, self.linker.computations).read
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
            if parameter is None or self._parts.shape(parameter[1], start + parameter.start(1)) is None:
                return None
            place, separator = parameter.end(), parameter[2]
        return text[place:-2], start + place

    def _close(self, scope: Scope, closing: Closing, result: str, place: int) -> int:
        """Checks a computation whose lines have been read; gives the offset behind it."""
        computation = scope.computation
        end, thread = closing
        computation._end = end
        if computation._parts_read is not None:
            computation._parts_read = len(self.linker.module._parts)
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
        shape = self._parts.shape(text, position)
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
        parts, tail_of, defined = self._parts, self._tail, scope.defined
        heads = parts.heads
        computation = scope.computation
        append = computation._instructions.append
        operand_named = defined.__getitem__
        separator = f", {mark}"
        for match in iter(matches, None):
            root, name, head_text, names, inner, tail = match.groups()
            head = heads.get(head_text)
            if head is None and (head := parts.head(head_text, match.start(3))) is None:
                return position
            shape, opcode, minimum, maximum, arguments, met, tails = head
            operands: tuple[Instruction, ...] = ()
            argument: Any = None
            if arguments is not None:
                argument = arguments.get(inner)
                if argument is None and (argument := parts.argument(head, inner)) is None:
                    return position
            elif names is not None:
                operand = defined.get(names)
                if operand is not None:
                    operands = (operand,)
                else:
                    try:
                        operands = tuple(map(operand_named, names.split(separator)))
                    except KeyError:
                        found = parts.operands(scope, f"{mark}{names}", mark, match.start(4))
                        if found is None:
                            return position
                        operands = found
                    else:
                        if len(operands) > 5:
                            computation.name_mark = None  # XLA would have numbered them
                if not minimum <= len(operands) <= maximum:
                    return position
            elif inner:
                found = parts.operands(scope, inner, mark, match.start(5))
                if found is None or not minimum <= len(found) <= maximum:
                    return position
                operands = found
            elif minimum:
                return position
            attributes = tails.get(tail)
            if attributes is None and (attributes := tail_of(scope, head, tail)) is None:
                return position
            end = match.end()
            instruction = Instruction(name, opcode, shape, operands, attributes, argument, computation, end)
            if met is not None and not parts.meets_conditions(instruction, met):
                return position
            if root is not None:
                if computation._root is not None:
                    return position
                computation._root = instruction
            defined[name] = instruction
            append(instruction)
            position = end
        return position
