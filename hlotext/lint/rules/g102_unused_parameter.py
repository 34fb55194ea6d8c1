"""G102: an argument that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import size_of
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class UnusedParameter(Rule):
    code = "G102"
    name = "unused-parameter"
    title = "an argument that nothing reads"
    opcodes = frozenset({"parameter"})

    min_bytes: int = 1
    """Bytes from which on it is worth a finding; tokens have none."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        if instruction.computation is not context.module.entry or instruction.users or instruction.is_root:
            return
        if context.module.entry.is_implicit:
            return
        size = size_of(instruction.shape)
        if size >= self.min_bytes:
            yield Report(
                instruction,
                f"argument {instruction.parameter_number} of {byte_text(size)} is not read",
                "leave it out of the function's arguments",
                size,
                f"parameter {instruction.shape}",
            )
