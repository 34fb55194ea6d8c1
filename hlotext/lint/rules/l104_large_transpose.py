"""L104: a transpose of a large array that is not part of another operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis import byte_text, written_bytes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import times
from hlotext.lint.moving import (
    comes_from_argument,
    is_in_main_memory,
    is_programs,
    moved_array,
    moved_bytes,
)
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class LargeTranspose(Rule):
    code = "L104"
    name = "large-transpose"
    title = "a transpose of a large array that is not part of another operation"
    waste = "copied"
    is_default = False
    needs_optimized = True
    opcodes = frozenset({"transpose", "fusion"})

    min_bytes: ClassVar[int] = 1 << 20
    """Bytes written in all runs, from which on it is worth a finding."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        if not context.is_stepped(instruction) or not is_in_main_memory(instruction):
            return
        moved = moved_array(instruction, context)
        if moved is None or comes_from_argument(moved, context):
            return  # of arguments L105 says more
        if not is_programs(instruction):
            return
        runs, size = context.runs(instruction), written_bytes(instruction)
        if size * runs >= self.min_bytes:
            yield Report(
                instruction,
                f"transpose writes {byte_text(size)}{times(runs)} and computes nothing",
                "ask for the transposed result where it is computed",
                moved_bytes(instruction, moved) * runs,
            )
