"""G107: a fusion of very many instructions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.rule import Context, Report, Rule


class HugeFusion(Rule):
    code = "G107"
    name = "huge-fusion"
    title = "a very large fusion"
    is_default = False
    opcodes = frozenset({"fusion"})

    max_instructions: ClassVar[int] = 500
    """Largest number of instructions that is not reported."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        count = sum(map(len, instruction.called_computations))
        if count > self.max_instructions:  # it has too few instructions
            yield Report(
                instruction,
                f"this fusion has {count:,} instructions",
                "split it with an optimization barrier if it is slow",
            )
