"""The reference reader: Lark over a whole module. Slow, obviously right; syntax errors come from here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import lark

from hlotext.findings.errors import TermError
from hlotext.ir.caches import Cache
from hlotext.ir.nodes.source import Source
from hlotext.syntax.hints.expectation import expected_words
from hlotext.syntax.hints.mistakes import describe
from hlotext.syntax.hints.parse_failure import CLOSERS, Mistake, ParseFailure, unclosed, word_at
from hlotext.syntax.language import patterns
from hlotext.syntax.language.words import bare
from hlotext.syntax.reading import steps, terms
from hlotext.syntax.reading.records import (
    ComputationRecord,
    InlineBody,
    InstructionRecord,
    ModuleRecord,
    ParsedAttribute,
    PartialRecord,
    SignatureRecord,
)
from hlotext.syntax.reading.valid_prefix import ValidPrefix
from hlotext.syntax.source.reporter import Reporter, word_end

Record = TypeVar("Record", ComputationRecord, InstructionRecord)


class ParseError(Exception):
    """Raised if the grammar rejects a text."""

    def __init__(
        self,
        finding: Callable[[], Mistake],
        read: PartialRecord,
        *,
        is_at_end: bool = False,
        is_for_good: bool = False,
        is_between_lines: bool = False,
        is_complete: bool = False,
        may_end: bool = True,
        unclosed: Callable[[], int | None] = lambda: None,
    ) -> None:
        super().__init__()
        self.finding = finding
        """The error message, built on demand: many errors are never shown."""
        self.read = read
        """Records before the error; an error of another kind among them comes first."""
        self.is_at_end = is_at_end
        """More text might have helped."""
        self.is_for_good = is_for_good
        """No, it would not have: longer texts are refused at the same place."""
        self.is_between_lines = is_between_lines
        """The text ends where an op line is complete, and a next one could begin."""
        self.is_complete = is_complete
        """True if the records before the error are all that was requested."""
        self.may_end = may_end
        """The text could have ended before the error, or nothing stands there: other rules may go on."""
        self.unclosed = unclosed
        """Finds the bracket that is not closed where the text ends; none elsewhere."""

    def report(self, reporter: Reporter) -> None:
        """Reports the error."""
        reporter.end_trial()
        if reporter.is_full:
            reporter.leave_out()
            return
        finding = self.finding()
        bracket = self.unclosed()
        bracket = finding.opened if bracket is None else bracket
        related = [] if bracket is None else [("this is not closed", bracket, bracket + 1)]
        reporter.error(finding.code, finding.message, finding.start, finding.end, finding.help, related)


def parse(
    source: Source,
    rule: str,
    start: int = 0,
    end: int | None = None,
    *,
    goes_on: bool = False,
    opened: int | None = None,
    begun: ValidPrefix | None = None,
    shown: int | None = None,
) -> Any:
    """Parses a slice of the source with a rule and returns its record. Raises ParseError. Offsets refer to the source.

    With `goes_on`, what precedes the slice may also end at its start, so that the end is expected there as well.
    `opened` is the offset from which unclosed brackets are looked for if the text ends too early. `begun` is the part
    of the first op line that is already parsed. `shown` limits the text that messages may look at; None: `end`.
    """
    text = source.text
    end = len(text) if end is None else end
    by_lexer = False
    try:
        if rule not in terms.LINES:
            return terms.parse_slice(rule, text, start, end)
        refused = steps.read(rule, text, start, end, begun)
        if type(refused) is not steps.Refused:
            return refused
        parser, at, by_lexer = refused.parser, refused.position, refused.is_by_lexer
        stack = tuple(parser.parser_state.state_stack)

        def accepted() -> frozenset[str]:
            return (refused.is_terminal() and _accepted(stack, parser)) or refused.expected()

        if refused.is_end:
            raise _at_end(text, start if opened is None else opened, end, accepted, parser)
    except TermError as error:
        wrong = Mistake(error.message, error.position, word_end(text, error.position), error.help, error.code)
        raise ParseError(lambda: wrong, _read_before_term_error(rule, text, start, end)) from None
    except lark.exceptions.UnexpectedToken as error:
        parser = error.interactive_parser
        expected = frozenset(error.expected)
        stack = tuple(parser.parser_state.state_stack)

        def accepted() -> frozenset[str]:
            return _accepted(stack, parser) or expected

        if error.token.type == "$END":
            raise _at_end(text, start if opened is None else opened, end, accepted, parser) from None
        at = error.token.start_pos or 0
        _note_last(error.token_history)
    except lark.exceptions.UnexpectedCharacters as error:
        parser = error.interactive_parser
        expected = frozenset(error.allowed or ())

        def accepted() -> frozenset[str]:
            return expected

        at = cast(int, error.pos_in_stream)
        _note_last(error.token_history)
    more: frozenset[str] = frozenset()
    if goes_on and (blank := patterns.blank().match(text, start, end)) is not None and blank.end() == at:
        more = frozenset({"$END"})
    attribute, opened_at = _attribute(parser), _open_bracket(parser)

    def finding() -> Mistake:
        limit = end if shown is None else shown
        return describe(ParseFailure(text, at, limit, accepted() | more, attribute, opened_at))

    # Terminals look ahead, so the last word may be refused for what does not follow it.
    behind = patterns.blank().match(text, at + len(word_at(text, at, end)), end)
    is_last = behind is not None and behind.end() == end
    choices = parser.choices()
    is_at_end = is_last or text.startswith(("/*", '"', "'", "{"), at)
    # Of the terminals only that of a layout's brace asks what stands behind it.
    is_for_good = by_lexer and not is_last and text.startswith("{", at) and "LAYOUT_OPEN" not in choices
    # Lark itself has another word for the end where nothing but that could follow.
    is_complete = "$END" in choices and {name for name in choices if name.isupper()} == {"$END"}
    # There are no choices behind all that the rule asked for, and before anything those of other rules are others.
    may_end = not choices or "$END" in choices or not parser.parser_state.value_stack
    raise ParseError(
        finding,
        _read_by(parser),
        is_at_end=is_at_end,
        is_for_good=is_for_good,
        is_complete=is_complete,
        may_end=may_end,
    )


def _note_last(history: Any) -> None:
    """Where the lexer met what cannot stand there, the last token is the one before it."""
    if history and history[-1] is not None:
        terms.token_tracker().end = history[-1].end_pos


def op_lines(
    source: Source, start: int, end: int, opened: int | None = None, begun: ValidPrefix | None = None
) -> tuple[tuple[InstructionRecord, ...], ParseError | None]:
    """Parses op lines of a body as far as possible. Returns them, and the error; None if the closing brace was reached."""
    try:
        records: tuple[InstructionRecord, ...] = parse(
            source, "body_rest", start, end, opened=opened, begun=begun
        )
    except ParseError as failure:
        # Its traceback would keep the frames of all callers alive, and with them itself.
        failure.__traceback__ = failure.__context__ = None
        return failure.read.instructions, None if failure.is_complete else failure
    return records, None


_follow = Cache(1 << 12)
"""Terminals that can follow, cached by the parser's stack: many lines are broken in the same way."""


def _accepted(stack: tuple[int, ...], parser: Any) -> frozenset[str]:
    """The terminals that could follow where the parser has these states on its stack."""
    found: frozenset[str] | None = _follow.results.get(stack)
    if found is None:
        names = filter(str.isupper, parser.parser_state.parse_conf.states[stack[-1]])
        found = frozenset(name for name in names if _accepts(stack, name, parser))
        _follow.put(stack, found)
    return found


def _accepts(stack: Sequence[int], name: str, parser: Any) -> bool:
    """True if a terminal could follow; collecting all that could takes twenty times as long."""
    conf = parser.parser_state.parse_conf
    stacked = list(stack)
    while (follow := conf.states[stacked[-1]].get(name)) is not None:
        target = follow[1]
        if isinstance(target, int):
            return True
        # A rule ends before it, with which the parser would go on.
        if target.expansion:
            del stacked[-len(target.expansion) :]
        stacked.append(conf.states[stacked[-1]][target.origin.name][1])
        if name == "$END" and stacked[-1] == conf.end_state:
            return True
    return False


def _at_end(text: str, start: int, end: int, names: Callable[[], frozenset[str]], parser: Any) -> ParseError:
    """The error for a text that ends too early."""
    stack = parser.parser_state.state_stack
    is_between_lines = _accepts(stack, "ROOT", parser) and _accepts(stack, "RBRACE", parser)
    read = _read_by(parser)
    first = read.unfinished.start if read.unfinished is not None else start
    return ParseError(
        lambda: Mistake(f"the text ends here, but {expected_words(names())} is expected", end, end),
        read,
        is_at_end=True,
        is_between_lines=is_between_lines,
        unclosed=lambda: unclosed(text, first, end),
    )


def _attribute(parser: Any) -> str:
    """The attribute whose value the parser is in; empty outside."""
    for value in reversed(parser.parser_state.value_stack):
        if isinstance(value, lark.Tree):
            value = value.children[0]
        if isinstance(value, _WHOLE):
            return ""
        if isinstance(value, lark.Token) and value.type.endswith("_ATTRIBUTE"):
            return str(value[:-1])
    return ""


def _open_bracket(parser: Any) -> int | None:
    """Where the innermost bracket of the op line or header begins that a parser has read and not closed; None outside."""
    closed = 0
    for value in reversed(parser.parser_state.value_stack):
        if not isinstance(value, lark.Token):
            continue
        if value.type == "EQUAL":  # behind an instruction's name
            return None
        closed += value[-1:] in CLOSERS.values()
        if value[-1:] in CLOSERS:
            if not closed:
                return None if value.end_pos is None else value.end_pos - 1
            closed -= 1
    return None


_WHOLE = ParsedAttribute, InstructionRecord, ComputationRecord


def _read_before_term_error(rule: str, text: str, start: int, end: int) -> PartialRecord:
    """Records before a wrong value: Lark returns no state then, so the text is parsed again up to it."""
    with terms._lock:
        terms.enter(rule)
        parser: Any = terms.parser().parse_interactive(lark.TextSlice(text, start, end), start=rule)
        with contextlib.suppress(lark.exceptions.UnexpectedInput, lark.exceptions.VisitError, TermError):
            parser.exhaust_lexer()
            parser.feed_eof()
        return _read_by(parser)


def _read_by(parser: Any) -> PartialRecord:
    """Records that a parser has read, taken from its stack."""
    if "NAME" in parser.choices():
        # An op line ends where the next one starts, so the name of a next one makes the parser finish it.
        with contextlib.suppress(lark.exceptions.UnexpectedInput, TermError):
            parser.feed_token(lark.Token("NAME", "next", start_pos=0, end_pos=0))
    stack = list(parser.parser_state.value_stack)
    head = stack.pop(0) if stack and isinstance(stack[0], ModuleRecord) else None
    # Before the word that begins another module the first one is complete.
    computations = _list_of(ComputationRecord, stack) or (head.computations if head is not None else ())
    if instructions := _list_of(InstructionRecord, stack):
        return PartialRecord(instructions=instructions)
    entry = stack.pop(0) if stack and _is_token(stack[0], "ENTRY") else None
    if not stack or not _is_token(stack[0], "NAME"):
        return PartialRecord(head, computations)
    name, signature = stack.pop(0), None
    if stack and isinstance(stack[0], SignatureRecord):
        signature = stack.pop(0)
    start = (name if entry is None else entry).start_pos
    if stack and isinstance(stack[0], InlineBody):
        brace, instructions = stack[0].position, stack[0].instructions
    elif stack and _is_token(stack[0], "LBRACE"):
        brace, instructions = stack.pop(0).start_pos, _list_of(InstructionRecord, stack)
    else:
        return PartialRecord(head, computations)
    end = parser.lexer_thread.state.line_ctr.char_pos
    unfinished = ComputationRecord(
        bare(name), entry is not None, signature, instructions, "main", start, brace, end
    )
    return PartialRecord(head, computations, unfinished)


def _list_of(kind: type[Record], stack: list[Any]) -> tuple[Record, ...]:
    """Takes a list that the grammar is gathering from the front of the stack; empty if there is none."""
    if stack and isinstance(stack[0], lark.Tree) and isinstance(stack[0].children[0], kind):
        return tuple(stack.pop(0).children)
    return ()


def _is_token(value: Any, name: str) -> bool:
    return isinstance(value, lark.Token) and value.type == name
