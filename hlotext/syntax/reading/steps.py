"""The parser's loop for single op lines: Lark's tables and terminals, without what Lark does for messages of its own.

Most broken lines are refused after a few tokens. Lark then counts lines, tries the whole alphabet and makes exceptions that
know everything, which takes three times as long as finding where the line is wrong. Whole computations are Lark's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import lark
from lark.parsers.lalr_interactive_parser import InteractiveParser
from lark.parsers.lalr_parser_state import ParseConf, ParserState

from hlotext.syntax.reading import terms

if TYPE_CHECKING:
    from hlotext.syntax.reading.builders.instruction import TokenTracker
    from hlotext.syntax.reading.valid_prefix import ValidPrefix

_END = "$END"


def read(rule: str, text: str, start: int, end: int, begun: ValidPrefix | None = None) -> Any:
    """Parses a slice of text with one of the rules in `terms.LINES`; returns a `Refused` for a syntax error.

    `begun` is a prefix that is already parsed. Offsets refer to the whole text. Raises TermError for an invalid value.
    """
    if begun is not None and begun.position > end:
        begun = None
    with terms._lock:
        terms.enter(rule, begun)
        return _steps().read(rule, text, start, end, terms.token_tracker(), begun)


@functools.cache
def _steps() -> Steps:
    return Steps(terms.parser())


class Refused:
    """A token that the parser rejected, or the end of the text."""

    def __init__(self, text: str, position: int, parser: Any, lexers: Any, *, is_end: bool = False) -> None:
        self.parser = parser
        """The parser before it, as Lark gives it to those who handle its errors."""
        self.position = position
        self.is_end = is_end
        self._text = text
        self._state = parser.parser_state.position
        self._lexers = lexers
        """Those of all states, where no terminal of the parser's state begins like the word; else None."""

    @property
    def is_by_lexer(self) -> bool:
        """True if no terminal that the parser accepts begins there."""
        return self._lexers is not None

    def is_terminal(self) -> bool:
        """True if the word is a terminal that is valid elsewhere."""
        if self._lexers is None:
            return True
        whole = lark.TextSlice(self._text, 0, len(self._text))
        return self._lexers.root_lexer.match(whole, self.position) is not None

    def expected(self) -> frozenset[str]:
        """Returns the terminals that the parser accepts in this state."""
        if self._lexers is None:
            return frozenset(filter(str.isupper, self.parser.parser_state.parse_conf.states[self._state]))
        lexer = self._lexers.lexers[self._state]
        return frozenset(lexer.scanner.allowed_types - lexer.ignore_types or {"<END-OF-FILE>"})


class Steps:
    """A parser's tables in a form that is fast to traverse."""

    def __init__(self, parser: Any) -> None:
        self._lexers: Any = parser.parser.lexer.lexer
        self._table = parser.parser.parser.parser.parse_table
        self._callbacks = parser.parser.parser.parser.callbacks
        self._ignored = self._lexers.root_lexer.ignore_types
        self._scanners: dict[int, tuple[list[Callable[..., Any]], dict[str, Callable[..., Any]]]] = {}
        self._confs: dict[str, Any] = {}

    def _scanner(self, state: int) -> tuple[list[Callable[..., Any]], dict[str, Callable[..., Any]]]:
        """Functions that find the next token in a state, and callbacks that may change its type."""
        lexer = self._lexers.lexers[state]
        found = [expression.match for expression in lexer.scanner._mres], lexer.callback
        self._scanners[state] = found
        return found

    def _conf(self, rule: str) -> Any:
        self._confs[rule] = ParseConf(self._table, self._callbacks, rule)
        return self._confs[rule]

    def read(
        self, rule: str, text: str, start: int, end: int, tracker: TokenTracker, begun: ValidPrefix | None
    ) -> Any:
        """Parses a slice of text with a rule; returns a `Refused` for a syntax error.

        `begun` is a prefix that is already parsed; None if there is none. The tracker is called as by Lark. Exceptions
        of the builder propagate.
        """
        conf = self._confs.get(rule) or self._conf(rule)
        states, callbacks, ignored, scanners = conf.states, self._callbacks, self._ignored, self._scanners
        position, stack = start, [conf.start_state]
        values: list[Any] = []
        if begun is not None:
            position = begun.position
            begun.put_on(states, stack, values)
        behind, depth, has_read = tracker.behind, tracker.opened, begun is not None
        while True:
            matchers, changes = scanners.get(stack[-1]) or self._scanner(stack[-1])
            token: Any = None
            while position < end:
                found = None
                for match in matchers:
                    found = match(text, position, end)
                    if found is not None:
                        break
                if found is None:
                    if has_read:
                        tracker.end = behind
                    return self._refused(text, position, conf, stack, values, lexers=self._lexers)
                kind, place, position = found.lastgroup, position, found.end()
                if kind in ignored:
                    continue
                token = lark.Token(kind, found[0], place, None, None, None, None, position)
                if kind in changes:
                    token = changes[kind](token)
                    kind = token.type
                break
            tracker.end = behind
            if token is None:
                kind, place, token = _END, end, lark.Token(_END, "", end)
            else:
                behind, has_read = position, True
                depth = tracker.counted(token, depth)
            while True:
                target = states[stack[-1]].get(kind)
                if target is None:
                    return self._refused(text, place, conf, stack, values, is_end=kind == _END)
                target = target[1]
                if type(target) is int:
                    stack.append(target)
                    values.append(callbacks[kind](token) if kind in callbacks else token)
                    break
                # A rule ends before the token.
                size = len(target.expansion)
                children = []
                if size:
                    children = values[-size:]
                    del stack[-size:], values[-size:]
                values.append(callbacks[target](children))
                stack.append(states[stack[-1]][target.origin.name][1])
                if kind == _END and stack[-1] == conf.end_state:
                    return values[-1]

    @staticmethod
    def _refused(
        text: str,
        position: int,
        conf: Any,
        stack: list[int],
        values: list[Any],
        *,
        lexers: Any = None,
        is_end: bool = False,
    ) -> Refused:
        state: Any = ParserState(conf, None, stack, values)  # type: ignore[arg-type]
        parser = InteractiveParser(None, state, None)  # type: ignore[arg-type]
        return Refused(text, position, parser, lexers, is_end=is_end)
