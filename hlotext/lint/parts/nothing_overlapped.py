"""An asynchronous collective with nothing between start and done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend, Communication, byte_text
from hlotext.lint.beside import could_be_hidden, is_share_known, worth_time_together
from hlotext.lint.helpers import COLLECTIVE_KINDS, operation, scheduled_between, times, works
from hlotext.lint.rule import Context, Report, Rule


class NothingOverlapped(Rule):
    backends = frozenset({Backend.GPU, Backend.TPU})
    needs_schedule = True

    min_bytes: ClassVar[int] = 1 << 20
    """Bytes that each device sends, from which on it is worth a finding."""

    min_percent: ClassVar[float] = 1.5
    """Percent of the estimated time of the module that all of one kind for one operation of the program take, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        # Of an operation that is synchronous elsewhere C106 speaks.
        told = {
            (one.kind, name)
            for one in context.communications
            if not one.is_async and (name := operation(one.start))
        }
        idle = [
            one
            for one in context.communications
            if self._is_idle(one)
            and (one.kind, operation(one.start)) not in told
            and is_share_known(one, context)
            and could_be_hidden(one, context)
        ]
        for one, cause in worth_time_together(idle, context, self.min_percent):
            runs = context.runs(one.start)
            yield Report(
                one.start,
                f"{one.kind} that sends {byte_text(one.sent_bytes)}{times(runs)} does not overlap with any computation",
                "give the scheduler independent work to put between start and done",
                one.sent_bytes * runs,
                cause=cause,
            )

    def _is_idle(self, one: Communication) -> bool:
        chain = one.start.async_chain
        return (
            one.is_async
            and len(chain) > 1
            and one.kind in COLLECTIVE_KINDS
            and one.sent_bytes >= self.min_bytes
            and not any(works(other) for other in scheduled_between(chain[0], chain[-1]))
        )
