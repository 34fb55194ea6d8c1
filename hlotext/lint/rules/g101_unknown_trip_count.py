"""G101: a loop of which the text does not tell how often it runs."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.findings.errors import Severity
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class UnknownTripCount(Rule):
    code = "G101"
    name = "unknown-trip-count"
    title = "a loop of which the text does not tell how often it runs"
    severity = Severity.NOTE
    is_default = False
    needs_optimized = True  # before, bounds may still be arguments of a call that is inlined later

    def check_module(self, context: Context) -> Iterator[Report]:
        for loop, trips in context.graph.loops():
            if trips is None:
                yield Report(
                    loop,
                    "the text does not tell how often this loop runs, so nothing in it can be estimated",
                    "give lax.scan or lax.fori_loop constant bounds where that is possible",
                )
