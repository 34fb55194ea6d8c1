"""Arrays of one function that make much of the peak of memory."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.analysis.quantities import counted
from hlotext.findings.errors import Severity
from hlotext.lint.held import Held, at_peak, function_of, least_held, most_written
from hlotext.lint.rule import Context, Report, Rule

_MUCH = 0.3
"""Part of the peak that one function's arrays make, from which on it is worth knowing."""


@attrs.frozen
class LongLivedArray(Rule):
    severity = Severity.NOTE
    is_proved = False  # activations are meant
    needs_schedule = True

    def check_module(self, context: Context) -> Iterator[Report]:
        # What a function may hold at the most, beside the least that is held with it: if little, memory is not asked for.
        most = most_written(context)
        if not most or most < _MUCH * (least_held(context) + most):
            return
        peak = at_peak(context)
        if peak is None:
            return
        groups: dict[tuple[str, str], list[Held]] = {}
        for held in peak.held:
            function = function_of(held.filler)
            groups.setdefault(function if any(function) else function_of(held.writer), []).append(held)
        for (_, name), group in groups.items():
            total = sum(held.bytes for held in group)
            if total < _MUCH * peak.bytes:
                continue
            first = max(group, key=lambda held: held.bytes)
            yield Report(
                first.filler,
                f"{counted(len(group), 'array')} that {name or 'the program'} makes "
                f"{'holds' if len(group) == 1 else 'hold'} {byte_text(total)} when memory is fullest",
                "use them up sooner, keep them in a narrower type, go over them in blocks, or compute them again "
                "(jax.checkpoint)",
                total,
                "peak",
                is_held=True,
                cause=f"peak {name}",
            )
