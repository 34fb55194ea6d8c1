"""K102: an elided constant."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.rule import Context, Report, Rule


class ElidedConstant(Rule):
    code = "K102"
    name = "elided-constant"
    title = "an elided constant"
    is_default = False
    opcodes = frozenset({"constant"})

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        if instruction.literal is not None and instruction.literal.is_elided:  # its values are in the text
            yield Report(
                instruction,
                f"the values of {instruction.shape} are elided, so this module cannot be run",
                "dump it with --xla_dump_large_constants",
            )
