"""Terms through Lark: a shape, a sharding, a window, once for each distinct text.

Lark and the builders are imported, and the parser's tables loaded, when the grammar is first needed: most lines of most
dumps are read without it.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import TYPE_CHECKING, Any, cast

from hlotext.findings.errors import TermError
from hlotext.ir.caches import text_cache
from hlotext.ir.tables.attributes import ATTRIBUTES
from hlotext.syntax.language import grammar
from hlotext.syntax.language.grammar import attribute_rules, header_attribute_rules
from hlotext.syntax.reading import tables
from hlotext.syntax.reading.builders import Builder
from hlotext.syntax.reading.builders.instruction import TokenTracker

if TYPE_CHECKING:
    import lark

    from hlotext.syntax.reading.valid_prefix import ValidPrefix

STARTS = (
    "modules", "module", "module_head", "headerless_module", "instruction", "single_instruction", "body_rest",
    "attribute", "header_attribute", "shape", "layout", "literal",
    *sorted({*attribute_rules().values(), *header_attribute_rules().values()} - {"shape"}),
)  # fmt: skip
"""Rules that can be read on their own."""

LINES = frozenset({"instruction", "body_rest"})
"""Those that stand in a body."""

_lock = threading.RLock()
"""The builder learns from the token tracker where it is, so one text is read at a time."""
_held_locks: list[Any] = []


def _before_fork() -> None:
    """Waits until no other thread reads: the child would wait for ever for it."""
    _lock.acquire()
    _held_locks.append(_lock)


def _after_fork() -> None:
    while _held_locks:  # none, where another thread imported this file during the fork
        _held_locks.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


@functools.cache
def parser() -> lark.Lark:
    """The LALR parser of the whole grammar; the builder runs while it parses."""
    builder = Builder()
    builder.tracker = TokenTracker()
    return tables.parser(
        grammar.text(),
        STARTS,
        transformer=builder,
        postlex=builder.tracker,
        _plugins={"LexerThread": _without_lines()},
    )


def _without_lines() -> type[lark.lexer.LexerThread]:
    """Lexer thread that reads a piece of a text without counting the lines before it, which would be quadratic in total."""
    from lark.lexer import Lexer, LexerState, LexerThread, LineCounter
    from lark.utils import TextSlice

    class Thread(LexerThread):
        @classmethod
        def from_text(cls, lexer: Lexer, text_or_slice: Any) -> Thread:
            piece = TextSlice.cast_from(text_or_slice)
            counter: Any = LineCounter("\n")  # type: ignore[no-untyped-call]
            counter.char_pos = piece.start
            return cls(lexer, LexerState(piece, counter))

    return Thread


@functools.cache
def token_tracker() -> TokenTracker:
    """Tracker of the parser's position."""
    return cast(TokenTracker, parser().options.postlex)


def enter(rule: str, begun: ValidPrefix | None = None) -> None:
    """Prepares the token tracker for a rule; rules in `LINES` begin inside a computation's braces."""
    tracker = token_tracker()
    tracker.opened = int(rule in LINES)
    tracker.behind = 0
    if begun is not None:
        tracker.opened += begun.brackets
        tracker.behind = begun.position


def parse_slice(rule: str, text: str, start: int, end: int) -> Any:
    """Parses a slice of text with a rule. Positions are offsets in the whole text.

    Raises TermError for an invalid value, and Lark's UnexpectedInput for a syntax error.
    """
    import lark

    with _lock:
        try:
            enter(rule)
            return parser().parse(lark.TextSlice(text, start, end), start=rule)
        except lark.exceptions.VisitError as error:
            raise error.orig_exc from None


def read(rule: str, text: str) -> Any:
    """Parses a text with a grammar rule. Raises TermError with the offset of the error."""
    value = _read(rule, text)
    if type(value) is TermError:
        raise TermError(value.message, value.position, value.help, value.code)
    return value


@functools.cache
def _words() -> dict[str, str]:
    """Types of attribute values in words, by the grammar's rules; not those that are described by a class."""
    return {
        kind.rule: kind.words for kind in (row.kind for row in ATTRIBUTES.values()) if kind.words.islower()
    }


@text_cache(1 << 16)
def _read(rule: str, text: str) -> Any:
    """The same; what is wrong is given, and remembered too: broken lines are read more than once."""
    import lark

    try:
        return parse_slice(rule, text, 0, len(text))
    except TermError as error:
        return TermError(error.message, error.position, error.help, error.code)
    except lark.exceptions.UnexpectedInput as error:
        position: int | None = error.pos_in_stream
        end = len(text) if position is None or position < 0 else position
        return TermError(f"cannot read this {_words().get(rule, rule.replace('_', ' '))}", end)
