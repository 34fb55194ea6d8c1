"""Reading on behind errors: the fast reader for text that may be broken anywhere.

What does not fit is cut out as narrowly as possible: a line, or the header of a computation, never more. Where a computation
begins is seen from its header line, so a missing brace ends nothing but its own computation. The grammar is given each piece
once or, in vain, a bounded number of times, so the time stays linear whatever the text holds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hlotext.findings.errors import TermError
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.syntax import hints, reading
from hlotext.syntax.fast import line_records, shortcuts
from hlotext.syntax.fast.scanner import (
    Checkpoint,
    Closing,
    Header,
    LineForm,
    Result,
    Scanner,
    UnsupportedFormError,
)
from hlotext.syntax.fast.statements import CALL, CLOSING, OP_LINE
from hlotext.syntax.language import patterns
from hlotext.syntax.language.boundaries import begins_computation, begins_line
from hlotext.syntax.linking.linker import Infer, Linker
from hlotext.syntax.linking.scope import Scope
from hlotext.syntax.recovery.head_recovery import recover_head
from hlotext.syntax.source.reporter import Reporter, TrialError

if TYPE_CHECKING:
    from hlotext.syntax.reading.records import ModuleRecord
    from hlotext.syntax.reading.reference import ParseError

_NAME = rf"%?{patterns.IDENTIFIER}"
_START = r"(?:(?<![^\r\n])[ \t]*+)"
"""The beginning of a line, blanks included."""
_HEADER = re.compile(
    rf"(?P<entry>ENTRY\b[ \t]*+)?+(?P<name>{_NAME})?+[ \t]*+"
    r"(?:\{(?=[ \t]*+(?:[\r\n]|\Z))|\((?=[^\r\n]*(?:\)[ \t]*->|\{[ \t]*+(?:[\r\n]|\Z))))"
)
"""The header of a computation, be the rest of its line broken: a name, and a brace that ends the line or a signature."""
_ENTRY = re.compile(r"ENTRY[ \t]++[%A-Za-z_]")
_ROOT = re.compile(r"ROOT[ \t]")
_NAMED_LINE = re.compile(rf"(?P<root>ROOT[ \t]++)?+(?P<name>%{patterns.IDENTIFIER})[ \t]++")
"""Beginning of an op line without its `=`."""
_USUAL_LINE = re.compile(rf"(?P<indent>(?:\r?\n|\A) *+)(?:ROOT )?(?P<mark>%?){patterns.IDENTIFIER} = ")
"""Beginning of an op line as XLA writes it."""
_COMMENTS = r"(?:/\*(?:[^*\r\n]|\*(?![/\r\n]))*+\*/[ \t]*+)*+"
"""Comments that end on their line."""
_KNOWN_LINE = re.compile(
    rf"{_START}{_COMMENTS}(?:{OP_LINE.pattern.replace('?P<root>', '?:').replace('?P<name>', '?:')}"
    rf"|\}}|ENTRY\b|HloModule[ \t\r\n]|{_HEADER.pattern.replace('?P<entry>', '?:').replace('?P<name>', '?:')})"
)
_GUESS = re.compile(rf"ENTRY[ \t]++({_NAME})|(%{patterns.IDENTIFIER})")
"""A name in a broken line: probably that of the computation whose header this was."""
_STRAY = re.compile(r"\}(?:[ \t\r\n]*+\})*+")
"""Braces that close nothing."""
_SHAPE = re.compile(rf"({patterns.shape()})(?=[ \t])")
_BLANK = " \t\r\n"
"""Separators; Python knows more blanks, which are not part of HLO."""
Writing = tuple[str, str]
"""Form of op lines: the indentation, and the prefix of names."""
_XLA_FORM: Writing = "\n  ", "%"
_WIDEST = 32
"""Blanks before op lines up to which they are read fast."""
_TRIES = 8
"""Maximum number of attempts to extend a header."""


class TolerantScanner(Scanner):
    """Reads the computations of an invalid module. The reporter collects the errors."""

    recover_head = staticmethod(recover_head)

    def __init__(
        self, module: Module, reporter: Reporter, infer: Infer | None, linker: Linker | None = None
    ) -> None:
        super().__init__(module, reporter, infer, linker)
        self._line: re.Match[str] | None = None
        """The last op line that was looked for, and from where on there is none."""
        self._no_line_from = len(self.text) + 1
        self._skip = self.statements.skip
        self._line_end = self.statements.line_end

    @classmethod
    def after(cls, scanner: Scanner) -> TolerantScanner:
        """Returns a scanner that continues where another one failed."""
        module = scanner.linker.module
        found = cls(module, scanner.reporter, None, scanner.linker)
        found._parts, found._tail, found._results = scanner._parts, scanner._tail, scanner._results
        found._waiting = scanner._waiting
        found._position, found._point = scanner._position, scanner._point
        found._statements = scanner._statements
        return found

    # ---- computations

    def go_on(self, end: int) -> int:
        """Continues from where the trial failed. Returns the offset after the last computation."""
        point = self.last_point()
        if point is None:
            return self.computations(self.forget_last(), end)
        return self.computations(self._from(point, self.statements.module_end(point.position)), end)

    def _from(self, point: Checkpoint, end: int, tried: Writing | None = None) -> int:
        """Reads the rest of the computation in which a trial failed; gives the offset behind it.

        `tried` is the form that the op line there does not have.
        """
        scope = point.scope
        closing = self._body(scope, point.position, end, scope.computation._brace + 1, tried)
        return self._close(scope, *closing, point.result)

    def computations(self, position: int, end: int) -> int:
        """Reads computations from an offset up to the next module or the end. Returns the offset after the last one."""
        end = self.statements.module_end(position)
        while True:
            begun, position = position, self._right_computations(position, end)
            if begun < position < end:
                continue  # up to the next one that is odd
            start = self._skip(position, end)
            if start >= end:
                return position
            header = self.header(start, end)
            if header is not None:
                position = self._whole(header, start, end)
            elif self.linker.computations and self._is_foreign(start, end):
                return position
            else:
                position = self._odd(start, end)

    def _right_computations(self, position: int, end: int) -> int:
        """Reads computations as `parse` does, as long as they are right; gives the offset behind the last."""
        self._position = position
        self.linker.mark = -1, 0, 0
        try:
            with self.reporter.speculate():
                return self._usual_computations(position, end)
        except (TrialError, UnsupportedFormError):
            point = self.last_point()
            return self.forget_last() if point is None else self._from(point, end, _XLA_FORM)

    def _go_on(self, scope: Scope, form: LineForm | None, position: int, result: Result, end: int) -> int:
        closing = self.closing(position, end)
        if closing is None or (closing[1] is None and self._goes_on(closing[0], end)):
            if len(scope.defined) == len(scope.computation._instructions):
                self._point = Checkpoint(scope, self.linker, position, result)
            raise UnsupportedFormError  # `_body` reads it, which knows what to do when it is wrong
        return self._close(scope, *closing, result)

    def _is_foreign(self, start: int, end: int) -> bool:
        """True if nothing from here on belongs to the module, such as the rest of a log."""
        return not begins_computation(self.text, start, end) and self._next_line(start, end) is None

    def _whole(self, header: Header, start: int, end: int) -> int:
        """Reads a computation whose header has the usual form; gives the offset behind it."""
        is_entry, name, brace, result = header
        scope = self.linker.begin(name, start, is_entry, brace)
        return self._close(scope, *self._body(scope, brace + 1, end), result)

    def _odd(self, start: int, end: int) -> int:
        """Reads what stands where a computation should begin, in another form or broken; gives the offset behind it."""
        if OP_LINE.match(self.text, start, end):
            return self._without_header(start, end)
        record, failure = self._piece(start, end)
        if failure is not None:
            for computation in failure.read.computations:
                self.linker.add_computation(computation)
            broken = failure.read.unfinished
            if broken is not None:
                scope = self.linker.begin(broken.name, broken.start, broken.is_entry, broken.brace)
                return self._close(scope, *self._body(scope, broken.brace + 1, end), "")
            if failure.read.computations:
                return failure.read.computations[-1].end
            return self._broken_header(start, end, failure)
        assert record is not None
        for computation in record.computations:
            self.linker.add_computation(computation)
        return record.end

    def _piece(self, start: int, end: int) -> tuple[ModuleRecord | None, ParseError | None]:
        """The grammar reads what begins here: up to the next header, or where there is none up to the next known line."""
        is_header = _HEADER.match(self.text, start, end) or begins_computation(self.text, start, end)
        pattern = _KNOWN_HEADER if is_header and not self.text.startswith(("}", ","), start) else _KNOWN_LINE
        first: ParseError | None = None
        stop = start
        for _ in range(_TRIES):
            found = pattern.search(self.text, self._line_end(stop, end), end)
            stop = end if found is None else found.start()
            try:
                return reading.reference.parse(self.source, "headerless_module", start, stop), None
            except reading.reference.ParseError as failure:
                failure.__traceback__ = failure.__context__ = None
                if failure.read.computations or failure.read.unfinished is not None:
                    return None, failure
                first = first or failure
                # The apparent next header may have been the rest of this one.
                self.statements.effort -= stop - start + CALL
                if not is_header or not failure.is_at_end or stop == end or self.statements.effort < 0:
                    break
        return None, first

    def _broken_header(self, start: int, end: int, failure: ParseError) -> int:
        """Reads a computation whose header cannot be read, or skips text that is none; gives the offset behind it."""
        failure.report(self.reporter)
        text = self.text
        line_end = self._line_end(start, end)
        header = _HEADER.match(text, start, end)
        if (braces := _STRAY.match(text, start, end)) is not None:
            return braces.end()
        if header is None:
            # Junk, or a header that cannot be recognised any more: then op lines follow.
            line_end = self._end_of_junk(start, end)
            if not OP_LINE.match(text, self._skip(line_end, end)):
                return line_end
        guess = header["name"] if header is not None else None
        if guess is None and (named := _GUESS.search(text, start, line_end)) is not None:
            guess = named[1] or named[2]
        is_entry = text.startswith("ENTRY", start) and self.linker.module._entry is None
        scope = self._begin(guess or "", start, is_entry)
        ends_in_brace = text[start:line_end].rstrip(_BLANK).endswith("{")
        scope.computation._brace = text.rfind("{", start, line_end) if ends_in_brace else line_end - 1
        return self._close(scope, *self._body(scope, scope.computation._brace + 1, end), "")

    def _without_header(self, start: int, end: int) -> int:
        """Reads op lines that stand where a computation should begin; gives the offset behind them."""
        help = hints.hints.outside_computation(self.text, start)
        self.reporter.error("X101", "instruction outside any computation", start, None, help)
        scope = self._begin("", start, is_entry=False)
        scope.computation._brace = start - 1
        return self._close(scope, *self._body(scope, start, end), "")

    def _begin(self, name: str, start: int, is_entry: bool) -> Scope:
        """Opens a computation whose name is a guess, or not known."""
        name = name.removeprefix("%")
        known = self.linker.computations
        self.linker.has_lost_computations = self.linker.has_lost_computations or not name or name in known
        if not name or name in known:
            stem, number = name or "unnamed", len(known)
            while (name := f"{stem}.{number}") in known:
                number += 1
        self.linker.module._is_guess = True
        return self.linker.begin(name, start, is_entry)

    # ---- bodies

    def _body(
        self, scope: Scope, position: int, end: int, first: int | None = None, tried: Writing | None = None
    ) -> Closing:
        """Reads the op lines of a computation from an offset on up to its end, whatever stands between them.

        `first` is where its lines begin, if some have been read, and `tried` the form that the next one does not have.
        """
        form = self._usual_form(scope, position if first is None else first, end)
        odd = position if form is not None and form == tried else -1
        while True:
            if form is not None and position != odd:
                position = odd = self._usual_lines(scope, form, position, end)
            found: int | Closing | None = self.closing(position, end)
            if found is None:
                scope.computation._name_mark = None
                found = self._statement(scope, position, end, form)
            if isinstance(found, int):
                position = found
                continue
            if not _USUAL_LINE.match(self.text, found[0], end):
                return found
            position = found[0]
            self.linker.module._is_guess = (
                True  # the brace may be that of an inline body whose line is broken
            )
            self.reporter.error(
                "X101", f"this closes computation {scope.computation.name}, but its instructions continue",
                position - 1, None, "remove the brace", [("the next op line", self._skip(position, end), None)],
            )  # fmt: skip

    def _usual_form(self, scope: Scope, position: int, end: int) -> Writing | None:
        """Form of the first op line of the body; None if it is not to be read fast."""
        line = self._next_line(position, end)
        if line is None or len(line["indent"]) > _WIDEST:
            return None
        if line["indent"] == "\n  ":
            scope.computation._name_mark = line["mark"]
        return line["indent"], line["mark"]

    def _usual_lines(self, scope: Scope, form: Writing, position: int, end: int) -> int:
        """Reads lines of that form from an offset on; gives the offset behind them."""
        scan = patterns.op_line(*form, bounded=True).scanner  # type: ignore[attr-defined]
        return self._lines(scope, scan(self.text, position, end).match, position, form[1])

    def _statement(self, scope: Scope, position: int, end: int, tried: Writing | None) -> int | Closing:
        """Reads what the fast reader could not: op lines in another form, broken ones, or the end of the body."""
        start = self._skip(position, end)
        if start >= end:
            return self._unclosed(scope, position, end)
        closing = CLOSING.match(self.text, start, end)
        if closing is not None:
            return closing.end(), closing[1]
        if begins_line(self.text, start) and (_HEADER.match(self.text, start, end) or self._is_entry(start)):
            return self._unclosed(scope, position, start)
        return self._op_lines(
            scope, start, end, tried == _XLA_FORM and self.text[position:start] == _XLA_FORM[0]
        )

    def _is_entry(self, start: int) -> bool:
        return _ENTRY.match(self.text, start) is not None

    def _unclosed(self, scope: Scope, position: int, place: int) -> Closing:
        """Ends a computation whose closing brace is missing."""
        scope.is_unclosed = True
        name, brace = scope.computation.name, scope.computation._brace
        self.linker.module._is_guess = (
            self.linker.module._is_guess or scope.is_damaged  # a broken line may hold the brace
        )
        is_end = place >= len(self.text)
        said = self.reporter.last_error_end()
        is_cut = said >= 0 and not self.text[said:].strip()
        if is_end and (is_cut or not self.text.startswith("{", max(brace, 0))):
            return position, None  # op lines alone, or a last line that is cut, of which that is said already
        message = (
            f"the text ends inside computation {name}, opened on line {self.reporter.source.position(brace)[0]}: "
            "an instruction or `}` is missing"
            if is_end and brace >= 0
            else "the text ends here, but an instruction or `}` is expected"
            if is_end
            else f"computation {name} is not closed: `}}` is missing before this"
        )
        self.reporter.error(
            "X101", message, place, None, related=[("this is not closed", brace, brace + 1)] if brace >= 0 else ()
        )  # fmt: skip
        return position, None

    # ---- op lines

    def _op_lines(self, scope: Scope, start: int, end: int, is_tried: bool) -> int:
        """Reads the op lines that begin at an offset; gives the offset behind them, or behind a broken one.

        `is_tried` says that the first has been tried as XLA writes them.
        """
        first = start
        if len(scope.defined) == len(scope.computation._instructions):
            first = self._with_line_before(scope, start)
        behind = self._loose_line(scope, start, end, is_tried) if first == start else None
        if behind is not None:
            return behind
        is_counted = first == start and self.reporter.is_full
        records, failure = self.statements.read(first, end, is_counted)
        for record in records:
            self.linker.add_instruction(scope, record)
        if records and records[-1].end > start:
            return records[-1].end
        if records:  # the line before was complete
            records, failure = reading.reference.op_lines(self.source, start, self._line_end(start, end))
        assert failure is not None
        return self._broken_line(scope, start, end, failure)

    def _half_line(self, scope: Scope, match: re.Match[str], mark: str, end: int) -> int | None:
        # The text that the grammar would read, twice: the op line up to the parenthesis, and then no op line.
        blanks = line_records.lacks_comma(match[6])
        record = line_records.record(match, mark, has_tail=False) if blanks else None
        if record is None:
            return None
        self.linker.add_instruction(scope, record)
        start = record.end + blanks
        failure = self.statements.no_op_line(start, match.end(), end, self.reporter.is_full)
        return self._broken_line(scope, start, end, failure)

    def _broken_line(self, scope: Scope, start: int, end: int, failure: ParseError) -> int:
        """Keeps a line that cannot be read, with the lines below that look like nothing known; gives the offset behind."""
        failure.report(self.reporter)
        stop = self._end_of_junk(start, end)
        head = OP_LINE.match(self.text, start, end) or _NAMED_LINE.match(self.text, start, end)
        if head is None:
            is_root = _ROOT.match(self.text, start, end) is not None
            self.linker.add_bad(scope, start, stop, "", None, is_root)
        else:
            name = head["name"].removeprefix("%")
            self.linker.add_bad(
                scope, start, stop, name, self._shape_at(head.end()), head["root"] is not None
            )
        return stop

    def _shape_at(self, position: int) -> Shape | None:
        """The shape that stands at an offset; None if there is none that can be read."""
        match = _SHAPE.match(self.text, position)
        if match is None:
            return None
        try:
            shape: Shape = shortcuts.read("shape", match[1])
        except TermError:
            return None
        return shape

    # ---- places

    def _next_line(self, position: int, end: int) -> re.Match[str] | None:
        """The next op line in the usual form from an offset on; None if there is none in this module."""
        if position >= self._no_line_from:
            return None
        if self._line is None or self._line.start() < position:
            self._line = _USUAL_LINE.search(self.text, position)
        if self._line is None:
            self._no_line_from = position
        return self._line if self._line is not None and self._line.start() < end else None

    def _end_of_junk(self, start: int, end: int) -> int:
        """The end of the last line that looks like nothing known, from a broken one on."""
        found = _KNOWN_LINE.search(self.text, self._line_end(start, end), end)
        if found is None:
            return start + len(self.text[start:end].rstrip(_BLANK))
        return max(self._line_end(start, end), start + len(self.text[start : found.start()].rstrip(_BLANK)))


_KNOWN_HEADER = re.compile(
    rf"{_START}(?:ENTRY\b|HloModule[ \t\r\n]|{_HEADER.pattern.replace('?P<entry>', '?:').replace('?P<name>', '?:')})"
)
"""A line with which something else begins than an op line."""
