"""Names that can be read again."""

from __future__ import annotations

from hlotext.edit import values
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.naming import sanitized


def checked(name: object, what: str) -> str:
    """Returns a name without `%`. Raises EditError if the grammar does not parse it as a name."""
    if not isinstance(name, str):
        raise EditError(f"the name of {_article(what)} must be a string, not {values.shown(name)}")
    name = name.removeprefix("%")
    problem = values.name_problem(name)
    if problem:
        raise EditError(
            f"{values.shown(name)} cannot name {_article(what)}: {problem}", f"use {sanitized(name)!r}"
            if not values.name_problem(sanitized(name)) else "",
        )  # fmt: skip
    return name


def _article(what: str) -> str:
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"
