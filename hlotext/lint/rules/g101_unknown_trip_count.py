"""G101: a loop with an unknown trip count."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.findings.errors import Severity
from hlotext.lint.rule import Context, Report, Rule


class UnknownTripCount(Rule):
    code = "G101"
    name = "unknown-trip-count"
    title = "a loop with an unknown trip count"
    severity = Severity.NOTE
    is_default = False
    needs_optimized = True  # before, bounds may still be arguments of a call that is inlined later

    def check_module(self, context: Context) -> Iterator[Report]:
        for loop, trips in context.graph.loops():
            if trips is None:  # its trip count is known
                yield Report(
                    loop,
                    "the trip count of this loop is unknown, so nothing in it can be estimated",
                    "give lax.scan or lax.fori_loop constant bounds where possible",
                )
