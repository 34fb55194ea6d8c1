"""Colours that people tell apart who see them otherwise, on light and on dark ground, and in print by their lightness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from hlotext.analysis.scopes import TOP

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a90a", "#7a5ea8")
"""Okabe and Ito's, its yellow darker so that it shows on white, and a violet in place of black."""
TOP_LEVEL, OTHERS = "#56606f", "#8d95a0"
"""The two colours behind `PALETTE`: of operations in no scope, the same on every page, and of scopes without their own."""
LANE_COLOURS: Mapping[str, str] = {
    "compute": "#5b7399",
    "memory": "#a3b5d1",
    "loop or call": "#80808c",
    "core waits": "#7d1a15",
    "fully exposed": "#c8372e",
    "partly exposed": "#e08a7d",
    "hidden": "#9fc2b2",
}
"""Colours of spans by what bounds or hides them, none of which is a scope's; what is waited for is red."""
_SMALL = 0.04
"""Share below which a scope has no colour of its own."""


def scope_colours(charts: Iterable[Mapping[str, float]]) -> dict[str, int]:
    """The numbers of the colours, places in `PALETTE`, of the scopes of a page: one for each scope in all of its charts.

    Each chart counts as much as any other. What is small counts for the scope around it, whose colour it has
    (`colour_number`).
    """
    shares: dict[str, float] = defaultdict(float)
    count = 0
    for weights in charts:
        total = sum(weights.values())
        count += total > 0
        for scope, weight in weights.items():
            if scope != TOP:
                shares[scope] += weight / total if total else 0.0
    # From the inside out, so that what a scope is given is there before it is looked at.
    for scope in sorted(shares, key=lambda scope: -scope.count("/")):
        around = scope.rpartition("/")[0]
        if around and shares[scope] < _SMALL * count:
            shares[around] += shares.pop(scope)
    most = sorted(shares, key=lambda scope: (-shares[scope], scope))
    return {TOP: len(PALETTE)} | {
        scope: number for number, scope in enumerate(most[: len(PALETTE)]) if shares[scope]
    }


def colour_number(scope: str, colours: Mapping[str, int]) -> int:
    """The number of the colour of a scope: its own or that of the nearest one around it; of all others the palette's end."""
    while scope:
        if scope in colours:
            return colours[scope]
        scope = scope.rpartition("/")[0]
    return len(PALETTE) + 1
