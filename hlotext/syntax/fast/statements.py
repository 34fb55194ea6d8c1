"""Odd statements: op lines in a form that the fast reader's expressions do not cut, one by one through the grammar.

An op line may go on over several lines, and only the grammar knows where it ends. It is given the line, then the line with
those below it up to where the brackets are closed, so that what is right behind it is read fast again. That is a guess at how
much text it needs and nothing else: what it reads, it reads as it does everywhere.
"""

from __future__ import annotations

import re

from hlotext.ir.nodes.source import Source
from hlotext.syntax import reading
from hlotext.syntax.fast import line_records
from hlotext.syntax.hints.parse_failure import Mistake
from hlotext.syntax.language import grammar, patterns
from hlotext.syntax.language.boundaries import next_module
from hlotext.syntax.reading.records import InstructionRecord, PartialRecord
from hlotext.syntax.reading.reference import ParseError
from hlotext.syntax.source.limits import MAX_STATEMENT

_NAME = rf"%?{patterns.IDENTIFIER}"
OP_LINE = re.compile(rf"(?P<root>ROOT[ \t]++)?+(?P<name>{_NAME})[ \t]*+=[ \t]*+")
"""Beginning of an op line."""
CLOSING = re.compile(rf"\}}(?:[ \t\r\n]*+,[ \t\r\n]*+execution_thread=[ \t\r\n]*+({patterns.quoted()}))?")
"""The brace that closes a computation, wherever it stands, and its thread."""
_BRACKET = re.compile(
    # One character each, not a set: then an expression is looked for where one of its first characters stands.
    rf"{patterns.quoted()}|/\*[^*\r\n]*+\*/|//[^\r\n]*+|\(|\)|\{{|\}}|\[|\]|\r\n?|\n"
)
_BEFORE_BODY = re.compile(
    rf"(?:{grammar.terminals()['COMPUTATION_ATTRIBUTE']}|_computations=\s*\{{|,|\{{)\s*\Z"
)
"""Text before a computation's body that is written in place of its name."""
_LINE_END = re.compile(r"[\r\n]")
_BLANKS = re.compile(r"[ \t\r\n]++|//[^\r\n]*+")
_JOINT = re.compile(r"\t|  |/[*/]")
"""Separators of two words on one line, other than a single blank."""
_CONTINUES = re.compile(r"[,(\[{]|T\s*\(")
"""Text that shows that an op line continues below although it looks complete."""
_CLEAR_LINE = re.compile(
    rf"(?:ROOT[ \t]++)?+(?:%{patterns.IDENTIFIER}[ \t]*+|{patterns.IDENTIFIER}[ \t]++)=[ \t]*+"
)
"""The same without what may be an attribute."""
_NEXT = re.compile(rf"(?:ROOT[ \t]++)?+%{patterns.IDENTIFIER}[ \t]*+=|[}})]|ROOT\b")
"""Beginning of text after an op line; no attribute begins like it."""
_HEADER = re.compile(rf"(?:ENTRY\b\s*+)?+{_NAME}\s*+[({{]")
"""Beginning of a computation's header, possibly over several lines."""
_BODY = re.compile(r"\{(?=[ \t]*+(?:[\r\n]|//))")
"""A brace that ends a line: that of a body."""
_NO_OP_LINE = re.compile(
    rf"(?:ROOT[ \t]++)?+(?:%?{patterns.IDENTIFIER}[ \t]++(?![=:/])[!-~]|{patterns.IDENTIFIER}=)"
)
"""A name that something else than `=` follows, or an attribute: no op line begins like that."""
_NAME_ALONE = re.compile(r"[ \t]*+(?!ROOT\b)%?[A-Za-z_][\w.\-]*+[ \t\r\n]*+")
_UNSURE = re.compile(rf"[ \t]=|=[ \t]|%{patterns.IDENTIFIER}=|'")
"""Text that shows that there may be another op line on the same line, or a bracket inside a string."""
_TRIES = 8
"""Maximum number of attempts to extend an incomplete op line."""
CALL = 200
"""Characters that the grammar could read in the time that calling it in vain takes."""


class Statements:
    """Reads the statements of a text that are in unusual form."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._text = source.text
        self.effort = 2 * len(self._text) + MAX_STATEMENT
        """Characters that the grammar may still be given in vain."""
        self._no_comment_from = len(self._text) + 1
        """From where on no comment ends."""
        self._opened: tuple[int, int, tuple[int, ...]] = 0, 0, ()
        """An offset, the end of its line, and the brackets that are open there: for an op line that was looked at last."""
        self._has_returns = "\r" in self._text
        self._module = 0, 0
        """A piece of the module that was looked at last: from somewhere to its end."""

    # ---- op lines

    def read(
        self, start: int, end: int, is_counted: bool = False
    ) -> tuple[tuple[InstructionRecord, ...], ParseError | None]:
        """Returns the op lines that begin on the line at an offset, and the error that ends them; None if there is
        none.

        With `is_counted` the error is only counted, so its message may be incomplete.
        """
        if is_counted and _NO_OP_LINE.match(self._text, start, end) is not None:
            return (), self._unsaid(start, end)
        stop = self.line_end(start, end)
        # For the grammar a name alone in its line begins nothing.
        is_alone = _NAME_ALONE.fullmatch(self._text, start, stop) is not None
        if not is_alone and self._text.count('"', start, stop) % 2:
            begun = line_records.begun(self._text, start, stop)
            # Where a quote is missing, everything below looks like strings: what is wrong before is sooner found.
            records, failure = reading.reference.op_lines(self.source, start, stop, begun=begun)
            if failure is not None and not failure.is_at_end:
                return records, failure
        guess, may_be_further = self._look_ahead(start, start, end) if not is_alone else (None, True)
        if guess is None and is_counted and not may_be_further and self._is_cut(start, stop, end):
            return (), self._unsaid(start, end)
        if guess is not None and (joined := self._joined(start, guess, stop)) is not None:
            return (joined,), None
        begun = line_records.begun(self._text, start, stop)
        if guess is not None and guess > stop:
            try:
                record: InstructionRecord = reading.reference.parse(
                    self.source, "instruction", start, guess, begun=begun
                )
            except ParseError as failed:
                failed.__traceback__ = failed.__context__ = None
                self.effort -= guess - stop
            else:
                return (record,), None
        if guess is None and not may_be_further and self.effort >= 0 and self._is_open(start, stop):
            # It is not closed before the next op line, whose beginning shows what is expected instead. In braces and square
            # brackets something else is mostly wrong before.
            if self._opened[:2] == (start, stop) and self._text[self._opened[2][-1]] != "(":
                records, failure = reading.reference.op_lines(self.source, start, stop, begun=begun)
                if failure is not None and (failure.is_for_good or not failure.is_at_end):
                    self.effort -= self.line_end(self.skip(stop, end), end) - start + CALL
                    return records, failure
            longer, is_whole = self._extent(start, stop, end)
            if longer > stop and not is_whole:
                self.effort -= longer - start + CALL
                return reading.reference.op_lines(self.source, start, longer, begun=begun)
        records, failure = reading.reference.op_lines(self.source, start, stop, begun=begun)
        for _ in range(_TRIES if not is_alone else 0):
            if failure is None or failure.is_for_good or not failure.is_at_end or self.effort < 0:
                break
            if failure.is_between_lines and not self.goes_on_below(stop, end):
                break
            longer, is_whole = self._extent(start, stop, end)
            if longer == stop:
                break
            more, again = reading.reference.op_lines(self.source, start, longer, begun=begun)
            if again is not None and not again.is_between_lines:
                self.effort -= longer - start + CALL
            if again is None or again.is_at_end or len(more) > len(records):
                records, failure, stop = more, again, longer
            else:
                failure = again
            if not is_whole:
                break
        return records, failure

    def no_op_line(self, start: int, stop: int, end: int, is_counted: bool) -> ParseError:
        """Returns the error for an attribute at an offset at which no op line begins."""
        failure = None if is_counted else reading.reference.op_lines(self.source, start, stop)[1]
        return failure or self._unsaid(start, end)

    def _is_cut(self, start: int, stop: int, end: int) -> bool:
        """True if a line begins an op line that is surely incomplete where the next line begins."""
        begin = OP_LINE.match(self._text, start, stop)
        return (
            begin is not None
            and _UNSURE.search(self._text, begin.end(), stop) is None
            and self._is_open(start, stop)
            and not self._extent(start, stop, end)[1]
        )

    def _unsaid(self, start: int, end: int) -> ParseError:
        """Why there is no op line at an offset, found out when somebody asks."""

        def finding() -> Mistake:
            failure = self.read(start, end)[1]
            assert failure is not None
            return failure.finding()

        return ParseError(finding, PartialRecord())

    def _is_open(self, start: int, stop: int) -> bool:
        """True if a bracket is open at the end of a line that is not the brace of a body."""
        if self._opened[:2] == (start, stop):
            opened = list(self._opened[2])
        else:
            opened = []
            for match in _BRACKET.finditer(self._text, start, stop):
                if match[0] in "([{":
                    opened.append(match.start())
                elif match[0] in ")]}" and opened:
                    opened.pop()
        return bool(opened) and not any(map(self._is_body, opened))

    def goes_on_below(self, stop: int, end: int) -> bool:
        """True if the text after a line can only belong to the op line on it."""
        return self.is_continuation(self.skip(stop, end))

    def _joined(self, start: int, end: int, line_end: int) -> InstructionRecord | None:
        """The op line between two offsets as one line of the usual form; None if it is not, or was one line."""
        if end <= line_end and _JOINT.search(self._text, start, end) is None:
            return None
        found = line_records.joined(self._text, start, end)
        if found is None:
            return None
        line, piece = found
        mark = "%" if line.startswith(("%", "ROOT %")) else ""
        match = patterns.op_line("", mark, bounded=True).fullmatch(line)
        return None if match is None else line_records.record(match, mark, piece)

    def _look_ahead(self, start: int, least: int, end: int) -> tuple[int | None, bool]:
        """Where the op line at an offset ends that is probably right: all brackets closed, and nothing of it below.

        Not before the line that ends at `least`. None if that is found nowhere, and whether it may be further down.
        """
        text = self._text
        begins_line = _CLEAR_LINE.match if least == start else OP_LINE.match
        opened: list[int] = []
        limit = min(end, start + MAX_STATEMENT)
        comment = -1, -1
        position = start
        if self._opened[0] == start and self._opened[1] < least:
            _, position, brackets = self._opened
            opened += brackets
        for match in _BRACKET.finditer(text, position, limit):
            token = match[0]
            if token in "([{":
                opened.append(match.start())
            elif token in ")]}":
                if not opened:  # the end of the body, or of a line that is broken if it is not complete
                    return (match.start() if least == start else None), False
                opened.pop()
            elif token[0] == "/":
                comment = match.span()
            elif token[0] in "\r\n" and match.start() >= least:
                below = self.skip(match.end(), end)
                if least == start and self._opened[0] != start:
                    self._opened = start, match.start(), tuple(opened)
                if not opened:
                    if not self.is_continuation(below) and not self._is_open_list(
                        start, match.start(), comment, below
                    ):
                        return match.start(), True
                elif begins_line(text, below) and not (
                    _BODY.match(text, opened[-1]) and self._is_body(opened[-1])
                ):
                    return None, False  # broken, or closed nowhere
        if opened or limit < end:
            self.effort -= limit - start
            return None, not opened
        return end, True

    def _is_open_list(self, start: int, stop: int, comment: tuple[int, int], below: int) -> bool:
        """True if a line ends in a comma, possibly before a comment, and no op line begins below it."""
        line = self._text[start : comment[0] if comment[1] == stop else stop].rstrip(" \t")
        return line.endswith(",") and _NEXT.match(self._text, below) is None

    def is_continuation(self, position: int) -> bool:
        """True if the text at an offset can only belong to the op line before it."""
        return _CONTINUES.match(self._text, position) is not None

    def _extent(self, start: int, stop: int, end: int) -> tuple[int, bool]:
        """Where an op line may end that goes on below `stop`, at least one line below; and whether to look further."""
        least = self.line_end(self.skip(stop, end), end)
        found, may_be_further = self._look_ahead(start, least, end)
        return (least, may_be_further) if found is None else (found, True)

    def _is_body(self, bracket: int) -> bool:
        """True if a bracket opens the body of a computation written in place of its name."""
        if self._text[bracket] != "{" or not _BEFORE_BODY.search(self._text[max(0, bracket - 60) : bracket]):
            return False
        after = self.skip(bracket + 1, len(self._text))
        return OP_LINE.match(self._text, after) is not None

    # ---- headers

    def header(self, start: int, end: int) -> reading.records.ComputationRecord | None:
        """Returns the header of a computation in any form, without its body; None if there is none."""
        if self.effort < 0 or _HEADER.match(self._text, start, end) is None:
            return None
        # A header is as long as the types of all parameters; what is read in vain is paid for.
        longest = min(end, start + max(MAX_STATEMENT, self.effort))
        brace = _BODY.search(self._text, start, longest)
        stop = longest if brace is None else brace.end()
        if brace is not None:
            try:
                reading.reference.parse(self.source, "headerless_module", start, stop)
            except ParseError as failure:
                failure.__traceback__ = failure.__context__ = None
                found = failure.read.unfinished
                if found is not None and found.brace == brace.start() and not failure.read.computations:
                    return found
        self.effort -= stop - start + CALL
        return None

    # ---- places

    def skip(self, position: int, end: int) -> int:
        """Returns the offset after blanks and comments."""
        text = self._text
        while True:
            if (match := _BLANKS.match(text, position, end)) is not None:
                position = match.end()
            elif text.startswith("/*", position) and position < self._no_comment_from:
                close = text.find("*/", position + 2, end)
                if close < 0:
                    self._no_comment_from = position
                    return position
                position = close + 2
            else:
                return position

    def module_end(self, position: int) -> int:
        """Returns the end of the module around an offset: the next module's header, or the end of the text."""
        if not self._module[0] <= position < self._module[1]:
            self._module = position, next_module(self._text, position)
        return self._module[1]

    def line_end(self, position: int, end: int) -> int:
        """Returns the end of the line at an offset."""
        if not self._has_returns:
            found = self._text.find("\n", position, end)  # takes a tenth of the time
            return end if found < 0 else found
        match = _LINE_END.search(self._text, position, end)
        return end if match is None else match.start()
