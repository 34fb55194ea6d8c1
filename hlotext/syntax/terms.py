"""Terms through Lark: a shape, a sharding, a window, once for each distinct text."""

from __future__ import annotations

import functools
from typing import Any

import lark

from hlotext.syntax import grammar
from hlotext.syntax.builders import Builder
from hlotext.syntax.errors import TermError

STARTS = ("shape", "layout", "int_list", "literal", "literal_with_shape")
"""Rules that can be read on their own."""


@functools.cache
def parser() -> lark.Lark:
    """The LALR parser of the whole grammar; the builder runs while it parses."""
    return lark.Lark(
        grammar.text(), parser="lalr", lexer="contextual", start=list(STARTS), transformer=Builder(), maybe_placeholders=True
    )


@functools.lru_cache(maxsize=1 << 16)
def read(rule: str, text: str) -> Any:
    """The value of a text read by one rule of the grammar. Raises TermError with the offset of what is wrong."""
    try:
        return parser().parse(text, start=rule)
    except lark.exceptions.VisitError as error:
        raise error.orig_exc from None
    except lark.exceptions.UnexpectedInput as error:
        position = error.pos_in_stream
        raise TermError(f"cannot read this {rule}", len(text) if position is None or position < 0 else position) from None
