"""S104: a collective that is waited for through a large part of the step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext import cost
from hlotext.analysis import Backend, backend_of
from hlotext.lint.beside import CHIPS
from hlotext.lint.helpers import COLLECTIVE_KINDS
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class ExposedCollective(Rule):
    code = "S104"
    name = "exposed-collective"
    title = "a collective that is waited for through a large part of the step"
    waste = "waited"
    backends = frozenset({Backend.GPU, Backend.TPU})
    needs_schedule = True
    is_default: ClassVar[bool] = False

    chip: str = ""
    """The chip on which times are estimated; without one v5e or h100."""
    min_percent: ClassVar[int] = 10
    """Percent of the estimated time of the module, from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        backend = backend_of(context.module)
        chip = self.chip or (CHIPS.get(backend, "") if backend is not None else "")
        if not chip or not context.communications:
            return
        found = cost.estimate(context.module, chip)
        for one in found.transfers:
            share = 100 * one.exposed / found.seconds if found.seconds else 0.0
            if one.communication is None or one.communication.kind not in COLLECTIVE_KINDS:
                continue
            if share < self.min_percent or one.exposed <= cost.OVERHEAD:
                continue
            yield Report(
                one.start,
                f"{one.communication.kind} is waited for through {share:.0f} % of the step, {one.exposed * 1e6:.0f} us on "
                f"{chip} (estimated); other work hides {100 * one.hidden:.0f} % of it",
                "give the scheduler independent work, send less, or send over a faster axis",
                one.communication.sent_bytes * context.runs(one.start),
            )
