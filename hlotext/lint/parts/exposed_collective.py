"""A collective whose exposed time is a large part of the step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from hlotext.analysis import Backend, byte_text
from hlotext.analysis.formatting import seconds
from hlotext.findings.errors import Severity
from hlotext.lint.helpers import COLLECTIVE_KINDS
from hlotext.lint.rule import Context, Report, Rule

if TYPE_CHECKING:
    from hlotext.cost.estimate import TransferTime


class ExposedCollective(Rule):
    severity = Severity.NOTE
    backends = frozenset({Backend.GPU, Backend.TPU})
    needs_schedule = True

    min_percent: ClassVar[int] = 10
    """Percent of the estimated time of the module, from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        step = context.prices.step if context.communications else 0.0
        if not step:  # the time of the step is unknown
            return
        transfers = context.prices.estimate.transfers
        whole = sum(one.exposed for one in transfers)
        largest = max((one.exposed for one in transfers), default=0.0)
        for one in transfers:
            share = 100 * one.exposed / step
            if (
                one.communication is None or one.communication.kind not in COLLECTIVE_KINDS
            ):  # it is not a collective
                continue
            # Starting it takes its time beside any other work too.
            waited = one.exposed - context.runs(one.start) * _STARTING
            if share < self.min_percent or waited <= 0:  # no collective is exposed for long enough
                continue
            yield Report(
                one.start,
                f"{one.communication.kind} of {byte_text(one.communication.operand_bytes)} is exposed for "
                f"{seconds(one.exposed)}, {share:.0f}% of the step; {100 * one.hidden:.0f}% of it overlaps with computation"
                + (
                    f"; all transfers together are exposed for {100 * whole / step:.0f}% of the step"
                    if _is_main(one, largest, whole)
                    else ""
                ),
                "give the scheduler independent work, send less, or send over a faster axis",
                one.communication.sent_bytes * context.runs(one.start),
                seconds=waited,
            )


def _is_main(one: TransferTime, largest: float, whole: float) -> bool:
    """True for the longest of several transfers, whose finding says what all of them take."""
    return one.exposed == largest < whole


_STARTING = 10e-6
"""Seconds of a collective that moves next to nothing: its latency, of which the model knows only a part."""
