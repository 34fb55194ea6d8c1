"""Results of a module that are new values of its arguments, also of arrays that are taken apart and joined again."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import updates as of_text
from hlotext.analysis.updates import Update as Update
from hlotext.analysis.updates import tree_of as tree_of
from hlotext.lint.rule import Context
from hlotext.lint.taken_apart import taken_apart


def updates(context: Context) -> Iterator[Update]:
    """The results that are new values of arguments, as `hlotext.analysis.updates` finds them."""
    return of_text.updates(context.module, {one.joined: one.whole for one in taken_apart(context)})
