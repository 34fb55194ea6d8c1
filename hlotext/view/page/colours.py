"""Colours that people tell apart who see them otherwise, on light and on dark ground, and in print by their lightness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from hlotext.analysis.scopes import TOP

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a90a", "#7a5ea8")
"""Okabe and Ito's, its yellow darker so that it shows on white, and a violet in place of black."""
TOP_LEVEL, OTHERS = "#56606f", "#8d95a0"
"""The two colours behind `PALETTE`: of operations in no scope, the same on every page, and of scopes without their own."""
KIND_COLOURS: Mapping[str, tuple[str, str]] = {
    "compute-bound": ("#2c5fa8", "#6f9fe0"),
    "memory-bound": ("#c98a1b", "#e0b15a"),
    "copies": ("#7b52b5", "#b195e6"),
    "launch overhead": ("#aab2be", "#7f8897"),
    "host link": ("#4d7c7a", "#7fb3b0"),
    "unknown cost": ("#5d6470", "#c3c9d3"),
    "stalled on collectives": ("#8f1d17", "#e2574c"),
    "stalled on copies": ("#4a2d80", "#8a63d2"),
    "collective, fully exposed": ("#c8372e", "#e8695f"),
    "collective, partly exposed": ("#e08a7d", "#b8675c"),
    "collective, hidden": ("#8fb8a5", "#5f8f7b"),
    "copy, fully exposed": ("#7b52b5", "#a583e0"),
    "copy, partly exposed": ("#b39ad6", "#80699f"),
    "copy, hidden": ("#bcc6f0", "#525f9c"),
}
"""Colours, on light and on dark ground, of time by what takes or hides it; what is waited for is red, copies are violet."""
MEMORY_COLOURS: Mapping[str, tuple[str, str]] = {
    "arguments": ("#8d95a0", "#79828f"),
    "results": ("#5b6471", "#aab2be"),
    "constants": ("#c9a227", "#d9b84a"),
    "temporaries": ("#0072b2", "#56b4e9"),
    "allocated, free at the peak": ("#d9b3a0", "#7a5546"),
}
"""Colours, likewise, of what a memory is needed for; what is left has none."""
_SMALL = 0.04
"""Share below which a scope has no colour of its own."""


def scope_colours(charts: Iterable[Mapping[str, float]]) -> dict[str, int]:
    """Returns the color number, an index into `PALETTE`, of the scopes of a page; a scope has the same color in all
    charts.

    Each chart has the same weight. A small scope counts for the scope around it and shares its color (see
    `colour_number`).
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
    """Returns the color number of a scope: its own, that of the nearest enclosing scope, or else the number after the
    palette.
    """
    while scope:
        if scope in colours:
            return colours[scope]
        scope = scope.rpartition("/")[0]
    return len(PALETTE) + 1
