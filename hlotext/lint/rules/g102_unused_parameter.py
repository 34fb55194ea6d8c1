"""G102: an argument that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.lint.helpers import size_of
from hlotext.lint.rule import Context, Report, Rule


class UnusedParameter(Rule):
    code = "G102"
    name = "unused-parameter"
    title = "an unused argument"
    waste = "held"
    min_bytes: ClassVar[int] = 1
    """Bytes of one argument from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        entry = context.module.entry
        if entry.is_sugared:
            return
        sizes = {p: size_of(p.shape) for p in entry.parameters if not p.users and not p.is_root}
        unread = [parameter for parameter, size in sizes.items() if size >= self.min_bytes]
        if not unread:  # every argument is read
            return
        first, total = unread[0], sum(sizes[p] for p in unread)
        others = len(unread) - 1
        what = f"argument {first.parameter_number} ({byte_text(sizes[first])})"
        yield Report(
            first,
            f"{what} and {pluralize(others, 'other')} are never read, but a total of {byte_text(total)} is passed in and "
            "kept in memory"
            if others
            else f"{what} is never read, but is passed in and kept in memory",
            "leave it out of the function's arguments, or let jax.jit drop it (keep_unused=False)",
            total,
            f"parameter {first.shape}",
            is_held=True,
            cause="unread",
        )
