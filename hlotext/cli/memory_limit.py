"""Limits on peak memory for CI: the condition of `hlotext memory --fail-on`."""

from __future__ import annotations

import re

import attrs
import click

from hlotext.analysis import byte_text
from hlotext.diff.thresholds import NUMBER, UNIT, amount

_CONDITION = re.compile(rf"\s*peak\s*(>=?)\s*({NUMBER})\s*({UNIT})?\s*")

_LEAST_BARE = 1024
"""Bytes from which on a limit may be written without a unit: fewer are likely meant in another one."""


@attrs.frozen
class PeakLimit:
    """Limit of a module's peak memory in bytes, above which the check fails."""

    bytes: float
    is_included: bool
    """True for `>=`: the limit itself fails too."""

    def fails(self, peak: int) -> bool:
        """True if a peak, in bytes, violates the limit."""
        return peak >= self.bytes if self.is_included else peak > self.bytes

    def told(self, label: str, peak: int) -> str:
        """Returns the message about a module that violates the limit."""
        verb = "reaches" if self.is_included else "exceeds"
        size, limit = f"{byte_text(peak)} ({peak:,} bytes)", byte_text(self.bytes)
        return f"{label}: the peak of {size} {verb} the limit of {limit}"


def peak_limit(condition: str) -> PeakLimit:
    """Parses `peak>8GiB`, `peak>=500MB` or `peak>1000000`; units are those of `hlotext diff --fail-on`.

    Raises UsageError.
    """
    match = _CONDITION.fullmatch(condition)
    size = amount(match[2], match[3] or "") if match is not None else None
    if match is None or size is None:
        quote = "; > needs quotes: --fail-on 'peak>8GiB'" if condition.strip() == "peak" else ""
        raise click.UsageError(f"--fail-on takes peak>8GiB or peak>=500MB, not {condition!r}{quote}")
    if not match[3] and 0 < size < _LEAST_BARE:
        raise click.UsageError(
            f"--fail-on: {match[2]} has no unit; did you mean `peak{match[1]}{match[2]}GiB`?"
        )
    return PeakLimit(size, match[1] == ">=")
