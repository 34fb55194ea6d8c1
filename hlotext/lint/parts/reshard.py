"""A collective that the partitioner inserted to reshard an array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hlotext.analysis import byte_text
from hlotext.lint.exchange_causes import ONE_SHARDING, causes_of, is_certain_reshard, remedy
from hlotext.lint.helpers import COLLECTIVE_KINDS, senders, times
from hlotext.lint.rule import Context, Report, Rule

if TYPE_CHECKING:
    from hlotext.dumps.collectives import Reason


class Reshard(Rule):
    needs_communication = True
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        if context.compilation is None:  # without the dump folder, no cause of resharding is certain
            return
        waits = [
            context.prices.seconds(one.start)
            for one in context.communications
            if one.kind in COLLECTIVE_KINDS and one.sent_bytes
        ]
        # The texts around partitioning are read only where what is sent is some of the step.
        if (
            not waits or sum(waits) < _LEAST * context.prices.step
        ):  # resharding sends nothing, or its share of the step is too small
            return
        for cause in causes_of(context):
            if not is_certain_reshard(cause):  # it does more than reshard a value, or its cause is uncertain
                continue
            one = cause.communication
            if one.kind not in COLLECTIVE_KINDS or not one.sent_bytes:
                continue
            runs = context.runs(one.start)
            sent = one.sent_bytes * runs
            part = _spared_part(cause.reasons, sent)
            yield Report(
                one.start,
                f"{one.kind} reshards an array, {senders(one)} {byte_text(one.sent_bytes)}{times(runs)}, {cause.why}",
                remedy(cause.reasons) or ONE_SHARDING,
                round(sent * part),
                seconds=context.prices.spared(one.start, part)
                if part < 1
                else context.prices.seconds(one.start),
                is_proved=bool(cause.suggestions),
            )


_LEAST = 0.002
"""Share of the step that all that is sent must take."""


def _spared_part(reasons: Sequence[Reason], sent: int) -> float:
    """The part of what a collective sends that the best suggestion spares in all, where the final HLO tells it; else
    all.
    """
    totals = [one.bytes_total for reason in reasons for one in reason.suggestions]
    known = [total for total in totals if total is not None]
    if not known or len(known) < len(totals):
        return 1.0
    return max(0.0, min(1.0, -min(known) / sent))
