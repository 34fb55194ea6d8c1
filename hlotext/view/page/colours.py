"""Colours that people tell apart who see them otherwise, on light and on dark ground, and in print by their lightness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a90a", "#7a5ea8")
"""Okabe and Ito's, its yellow darker so that it shows on white, and a violet in place of black."""
OTHERS = "#8d95a0"
OTHERS_LABEL = "(other scopes)"
LANE_COLOURS: Mapping[str, str] = {
    "compute": PALETTE[0],
    "memory": PALETTE[1],
    "hidden": PALETTE[2],
    "partly waited for": PALETTE[3],
    "all waited for": PALETTE[5],
    "waiting": PALETTE[6],
    "loop or call": PALETTE[7],
}
"""Colours of spans by what bounds or hides them; others are grey."""


def scope_colours(weights: Iterable[tuple[str, float]]) -> dict[str, int]:
    """The number of the colour of each of the scopes that weigh most; the last entry stands for all others, if there are any.

    A number is a place in `PALETTE`, of the last entry its end.
    """
    sums: dict[str, float] = {}
    for scope, weight in weights:
        sums[scope] = sums.get(scope, 0) + weight
    most = sorted(sums, key=lambda scope: (-sums[scope], scope))
    found = {scope: number for number, scope in enumerate(most[: len(PALETTE)])}
    if len(most) > len(PALETTE):
        found[OTHERS_LABEL] = len(PALETTE)
    return found
