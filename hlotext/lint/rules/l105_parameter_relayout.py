"""L105: an argument that every call first writes into another order."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text, written_bytes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import size_of, times
from hlotext.lint.moving import comes_from_argument, moved_array
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class ParameterRelayout(Rule):
    code = "L105"
    name = "parameter-relayout"
    title = "an argument that every call first writes in another order"
    needs_optimized = True
    opcodes = frozenset({"copy", "copy-start", "fusion", "transpose"})

    min_bytes: int = 4 << 20
    """Bytes of the argument from which on it is worth a finding."""
    min_percent: float = 1
    """Percent of all that the module writes that this takes, likewise."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        if not context.is_stepped(instruction):
            return
        moved = moved_array(instruction, context)
        if moved is None or not comes_from_argument(moved, context):
            return
        runs, size = context.runs(instruction), written_bytes(instruction)
        is_much = 100 * size * runs >= self.min_percent * context.written
        if size_of(moved.shape) >= self.min_bytes and is_much:
            yield Report(
                instruction,
                f"every call writes an argument of {byte_text(size_of(moved.shape))} in another order{times(runs)}",
                "store it in the order that the program wants: transposed, or in the layout that automatic layouts choose",
                2 * size * runs,
            )
