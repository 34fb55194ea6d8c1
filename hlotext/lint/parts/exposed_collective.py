"""A collective that is waited for through a large part of the step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis import Backend
from hlotext.findings.errors import Severity
from hlotext.lint.helpers import COLLECTIVE_KINDS
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class ExposedCollective(Rule):
    severity = Severity.NOTE
    backends = frozenset({Backend.GPU, Backend.TPU})
    needs_schedule = True

    min_percent: ClassVar[int] = 10
    """Percent of the estimated time of the module, from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        step = context.prices.step if context.communications else 0.0
        if not step:
            return
        for one in context.prices.estimate.transfers:
            share = 100 * one.exposed / step
            if one.communication is None or one.communication.kind not in COLLECTIVE_KINDS:
                continue
            # Starting it takes its time beside any other work too.
            waited = one.exposed - context.runs(one.start) * _STARTING
            if share < self.min_percent or waited <= 0:
                continue
            yield Report(
                one.start,
                f"{one.communication.kind} is waited for through {share:.0f} % of the step, {one.exposed * 1e6:.0f} us on "
                f"{context.prices.chip.name} (estimated); other work hides {100 * one.hidden:.0f} % of it",
                "give the scheduler independent work, send less, or send over a faster axis",
                one.communication.sent_bytes * context.runs(one.start),
                seconds=waited,
            )


_STARTING = 10e-6
"""Seconds of a collective that moves next to nothing: its latency, of which the model knows only a part."""
