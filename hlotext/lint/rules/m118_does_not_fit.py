"""M118: a module that does not fit into the memory of its chip."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext import memory
from hlotext.analysis import array_bytes, arrays_of, choose_chip, written_bytes
from hlotext.analysis.chips import chip
from hlotext.findings.errors import Severity
from hlotext.lint.rule import Context, Report, Rule
from hlotext.memory import usage


@attrs.frozen
class DoesNotFit(Rule):
    code = "M118"
    name = "does-not-fit"
    title = "a module that does not fit into the memory of its chip"
    severity = Severity.ERROR  # it does not run: there is no share of a step that it costs
    needs_schedule = True

    def check_module(self, context: Context) -> Iterator[Report]:
        given = chip(context.chip) if context.chip else None
        choice = choose_chip(context.module, given, context.folders_chip, context.backend)
        if choice is None or not choice.is_known:  # the chip is not known: --chip names it
            return
        if choice.chip.backend is not context.backend:  # the chip is of another platform
            return
        usable = choice.chip.usable_bytes(0)
        # Most modules are too small to ask how their memory is assigned.
        if usable is None or _at_most(context) <= usable:  # it fits
            return
        try:
            assigned = memory.assign(context.module, context.backend, choice.chip, places_fast_memory=False)
        except memory.MemoryModelError:
            return
        text = usage.excess_text(assigned)
        if not text:  # it fits
            return
        yield Report(
            None,
            f"the module does not fit into the memory of {choice.chip.name}: {text}",
            f"`hlotext memory FILE --chip {choice.chip.name}` shows what is held at the peak; "
            "other findings of memory tell what lowers it",
            usage.space_usage(assigned, 0).needed - usable,
            is_held=True,
        )


def _at_most(context: Context) -> int:
    """Bytes of the arguments and of all that is ever written, which no memory exceeds."""
    written = sum(map(written_bytes, context.graph.sequential_instructions()))
    arguments = (array for one in context.module.entry.parameters for _, array in arrays_of(one.shape))
    return written + sum((array_bytes(array) or (0, 0))[0] for array in arguments)
