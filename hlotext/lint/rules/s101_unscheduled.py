"""S101: a module after optimization without a schedule."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.findings.errors import Severity
from hlotext.lint.rule import Context, Report, Rule


class Unscheduled(Rule):
    code = "S101"
    name = "unscheduled"
    title = "a module after optimization without a schedule"
    severity = Severity.NOTE
    is_default = False

    def check_module(self, context: Context) -> Iterator[Report]:
        module = context.module
        name = module.source.name if module.source is not None else ""
        if (
            "after_optimizations" in name.rpartition("/")[2] and not module.is_scheduled
        ):  # the module is scheduled, or its file name does not mark it as optimized
            yield Report(
                None,
                "the file says after_optimizations, but the module is not scheduled",
                "dump the scheduled module",
            )
