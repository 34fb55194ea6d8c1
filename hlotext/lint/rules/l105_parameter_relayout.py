"""L105: an argument that every call first copies into another layout."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text, written_bytes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import changes_layout, is_argument
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class ParameterRelayout(Rule):
    code = "L105"
    name = "parameter-relayout"
    title = "an argument that every call first copies into another layout"
    needs_optimized = True
    opcodes = frozenset({"copy", "copy-start"})

    min_bytes: int = 1 << 20
    """Bytes of the argument from which on it is worth a finding."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        if not changes_layout(instruction) or not is_argument(instruction.operands[0], context):
            return
        size = written_bytes(instruction)
        if size >= self.min_bytes:
            yield Report(
                instruction,
                f"every call copies an argument of {byte_text(size)} into another layout",
                "pass it in the layout that the program wants, as automatic layouts choose it",
                2 * size,
            )
