"""An asynchronous copy to or from host memory with nothing between start and done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import arrays_of, byte_text, memory_space
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import scheduled_between, size_of, times, works
from hlotext.lint.rule import Context, Report, Rule


class CopyNotOverlapped(Rule):
    needs_schedule = True
    opcodes = frozenset({"copy-start"})

    min_bytes: ClassVar[int] = 1 << 16
    """Bytes copied, from which on it is worth a finding."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        chain, size = instruction.async_chain, size_of(instruction.operands[0].shape)
        if len(chain) < 2 or size < self.min_bytes:  # it is not an asynchronous copy of a large array
            return
        spaces = [memory_space(array) for _, array in arrays_of(instruction.shape)]
        if 5 not in spaces[:2] or len(set(spaces[:2])) < 2:  # neither side is in host memory
            return
        if not any(
            works(other) for other in scheduled_between(chain[0], chain[-1])
        ):  # it overlaps with other work
            runs = context.runs(instruction)
            yield Report(
                instruction,
                f"the copy of {byte_text(size)} between host and device does not overlap with any computation{times(runs)}",
                "start the copy earlier",
                size * runs,
            )
