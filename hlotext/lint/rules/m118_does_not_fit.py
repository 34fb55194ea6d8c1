"""M118: a module that does not fit in the memory of its chip."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.findings.errors import Severity
from hlotext.lint.rule import Context, Report, Rule


class DoesNotFit(Rule):
    code = "M118"
    name = "does-not-fit"
    title = "a module that does not fit in the memory of its chip"
    severity = Severity.ERROR  # it does not run: there is no share of a step that it costs
    needs_schedule = True

    def check_module(self, context: Context) -> Iterator[Report]:
        excess = context.excess
        if excess is None:  # the module fits, or the chip is unknown (set --chip)
            return
        largest = f"; the largest temporary array is {excess.largest}" if excess.largest else ""
        yield Report(
            None,
            f"the module does not fit in the memory of {excess.chip.name}: {excess.text}{largest}",
            f"`hlotext memory FILE --chip {excess.chip.name}` shows what is live at the peak; the other memory "
            "findings suggest ways to lower it",
            excess.bytes,
            is_held=True,
        )
