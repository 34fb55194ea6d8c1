"""G105: an unknown custom call."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
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
    opcodes = frozenset({"custom-call"})

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        target = str(instruction.attributes.get("custom_call_target", ""))
        if is_compiler_target(target) or is_callback(
            instruction
        ):  # its target is one of XLA's own, or a host callback
            return
        if not _says_its_cost(instruction):  # it states its cost
            yield Report(
                instruction,
                f'unknown custom call "{target}": its cost is not counted',
                "add it to the baseline if it is your own kernel",
                passed_bytes(instruction, context),
            )


def _says_its_cost(instruction: Instruction) -> bool:
    """True if the caller states its cost, as `pallas_call(cost_estimate=...)` does."""
    config = instruction.backend_config
    return config is not None and '"cost_estimate"' in config.text
