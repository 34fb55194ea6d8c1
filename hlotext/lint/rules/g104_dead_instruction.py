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
    fix = "dce"
    is_default = False
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for computation in context.module.computations:
            if not len(computation):
                continue
            needed = {computation.root}
            for instruction in computation:
                needed.update(instruction._operands)
                needed.update(instruction.control_predecessors)
            for instruction in computation:
                if instruction in needed or has_effect(instruction):
                    continue
                size = written_bytes(instruction) if context.is_stepped(instruction) else 0
                yield Report(
                    instruction, f"the result of {instruction.opcode} is not used", "remove it", size
                )
