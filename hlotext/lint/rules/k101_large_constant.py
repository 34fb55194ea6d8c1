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
    min_folded_bytes: int = 16 << 20
    """The same of what the program computes and the compiler has computed in advance."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        size = size_of(instruction.shape)
        metadata = instruction.metadata
        # What JAX captures has no name; what is folded keeps that of the operation.
        is_folded = metadata is not None and bool(metadata.op_name)
        if size >= (self.min_folded_bytes if is_folded else self.min_bytes):
            yield Report(
                instruction,
                f"a constant of {byte_text(size)} is part of the program",
                "compute it from an argument" if is_folded else "pass it as an argument, or compute it",
                size,
                is_held=True,
            )
