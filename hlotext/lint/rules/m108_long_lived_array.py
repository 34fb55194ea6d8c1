"""M108: the peak of memory is made by one array that lives long."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.lint.held import at_peak, largest_written, least_held
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class LongLivedArray(Rule):
    code = "M108"
    name = "long-lived-array"
    title = "one array that lives long makes the peak of memory"
    needs_schedule = True
    yields_to = frozenset({"L105", "M109", "M110"})

    min_peak: int = 4 << 30
    """Bytes of the peak up to which nobody is short of memory."""
    min_percent: int = 25
    """Percent of the peak that the array makes, from which on it is worth a finding."""
    min_span: int = 50
    """Percent of the schedule through which it is held, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        largest = largest_written(context)
        if not self._is_much(largest, max(self.min_peak, least_held(context) + largest)):
            return
        peak = at_peak(context)
        if peak is None or not peak.held or peak.bytes < self.min_peak:
            return
        array = peak.held[0]
        through = round(100 * (array.span[1] - array.span[0] + 1) / peak.moments)
        if self._is_much(array.bytes, peak.bytes) and through >= self.min_span:
            yield Report(
                array.filler,
                f"an array of {byte_text(array.bytes)}, {100 * array.bytes / peak.bytes:.0f} % of the peak of "
                f"{byte_text(peak.bytes)}, is held through {through} % of the schedule",
                "use it up sooner, keep it in a narrower type, go over it in blocks, or compute it again (jax.checkpoint)",
                array.bytes,
                "peak",
                is_held=True,
            )

    def _is_much(self, size: int, peak: int) -> bool:
        return 100 * size >= self.min_percent * peak
