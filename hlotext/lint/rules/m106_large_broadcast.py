"""M106: a large broadcast that is written to memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis import byte_text, written_bytes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import only_does, times
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class LargeBroadcast(Rule):
    code = "M106"
    name = "large-broadcast"
    title = "a large broadcast that is written to memory"
    waste = "copied"
    is_default = False
    needs_optimized = True
    opcodes = frozenset({"broadcast", "fusion"})

    min_bytes: ClassVar[int] = 1 << 20
    """Bytes written in all runs, from which on it is worth a finding."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        if not context.is_stepped(instruction) or not only_does(instruction, "broadcast", context):
            return
        runs, size = context.runs(instruction), written_bytes(instruction)
        if size * runs >= self.min_bytes:
            yield Report(
                instruction,
                f"broadcast writes {byte_text(size)}{times(runs)}",
                "use it in one place, where it can be fused",
                size * runs,
            )
