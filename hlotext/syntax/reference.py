"""The reference reader: Lark over a whole module. Slow, obviously right; syntax errors come from here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, TypeVar, cast

import lark

from hlotext.ir.source import Source
from hlotext.syntax import terms
from hlotext.syntax.errors import TermError
from hlotext.syntax.expectation import expected_words
from hlotext.syntax.records import (
    ComputationRecord,
    InstructionRecord,
    ModuleRecord,
    PartialRecord,
    SignatureRecord,
)
from hlotext.syntax.reporter import Reporter
from hlotext.syntax.words import bare

Record = TypeVar("Record", ComputationRecord, InstructionRecord)


class ParseError(Exception):
    """The grammar rejects a piece of text; `is_at_end` when more text might have helped."""

    def __init__(
        self, code: str, message: str, start: int, end: int, help: str, is_at_end: bool, read: PartialRecord
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.start = start
        self.end = end
        self.help = help
        self.is_at_end = is_at_end
        self.read = read
        """What stands before the error; an error of another kind in there comes first."""

    def report(self, reporter: Reporter) -> None:
        """Says it."""
        reporter.error(self.code, self.message, self.start, self.end, self.help)


def parse(source: Source, rule: str, start: int = 0, end: int | None = None) -> Any:
    """The record of a piece of the source read by one rule; offsets are the source's. Raises ParseError."""
    end = len(source.text) if end is None else end
    try:
        return terms.parse_slice(rule, source.text, start, end)
    except TermError as error:
        at, read = error.position, _read_before_term_error(rule, source.text, start, end)
        raise ParseError(error.code, error.message, at, at + 1, error.help, False, read) from None
    except lark.exceptions.UnexpectedToken as error:
        read = _read_by(error.interactive_parser)
        if error.token.type == "$END":
            message = f"the text ends here, but {expected_words(_names(error))} is expected"
            raise ParseError("X101", message, end, end, "", True, read) from None
        at = int(error.token.start_pos or 0)
        message, help = _describe(source.text, at, str(error.token), _names(error))
        raise ParseError("X101", message, at, at + len(error.token), help, False, read) from None
    except lark.exceptions.UnexpectedCharacters as error:
        at, read = cast(int, error.pos_in_stream), _read_by(error.interactive_parser)
        word = _word(source.text, at, end)
        message, help = _describe(source.text, at, word, error.allowed or ())
        is_open = source.text.startswith(("/*", '"', "'", "{"), at)
        raise ParseError("X101", message, at, at + len(word), help, is_open, read) from None


def _read_before_term_error(rule: str, text: str, start: int, end: int) -> PartialRecord:
    """What stands before a wrong value: Lark gives no state then, so the parser goes there once more."""
    with terms._lock:
        parser: Any = terms.parser().parse_interactive(lark.TextSlice(text, start, end), start=rule)
        with contextlib.suppress(lark.exceptions.VisitError, TermError):
            parser.exhaust_lexer()
            parser.feed_eof()
        return _read_by(parser)


def _read_by(parser: Any) -> PartialRecord:
    """What a parser has read, taken from its stack."""
    with contextlib.suppress(lark.exceptions.UnexpectedInput, TermError):
        # An op line ends where the next one starts, so the name of a next one makes the parser finish it.
        parser.feed_token(lark.Token("NAME", "next", start_pos=0, end_pos=0))
    stack = list(parser.parser_state.value_stack)
    head = stack.pop(0) if stack and isinstance(stack[0], ModuleRecord) else None
    computations = _list_of(ComputationRecord, stack)
    entry = stack.pop(0) if stack and _is_token(stack[0], "ENTRY") else None
    if not stack or not _is_token(stack[0], "NAME"):
        return PartialRecord(head, computations)
    name = stack.pop(0)
    if stack and isinstance(stack[0], SignatureRecord):
        stack.pop(0)
    if not stack or not _is_token(stack[0], "LBRACE"):
        return PartialRecord(head, computations)
    brace = stack.pop(0).start_pos
    start = (name if entry is None else entry).start_pos
    instructions = _list_of(InstructionRecord, stack)
    end = parser.lexer_thread.state.line_ctr.char_pos
    unfinished = ComputationRecord(
        bare(name), entry is not None, None, instructions, "main", start, brace, end
    )
    return PartialRecord(head, computations, unfinished)


def _list_of(kind: type[Record], stack: list[Any]) -> tuple[Record, ...]:
    """Takes a list that the grammar is gathering from the front of the stack; empty where there is none."""
    if stack and isinstance(stack[0], lark.Tree) and isinstance(stack[0].children[0], kind):
        return tuple(stack.pop(0).children)
    return ()


def _is_token(value: Any, name: str) -> bool:
    return isinstance(value, lark.Token) and value.type == name


def _names(error: lark.exceptions.UnexpectedToken) -> Iterable[str]:
    return error.accepts or error.expected


def _word(text: str, start: int, end: int) -> str:
    """The word or the single character at an offset."""
    stop = start
    while stop < min(end, start + 80) and (text[stop].isalnum() or text[stop] in "_.-%"):
        stop += 1
    return text[start : max(stop, min(start + 1, end))]


def _describe(text: str, at: int, found: str, expected: Iterable[str]) -> tuple[str, str]:
    """Message and help for a token that cannot stand where it stands."""
    shown = found if found.isprintable() else found.encode("unicode_escape").decode("ascii")
    message = f"expected {expected_words(expected)}, found `{shown[:60]}`"
    return message, _fix(text, at, found)


def _fix(text: str, at: int, found: str) -> str:
    """What to do about the mistakes that people make most."""
    before, after = text[max(0, at - 40) : at], text[at + len(found) : at + len(found) + 4]
    if found == "=" and before.endswith((" ", "\t")):
        return "an attribute's name stands right before its `=`, with no blank between"
    if found.endswith("=") or (after.startswith("=") and not found.startswith("%")):
        return "put blanks around `=` after an instruction's name, or a `%` before the name"
    return ""
