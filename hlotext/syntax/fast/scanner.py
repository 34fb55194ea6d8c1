"""The fast reader: lines cut by one regular expression each, terms by exact text through a memo.

It reads the form in which XLA writes text. Whatever does not fit - a line over several lines, an unknown opcode, an error -
goes through the grammar (`reference`) and the linker by itself (`statements`), and what follows is read fast again; so the
two readers give equal modules, and errors are the grammar's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from hlotext.findings.errors import TermError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.source import Source
from hlotext.ir.values.shape import Shape
from hlotext.syntax import fast, module_checks, reading
from hlotext.syntax.fast import shortcuts
from hlotext.syntax.fast.attribute_lists import AttributeLists
from hlotext.syntax.fast.header_reader import Recover
from hlotext.syntax.fast.line_parts import LineParts
from hlotext.syntax.language import patterns
from hlotext.syntax.language.boundaries import is_behind, is_module, next_module
from hlotext.syntax.language.words import unquote
from hlotext.syntax.linking.linker import Infer, Linker
from hlotext.syntax.linking.scope import Scope
from hlotext.syntax.source.limits import MAX_STATEMENT
from hlotext.syntax.source.reporter import Reporter

if TYPE_CHECKING:
    from hlotext.syntax.fast.statements import Statements
    from hlotext.syntax.reading.records import SignatureRecord

_NEXT = re.compile(rf"^(?:ENTRY[ \t]++)?+%?{patterns.IDENTIFIER}[ \t]*+[({{]", re.MULTILINE)
"""A line that may be the header of a computation, since nothing stands before it."""

_WIDEST = 32
"""Line end and blanks before op lines up to which they are read fast; each width has a pattern of its own."""


Result: TypeAlias = "str | SignatureRecord"
"""The shape that a header says a computation gives: the text before its brace, empty without a signature; or a record, of a
header in another form."""

Header: TypeAlias = tuple[bool, str, int, Result]
"""The line that opens a computation: whether it is the entry, the name, the offset of its brace, and the result. (A plain
tuple, like the next one: there are many.)"""


class Checkpoint:
    """A position in a body up to which everything is valid, with the state of its computation and the module there."""

    __slots__ = (
        "_instructions",
        "_listed",
        "_parameters",
        "_pending",
        "_root",
        "position",
        "result",
        "scope",
    )

    def __init__(self, scope: Scope, linker: Linker, position: int, result: Result) -> None:
        self.scope = scope
        self.position = position
        self.result = result
        self._instructions = len(scope.computation._instructions)
        self._parameters = len(scope.parameters)
        self._root = scope.computation._root
        self._listed = len(linker.module._computations)
        self._pending = len(linker.pending)

    def restore(self, linker: Linker) -> bool:
        """Discards everything read since the checkpoint. Returns False if that is impossible."""
        scope, listed = self.scope, linker.module._computations
        instructions = scope.computation._instructions
        if (
            len(listed) != self._listed
            or listed[-1] is not scope.computation
            or not self._instructions <= len(instructions) <= len(scope.defined)  # else a name came twice
            or scope.elements is not None
            or scope.numbers is not None
        ):
            return False
        del instructions[self._instructions :], scope.parameters[self._parameters :]
        del linker.pending[self._pending :]
        while len(scope.defined) > self._instructions:
            scope.defined.popitem()
        scope.computation._root = self._root
        return True


Closing = tuple[int, str | None]
"""The end of a computation: the offset behind its closing brace and its thread, and the thread as it is quoted."""


LineForm = tuple[Callable[[str, int, int], Any], str]
"""Reader of the op lines of a body, a `re.Pattern.scanner`, and the prefix of names."""


class UnsupportedFormError(Exception):
    """Raised for a computation in a form that the fast reader does not support."""


class Scanner:
    """Reads the computations of a module."""

    recover_head: Recover | None = None
    """Reads what the grammar cannot of the header before them."""

    def __init__(
        self, module: Module, reporter: Reporter, infer: Infer | None, linker: Linker | None = None
    ) -> None:
        self.source: Source = reporter.source
        self.text = reporter.source.text
        self.reporter = reporter
        self.linker = self.new_linker(module, reporter, infer) if linker is None else linker
        self._header = patterns.computation_header().match
        self._plain_header = patterns.plain_header().match
        self._next_header = patterns.plain_header(behind_brace=True).match
        self._usual_line = patterns.op_line("\n  ", "%").scanner  # type: ignore[attr-defined]
        self._closing = patterns.computation_end().match
        self._parts = LineParts(self.linker)
        tails = AttributeLists(module, self.linker.computations)
        self._tail, self._waiting = tails.read, tails.waiting
        self._results: dict[tuple[str, int], Shape | None] = {}
        """Results in headers that were found to fit a root's shape: by text and the shape's id, with the shape."""
        self._statements: Statements | None = None
        self._count = 0
        """Number of the module's parts when the last computation was closed."""
        self._position = 0
        """From where on computations are being read; the linker knows where the last one of them begins."""
        self._header_result: Result = ""
        self._point: Checkpoint | None = None
        """The last odd line of the last computation, in a trial."""

    def new_linker(self, module: Module, reporter: Reporter, infer: Infer | None) -> Linker:
        """Returns the linker that builds the nodes."""
        return Linker(module, reporter, infer)

    # ---- computations

    def computations(self, position: int, end: int) -> int:
        """Reads computations from an offset up to the next module or the end. Returns the offset after the last one."""
        text, blank = self.text, patterns.blank().match
        while True:
            position = self._position = self._usual_computations(position, end)
            match = blank(text, position, end)
            start = match.end() if match is not None else position
            if start >= end or is_module(text, start):
                return position
            following = self._other_computation(start, end)
            if following == start:
                return position  # what stands here belongs to no module
            position = following

    def _usual_computations(self, position: int, end: int) -> int:
        """Reads computations as long as they begin as XLA writes most; gives the offset behind the last."""
        text, begin, lines, scanner = self.text, self.linker.begin, self._lines, self._usual_line
        match = self._plain_header(text, position, end)
        while match is not None:
            entry, name, result = match.groups()
            if " {" in result:
                break  # a whole computation stands on the line, and another begins there
            brace = match.end() - 1
            scope = begin(name, position + 2, entry is not None, brace)
            scope.computation._name_mark = "%"
            behind = lines(scope, scanner(text, brace + 1, end).match, brace + 1, "%")
            match = self._next_header(text, behind, end)
            if match is not None:
                position = self._close(scope, behind + 2, None, result)
            else:
                position = self._go_on(scope, (scanner, "%"), behind, result, end)
                match = self._plain_header(text, position, end)
        return position

    def forget_last(self) -> int:
        """Discards the computation with the error that was raised. Returns the offset at which it begins.

        Everything before it is valid, so that reading can continue there.
        """
        start, computations, pending = self.linker.mark
        if start < 0:
            return self._position
        self.linker.forget(computations, pending)
        return start

    def last_point(self) -> Checkpoint | None:
        """Returns the checkpoint before the line at which a trial failed, restored; None if there is none."""
        point, self._point = self._point, None
        return point if point is not None and point.restore(self.linker) else None

    def _other_computation(self, start: int, end: int) -> int:
        """Reads one computation; gives the offset behind it, or `start` when it stands before something else."""
        header = self.header(start, end)
        linker = self.linker
        if header is None:
            if linker.computations and is_behind(self.text, start, next_module(self.text, start)):
                return start
            return self._rest(start, end) if (behind := self._one_alone(start, end)) is None else behind
        is_entry, name, brace, result = header
        scope = linker.begin(name, start, is_entry, brace)
        form = self._form(scope, brace + 1, end)
        return self._go_on(scope, form, brace + 1, result, end)

    def _go_on(self, scope: Scope, form: LineForm | None, position: int, result: Result, end: int) -> int:
        """Reads a computation from an offset in its body on; gives the offset behind it."""
        linker, computation = self.linker, scope.computation
        self._header_result = result
        earlier, pending = len(linker.module._computations) - 1, len(linker.pending)
        try:
            closing = self._to_brace(scope, form, position, end)
        except UnsupportedFormError:
            # Forget what was read of it and let the grammar see the whole computation.
            linker.forget(earlier, pending)
            return self._rest(computation._start, end)
        return self._close(scope, *closing, result)

    def header(self, start: int, end: int) -> Header | None:
        """Returns the header of a computation at an offset; None if the grammar must parse more than it."""
        match = self._header(self.text, start, end)
        if match is None:
            return self._odd_header(start, end)
        entry, name, signature, _ = match.groups()
        result = ""
        if signature is not None:
            found = self._result(signature)
            if found is None:
                return self._odd_header(start, end)
            result = found
        return entry is not None, name.removeprefix("%"), match.end() - 1, result

    def _odd_header(self, start: int, end: int) -> Header | None:
        """The header of a computation in another form, as the grammar reads it."""
        record = self.statements.header(start, end)
        if record is None:
            return None
        return record.is_entry, record.name, record.brace, record.signature or ""

    def _goes_on(self, position: int, end: int) -> bool:
        """True if a comma follows a closing brace on one of the lines below."""
        blank = patterns.blank().match(self.text, position, end)
        return self.text.startswith(",", position if blank is None else blank.end())

    def _result(self, text: str) -> str | None:
        """The result's shape in a signature; None when the grammar must look."""
        place, separator = 1, ", "
        if text.startswith(") -> ", 1):
            place, separator = 6, ""
        while separator == ", ":
            parameter = patterns.signature_parameter().match(text, place)
            if parameter is None or not self._parts.is_shape(parameter[1]):
                return None
            place, separator = parameter.end(), parameter[2]
        result = text[place:-2]
        return None if " {" in result else result

    def _close(self, scope: Scope, end: int, thread: str | None, result: Result) -> int:
        """Checks a computation that ends at an offset, whose lines have been read; gives the offset."""
        computation = scope.computation
        computation._end = end
        if computation._parts_read is not None:
            count = len(self.linker.module._parts)
            if count != self._count:
                self._count = count
            computation._parts_read = self._count  # one object for all with the same
        if thread is not None:
            try:
                computation._execution_thread = unquote(thread)
            except TermError as error:
                self.reporter.error("X112", error.message, end - len(thread) + error.position)
        instructions = computation._instructions
        if len(scope.defined) != len(instructions) and not scope.make_ways():
            module_checks.duplicates(self.reporter, computation)
        self.linker.finish(scope)
        computation._instructions = instructions[:]  # without the room for more that a list keeps
        root = computation._root
        if not result or not instructions or (root is None and scope.is_damaged):
            return end
        if not isinstance(result, str):
            self.linker.check_signature(computation, result)
        elif (result, id((root or instructions[-1])._head.shape)) not in self._results:
            self._check_result(computation, result)
        return end

    def _check_result(self, computation: Computation, text: str) -> None:
        """The result shape in the header against the root."""
        end = computation._brace - 1
        position = end - len(text)
        blank = patterns.blank().match(text)
        if blank is not None and blank.end():
            text, position = text[blank.end() :], position + blank.end()
        shape = self._parts.shape(text, position)
        if shape is None:
            try:
                shortcuts.read("shape", text)
            except TermError as error:
                self.reporter.error("X101", error.message, position + error.position)
            return
        module_checks.signature(self.reporter, computation, shape, position, end)
        shape = computation.root._head.shape
        self._results[text, id(shape)] = shape

    @property
    def statements(self) -> Statements:
        """The reader of statements in unusual form."""
        if self._statements is None or self._statements.source is not self.source:
            self._statements = fast.statements.Statements(self.source)
        return self._statements

    def _one_alone(self, start: int, end: int) -> int | None:
        """The grammar reads what may be one computation; None if it needs to see more, or something is wrong."""
        found = _NEXT.search(self.text, start + 1, end)
        try:
            record = reading.reference.parse(
                self.source, "headerless_module", start, end if found is None else found.start()
            )
        except reading.reference.ParseError:
            return None
        for computation in record.computations:
            self.linker.add_computation(computation)
        return int(record.end)

    def _rest(self, start: int, end: int) -> int:
        """The grammar reads everything from here to the next module."""
        stop = next_module(self.text, start)
        try:
            goes_on = bool(self.linker.module._computations)
            record = reading.reference.parse(self.source, "headerless_module", start, stop, goes_on=goes_on)
        except reading.reference.ParseError as failure:
            behind = failure.read.end_of_computations(self.text, stop)
            self.linker.add_partial(failure.read)
            if behind is None:
                failure.report(self.reporter)
                return end
            return behind
        for computation in record.computations:
            self.linker.add_computation(computation)
        return int(record.end)

    # ---- op lines

    def _form(self, scope: Scope, position: int, end: int) -> LineForm | None:
        """Form of the op lines of a body, judged by the first one; None if the grammar must read them."""
        text = self.text
        match = patterns.indentation().match(text, position, end)
        if match is None or len(match[0]) > _WIDEST:
            return None
        mark = "%" if text.startswith(("%", "ROOT %"), match.end()) else ""
        if match[0] == "\n  ":
            scope.computation._name_mark = mark
        return patterns.op_line(match[0], mark).scanner, mark  # type: ignore[attr-defined]

    def _to_brace(self, scope: Scope, form: LineForm | None, position: int, end: int) -> Closing:
        """Reads the op lines of a computation from an offset on up to its closing brace. Raises UnfitError."""
        text = self.text
        while True:
            if form is not None:
                position = self._lines(scope, form[0](text, position, end).match, position, form[1])
                closing = self.closing(position, end)
                if closing is not None:
                    if closing[1] is None and self._goes_on(closing[0], end):
                        raise UnsupportedFormError
                    return closing
            scope.computation._name_mark = None
            stop = min(end, self.statements.module_end(position))
            start = self.statements.skip(position, stop)
            odd = fast.statements.CLOSING.match(text, start, end)
            if odd is not None:
                if odd[1] is None and self._goes_on(odd.end(), end):
                    raise UnsupportedFormError
                return odd.end(), odd[1]
            if self.reporter.is_trying and len(scope.defined) == len(scope.computation._instructions):
                self._point = Checkpoint(scope, self.linker, position, self._header_result)
            position = self._odd_lines(scope, start, stop)
            form = self._form(scope, position, end) or form
            scope.computation._name_mark = None

    def closing(self, position: int, end: int) -> Closing | None:
        """Returns the end of a computation if it is at this offset in XLA's form; else None."""
        match = self._closing(self.text, position, end)
        return (match.end(), match[1]) if match is not None else None

    def _odd_lines(self, scope: Scope, start: int, end: int) -> int:
        """Reads the op line at an offset, whatever its form; gives the offset behind it."""
        computation = scope.computation
        if len(scope.defined) != len(computation._instructions) and not scope.make_ways():
            # A name stands twice, which comes before anything that may be wrong here.
            module_checks.duplicates(self.reporter, computation)
            raise UnsupportedFormError
        here, start = start, self._with_line_before(scope, start)
        behind = self._loose_line(scope, start, end) if start == here else None
        if behind is not None:
            return behind
        records, failure = self.statements.read(start, end)
        if (
            not records
            or (failure is not None and not failure.is_between_lines)
            or (start < here and records[0].end <= here)
        ):
            if start - computation._start <= MAX_STATEMENT and not self.reporter.is_trying:
                raise UnsupportedFormError  # the grammar says best what is wrong when it has seen the whole computation
            # Without a guess at where the statement ends, and from the op line before on, which might have gone on here.
            written = next((i for i in reversed(computation._instructions) if i._place is not None), None)
            first = start if written is None else self._start_of(scope, written)
            found, failure = reading.reference.op_lines(self.source, first, end, computation._brace)
            records = tuple(record for record in found if record.start >= start)
        for record in records:
            self.linker.add_instruction(scope, record)
        if failure is not None and not (records and failure.is_between_lines):
            failure.report(self.reporter)
            raise UnsupportedFormError
        return records[-1].end

    def _with_line_before(self, scope: Scope, start: int) -> int:
        """The offset of an op line that goes on at an offset although it looked complete: it is unread. Else that offset."""
        computation = scope.computation
        last = computation._instructions[-1] if computation._instructions else None
        if last is None or type(last._place) is not int or not self.statements.is_continuation(start):
            return start
        start = self._start_of(scope, last)
        self._point = None
        computation._instructions.pop()
        del scope.defined[last._name]
        if last._head.opcode == "parameter":
            scope.parameters.pop()
        if computation._root is last:
            computation._root = None
        computation._parts_read = None
        return start

    def _start_of(self, scope: Scope, last: Instruction) -> int:
        """The offset of the last op line that was read."""
        if type(last._place) is not int:
            return last._start
        start = self.text.rfind("\n", 0, scope.position) + 1
        while self.text[start] == " ":
            start += 1
        return start

    def _loose_line(self, scope: Scope, start: int, end: int, is_tried: bool = False) -> int | None:
        """Reads an op line that is usual but for what stands before it or for what it names; None if it is not.

        `is_tried` says that it is not as XLA writes them, but perhaps for the line end.
        """
        text = self.text
        before = text.rfind("\n", 0, start)
        if text[before + 1 : start].strip(" ") or text.startswith("}", start):
            return None
        mark = "%" if text.startswith(("%", "ROOT %"), start) else ""
        scanner = patterns.op_line("", mark, bounded=True).scanner  # type: ignore[attr-defined]
        match: re.Match[str] | None = scanner(text, start, end).match()
        if match is None:
            return None
        if not (is_tried and mark) or text.startswith("\r", match.end()):
            behind: int = self._lines(scope, scanner(text, start, end).match, start, mark)
            if behind > start:
                return behind
        if self.statements.goes_on_below(match.end(), end):
            return None
        record = fast.line_records.record(match, mark)
        if record is None:
            return self._half_line(scope, match, mark, end)
        scope.computation._parts_read = None
        self.linker.add_instruction(scope, record)
        return match.end()

    def _half_line(self, scope: Scope, match: re.Match[str], mark: str, end: int) -> int | None:
        """Reads an op line of which the first half is right, and says what is wrong; None if that is not to be done."""
        return None

    def _lines(
        self, scope: Scope, matches: Callable[[], re.Match[str] | None], position: int, mark: str
    ) -> int:
        """Reads op lines as long as they have the usual form; gives the offset behind the last one.

        `mark` is what stands before names.

        The hot loop of the reader, one turn for each op line, so its steps stand here and not in methods. What it buys is
        in the benchmarks; what it gives is compared with the reference reader on every file of the corpus.
        """
        parts, tail_of, defined, new = self._parts, self._tail, scope.defined, object.__new__
        heads = parts.heads
        computation = scope.computation
        append, parameters = computation._instructions.append, scope.parameters
        waiting = self._waiting
        waiting.clear()
        separator = f", {mark}"
        line = 0 if position == computation._brace + 1 else scope.line_before(self.text, position)
        if not self.text.startswith(("\n", "\r"), position):
            line -= 1  # the op line begins here, not behind a line end
        last = None
        while (match := matches()) is not None:
            root, name, head_text, names, inner, tail = match.groups()
            try:
                known = heads[head_text]  # faster than `get`, and there are few heads
            except KeyError:
                new_head = parts.head(head_text, match.start(3))
                if new_head is None:
                    break
                known = new_head
            node, takes, arguments, met, tails, head = known
            operands: tuple[Instruction, ...] | None = None
            if arguments is not None:
                found = arguments.get(inner)
                if found is None and (found := parts.argument(head, inner)) is None:
                    break
                node = found
                operands = ()
            elif names is not None:
                try:
                    if takes == 1:
                        operands = (defined[names],)
                    elif takes == 2:
                        first, _, second = names.partition(separator)
                        operands = defined[first], defined[second]
                    else:
                        operands = tuple(map(defined.__getitem__, names.split(separator)))
                        if len(operands) > 5:
                            computation._name_mark = None  # XLA would have numbered them
                        if not head.minimum <= len(operands) <= head.maximum:
                            operands = None
                except KeyError:
                    pass
            if operands is None:
                operands = parts.operands(scope, head, match, mark)
                if operands is None:
                    break
            attributes: Any = tails.get(tail)
            if attributes is None and (attributes := tail_of(scope, head, tail)) is None:
                break
            line += 1
            # The same as `Instruction(...)`, in less than half of its time.
            instruction = new(Instruction)
            instruction._name = name
            instruction._head = node
            instruction._operands = operands
            instruction._attributes = attributes
            instruction._computation = computation
            instruction._state = line
            if waiting:
                called, callee, place = waiting.pop()
                reference = reading.records.ComputationReference(callee, match.start(6) + place)
                attributes.callee = reference
                self.linker.pending.append((scope, instruction, called, reference))
            if (
                met is not None
                # One operand is what most have; this asks sooner what `meets_conditions` begins with.
                and (takes != 1 or (id(attributes), id(operands[0]._head.shape)) not in met)
                and not parts.meets_conditions(instruction, met)
            ):
                break
            if root is not None:
                if computation._root is not None:
                    break
                computation._root = instruction
            if takes == 0:
                parameters.append(node.argument)
            defined[name] = instruction
            append(instruction)
            last = match
        if last is not None:
            position = last.end()
            scope.line, scope.position = computation._instructions[-1]._state, position  # type: ignore[assignment]
        return position
