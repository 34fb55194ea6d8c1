"""G104: an instruction whose result nothing uses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from hlotext.analysis import written_bytes
from hlotext.lint.helpers import has_effect
from hlotext.lint.rule import Context, Report, Rule


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
            instructions = computation.instructions
            needed = {computation.root, *chain.from_iterable([i.operands for i in instructions])}
            unused = [i for i in instructions if i not in needed and not has_effect(i)]
            if unused:  # every result is used
                before = set(chain.from_iterable(i.control_predecessors for i in computation))
                unused = [i for i in unused if i not in before]
            for instruction in unused:
                size = written_bytes(instruction) if context.is_stepped(instruction) else 0
                yield Report(
                    instruction, f"the result of {instruction.opcode} is not used", "remove it", size
                )
