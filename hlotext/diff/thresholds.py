"""Bounds on how much worse a module may get: `collectives+0,bytes+1%`."""

from __future__ import annotations

import re

import attrs

from hlotext.analysis.sizes import byte_text
from hlotext.diff.totals import TotalChange, Totals
from hlotext.ir.spelling import did_you_mean

NUMBER, UNIT = r"[0-9][0-9_]*(?:\.[0-9]+)?", "[kKMGT]i?B?|B"
"""Patterns of the two parts of an amount: see `amount`."""
_RULE = re.compile(rf"(?P<name>[A-Za-z][\w\-]*?)\s*(?:\+\s*(?P<number>{NUMBER})\s*(?P<unit>%|{UNIT})?)?")
_UNITS = {
    "": 1,
    "B": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
"""Bytes of each unit, by its name without a final B."""


def amount(number: str, unit: str) -> float | None:
    """Parses a number such as `8_000` or `1.5` with a unit such as `GiB`, in bytes if there is a unit; None if it is
    unknown.
    """
    scale = _UNITS.get(unit.removesuffix("B") or "B")
    return float(number.replace("_", "")) * scale if scale is not None else None


class ThresholdError(ValueError):
    """Raised for a threshold that cannot be parsed, or names an unknown metric."""


@attrs.frozen
class Threshold:
    """Allowed increase of a metric."""

    name: str
    """Name of a metric in `Totals`, an opcode, or `changes`."""
    more: float
    is_percent: bool
    text: str
    """The threshold as written."""

    def __str__(self) -> str:
        return self.text


@attrs.frozen
class Violation:
    """A threshold that was exceeded, or that cannot be evaluated."""

    threshold: Threshold
    total: TotalChange
    """Both values of the metric."""

    @property
    def is_unknown(self) -> bool:
        """True if a value is missing, so that the threshold cannot be evaluated."""
        return self.total.difference is None

    def __str__(self) -> str:
        old, new = (
            ("unknown" if side is None else self._figure(side)) for side in (self.total.old, self.total.new)
        )
        verb = "cannot be checked" if self.is_unknown else "is exceeded"
        return f"{self.threshold} {verb}: {self.total.name} was {old}, is now {new}"

    def _figure(self, side: float) -> str:
        exact = f"{side:,.0f}"
        return f"{exact} ({byte_text(side)})" if self.total.unit == "bytes" else exact


def parse_thresholds(text: str) -> tuple[Threshold, ...]:
    """Parses comma-separated thresholds, each a metric and its allowed increase (default `+0`).

    Example: `collectives+0,bytes+1%,peak_memory+2MiB,all-gather+0,changes`. Raises ThresholdError if the text is
    invalid.
    """
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _RULE.fullmatch(part)
        if match is None:
            raise ThresholdError(
                f"{part!r} is not a bound; write NAME+NUMBER, as in bytes+1% or collectives+0"
            )
        unit = match["unit"] or ""
        more = amount(match["number"] or "0", unit.removesuffix("%"))
        if more is None:
            raise ThresholdError(f"{part!r}: {unit} is not a unit")
        found.append(Threshold(match["name"], more, unit == "%", part))
    if not found:
        raise ThresholdError("no bound given")
    return tuple(found)


def violations(thresholds: tuple[Threshold, ...], totals: Totals, changes: int) -> list[Violation]:
    """Returns the exceeded thresholds, including those whose metric is unknown on either side.

    Args:
        thresholds: The thresholds, from `parse_thresholds`.
        totals: Metrics of both modules.
        changes: Number of changes, the value of the metric `changes`.

    Raises:
        ThresholdError: A threshold names an unknown metric.
    """
    found = []
    for threshold in thresholds:
        if threshold.name == "changes":
            total = TotalChange("changes", "", 0, changes)
        else:
            try:
                total = totals[threshold.name]
            except KeyError:
                names = (*totals.NAMES, "changes")
                meant = did_you_mean(threshold.name, names) or f"expected {', '.join(names)} or an opcode"
                raise ThresholdError(f"no metric is named {threshold.name!r}; {meant}") from None
        if total.old is None or total.new is None:
            found.append(Violation(threshold, total))
            continue
        more = total.old * threshold.more / 100 if threshold.is_percent else threshold.more
        if total.new - total.old > more:
            found.append(Violation(threshold, total))
    return found
