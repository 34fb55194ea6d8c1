"""A large collective during which nothing is computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend, Communication, byte_text
from hlotext.findings.errors import Severity
from hlotext.lint.beside import could_be_hidden, worth_time_together
from hlotext.lint.helpers import COLLECTIVE_KINDS, senders, times
from hlotext.lint.rule import Context, Report, Rule


class SynchronousCollective(Rule):
    severity = Severity.NOTE
    backends = frozenset({Backend.GPU, Backend.TPU})
    needs_optimized = True

    min_bytes: ClassVar[int] = 2 << 20
    """Bytes that each device sends in one run, from which on it is worth a finding."""
    min_percent: ClassVar[float] = 1.5
    """Percent of the estimated time of the module that all of one kind for one operation of the program take, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        found = [
            one
            for one in context.communications
            if self._is_synchronous(one) and context.is_stepped(one.start) and could_be_hidden(one, context)
        ]
        for one, cause in worth_time_together(found, context, self.min_percent):
            runs = context.runs(one.start)
            yield Report(
                one.start,
                f"{one.kind} runs{times(runs)} without overlapping any computation: "
                f"{senders(one)} {byte_text(one.sent_bytes)}{' each time' if runs > 1 else ''}",
                "let the compiler make it asynchronous, and give it independent work to overlap",
                one.sent_bytes * runs,
                cause=cause,
            )

    def _is_synchronous(self, one: Communication) -> bool:
        # The TPU compiler notes this way what its last passes will make asynchronous.
        return (
            not one.is_async
            and one.kind in COLLECTIVE_KINDS
            and one.sent_bytes >= self.min_bytes
            and "async_collective_name" not in one.start.frontend_attributes
        )
