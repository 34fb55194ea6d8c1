"""G105: an unknown custom call."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.cost import analyze
from hlotext.findings.errors import Severity
from hlotext.ir.tables.targets import is_compiler_target
from hlotext.lint.helpers import is_callback, passed_bytes
from hlotext.lint.rule import Context, Report, Rule


class UnknownCustomCall(Rule):
    code = "G105"
    name = "unknown-custom-call"
    title = "an unknown custom call"
    severity = Severity.NOTE
    is_default = False
    needs_optimized = True
    needs_any = frozenset({"custom-call"})

    def check_module(self, context: Context) -> Iterator[Report]:
        for call in analyze(context.module).run.unknown_calls:  # it is not one whose cost is counted
            target = str(call.attributes.get("custom_call_target", ""))
            if is_compiler_target(target) or is_callback(call):  # it is XLA's own, or a host callback
                continue
            yield Report(
                call,
                f'unknown custom call "{target}": its cost is not counted',
                "add it to the baseline if it is your own kernel",
                passed_bytes(call, context),
            )
