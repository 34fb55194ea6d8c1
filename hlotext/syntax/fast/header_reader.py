"""The fast reader's part for the module's header line and the stack-frame tables."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from hlotext.findings.errors import TermError
from hlotext.ir.caches import lazy_regex
from hlotext.ir.nodes.module import Module
from hlotext.syntax import linking, reading
from hlotext.syntax.fast import shortcuts
from hlotext.syntax.language import grammar, patterns
from hlotext.syntax.language.boundaries import next_module
from hlotext.syntax.language.grammar import header_attribute_rule
from hlotext.syntax.linking.linker import Linker
from hlotext.syntax.source.reporter import Reporter

_COMPUTATION = lazy_regex(
    rf"^(?:ENTRY\b|%?{patterns.IDENTIFIER} (?:\{{|\((?=[^\r\n]*\{{)))", re.MULTILINE | re.ASCII
)
_BEFORE_TABLES = tuple(f"{first}{second}FileNames" for first in ("\n", "\r\n") for second in ("\n", "\r\n"))
_TRIES = 4
"""Lines that look like a computation's, up to which the header is tried; they may stand inside a quoted module."""


Recover: TypeAlias = Callable[[Module, Reporter, int, int, int], int]
"""Takes over what can be read of a broken header between two offsets; also given the place of its error.

Gives the offset behind the header."""


def read_head(module: Module, reporter: Reporter, start: int, recover: Recover | None = None) -> int:
    """Reads the header and the tables into a module, and returns the offset after them.

    `recover` reads what the grammar cannot parse; None reports an error instead.
    """
    end = _fast_header(module, reporter.source.text, start)
    if end is not None:
        after = _fast_tables(module, reporter.source.text, end)
        if after is not None:
            return after
    return _by_grammar(module, reporter, start, recover)


@functools.cache
def _header() -> re.Pattern[str]:
    """A module's header line. Groups: name, what follows it."""
    name = grammar.terminals()["IDENTIFIER"]
    return re.compile(rf"HloModule (?:%(?={name})|(?={patterns.bare_name()}))({name})([^\r\n]*)")


def _fast_header(module: Module, text: str, start: int) -> int | None:
    """A header on one line; None when the grammar must look at it."""
    match = _header().match(text, start)
    if match is None:
        return None
    tail = match[2]
    pieces = patterns.header_attribute().findall(tail) if tail else []
    if sum(map(len, pieces)) + 2 * len(pieces) != len(tail):
        return None
    attributes: dict[str, Any] = {}
    for piece in pieces:
        name, _, value = piece.partition("=")
        rule = header_attribute_rule(name)
        if rule is None or name in attributes:
            return None
        try:
            attributes[name] = shortcuts.read(rule, value)
        except TermError:
            return None
    module._name = match[1]
    module._attributes = attributes
    return match.end()


def _fast_tables(module: Module, text: str, start: int) -> int | None:
    """The four tables in the form in which XLA writes them; the offset of `start` when there are none; None: grammar."""
    if not text.startswith(_BEFORE_TABLES, start):
        following = patterns.blank().match(text, start)
        begin = following.end() if following is not None else start
        return start if begin >= len(text) or _COMPUTATION().match(text, begin) else None
    from hlotext.syntax.fast.shortcuts.tables import read_tables  # small texts have no tables

    found = read_tables(text, start)
    if found is None:
        return None
    module._stack_frames, end = found
    following = patterns.blank().match(text, end)
    begin = end if following is None else following.end()
    if begin < len(text) and not _COMPUTATION().match(text, begin):
        return None  # another table, or a row that is cut off
    # The last row's line end belongs to what follows, as the grammar sees it.
    while text[end - 1] in "\r\n":
        end -= 1
    module._tables_start = start
    return end


def _by_grammar(module: Module, reporter: Reporter, start: int, recover: Recover | None) -> int:
    """The grammar reads the header and the tables."""
    text = reporter.source.text
    module._attributes = {}  # the fast reader may have read the header, and then met something behind it
    linker = Linker(module, reporter)
    end = next_module(text, start)
    for match in itertools.islice(_COMPUTATION().finditer(text, start, end), _TRIES):
        try:
            record = reading.reference.parse(reporter.source, "module_head", start, match.start())
        except reading.reference.ParseError as failure:
            if failure.is_at_end:
                continue  # a line inside a quoted recovery module may look like a computation
            break
        linking.head_linker.link_head(module, reporter, record)
        return int(record.header_end)
    try:
        head = reading.reference.parse(reporter.source, "module", start, end)
    except reading.reference.ParseError as failure:
        read = failure.read
        if read.head is None and recover is not None:
            failure.report(reporter)
            return recover(module, reporter, start, end, failure.finding().start)
        if read.head is None or not (read.computations or read.unfinished or reporter.tolerant):
            linker.add_partial(read)
            failure.report(reporter)
            return end
        head = read.head  # the error stands further down, where it will be met again
    linking.head_linker.link_head(module, reporter, head)
    return int(head.header_end)
