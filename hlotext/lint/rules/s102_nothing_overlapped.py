"""S102: an asynchronous collective with nothing between start and done."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend, byte_text
from hlotext.lint.beside import could_be_hidden
from hlotext.lint.helpers import COLLECTIVE_KINDS, scheduled_between, times, works
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class NothingOverlapped(Rule):
    code = "S102"
    name = "nothing-overlapped"
    title = "an asynchronous collective with nothing between start and done"
    backends = frozenset({Backend.GPU, Backend.TPU})
    needs_schedule = True
    yields_to = frozenset({"C101", "C102", "C104", "C105", "C107", "C108"})

    min_bytes: int = 1 << 20
    """Bytes that each device sends, from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        for one in context.communications:
            chain = one.start.async_chain
            if (
                not one.is_async
                or len(chain) < 2
                or one.kind not in COLLECTIVE_KINDS
                or one.sent_bytes < self.min_bytes
            ):
                continue
            if any(works(other) for other in scheduled_between(chain[0], chain[-1])):
                continue
            if could_be_hidden(one, context):
                runs = context.runs(one.start)
                yield Report(
                    one.start,
                    f"nothing runs while {one.kind} sends {byte_text(one.sent_bytes)}{times(runs)}",
                    "give the scheduler independent work to put between start and done",
                    one.sent_bytes * runs,
                )
