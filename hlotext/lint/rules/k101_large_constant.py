"""K101: a large constant."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import size_of
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class LargeConstant(Rule):
    code = "K101"
    name = "large-constant"
    title = "a large constant"
    opcodes = frozenset({"constant"})

    min_bytes: int = 1 << 20
    """Bytes from which on it is worth a finding."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        size = size_of(instruction.shape)
        if size >= self.min_bytes:
            yield Report(
                instruction,
                f"a constant of {byte_text(size)} is part of the program",
                "pass it as an argument, or compute it",
                size,
                is_held=True,
            )
