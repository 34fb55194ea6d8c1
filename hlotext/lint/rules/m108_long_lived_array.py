"""Arrays of one function that make much of the peak of memory."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text, causing_frame
from hlotext.analysis.quantities import counted
from hlotext.findings.errors import Severity
from hlotext.lint.held import Held, at_peak, largest_written, least_held
from hlotext.lint.rule import Context, Report, Rule

_MUCH = 0.3
"""Part of the peak that one function's arrays make, from which on it is worth knowing."""


@attrs.frozen
class LongLivedArray(Rule):
    code = "M108"
    name = "long-lived-array"
    title = "arrays of one function make much of the peak of memory"
    waste = "held"
    severity = Severity.NOTE
    is_proved = False  # activations are meant
    needs_schedule = True
    yields_to = frozenset({"M109", "M110"})

    def check_module(self, context: Context) -> Iterator[Report]:
        largest = largest_written(context)
        if not largest or largest < _MUCH * (least_held(context) + largest) / _MOST_ARRAYS:
            return
        peak = at_peak(context)
        if peak is None:
            return
        groups: dict[tuple[str, str], list[Held]] = {}
        for held in peak.held:
            frame = causing_frame(held.filler) or causing_frame(held.writer)
            groups.setdefault((frame.file, frame.function) if frame is not None else ("", ""), []).append(
                held
            )
        for (_, function), group in groups.items():
            total = sum(held.bytes for held in group)
            if total < _MUCH * peak.bytes:
                continue
            first = max(group, key=lambda held: held.bytes)
            yield Report(
                first.filler,
                f"{counted(len(group), 'array')} that {function or 'the program'} makes "
                f"{'holds' if len(group) == 1 else 'hold'} {byte_text(total)} when memory is fullest",
                "use them up sooner, keep them in a narrower type, go over them in blocks, or compute them again "
                "(jax.checkpoint)",
                total,
                "peak",
                is_held=True,
                cause=f"peak {function}",
            )


_MOST_ARRAYS = 64
"""Arrays that one function may hold at once; of modules whose largest is smaller than that memory is not assigned."""
