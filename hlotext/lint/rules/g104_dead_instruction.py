"""G104: an instruction whose result nothing uses."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import written_bytes
from hlotext.lint.helpers import has_effect
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class DeadInstruction(Rule):
    code = "G104"
    name = "dead-instruction"
    title = "an instruction whose result nothing uses"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for computation in context.module.computations:
            root = computation.root if len(computation) else None
            needed = (
                {other for i in computation for other in i.control_predecessors}
                if root is not None
                else set()
            )
            for instruction in computation:
                if (
                    instruction is root
                    or instruction.users
                    or instruction in needed
                    or has_effect(instruction)
                ):
                    continue
                size = written_bytes(instruction) if context.is_stepped(instruction) else 0
                yield Report(
                    instruction, f"the result of {instruction.opcode} is not used", "remove it", size
                )
