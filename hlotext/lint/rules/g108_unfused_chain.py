"""G108: elementwise operations one after the other that are not fused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import size_of
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class UnfusedChain(Rule):
    code = "G108"
    name = "unfused-chain"
    title = "elementwise operations one after the other that are not fused"
    waste = "copied"
    is_default = False
    needs_optimized = True

    length: ClassVar[int] = 3
    """How many in a row are worth a finding."""
    min_bytes: ClassVar[int] = 1 << 16
    """Bytes of each result from which on it counts."""

    def check_module(self, context: Context) -> Iterator[Report]:
        depth: dict[Instruction, int] = {}
        for instruction in context.graph.stepped_instructions():
            if instruction.opcode not in ELEMENTWISE or size_of(instruction.shape) < self.min_bytes:
                continue
            depth[instruction] = 1 + max(
                (depth.get(operand, 0) for operand in instruction.operands), default=0
            )
            if depth[instruction] == self.length:
                yield Report(
                    instruction,
                    f"{self.length} elementwise operations in a row each write {byte_text(size_of(instruction.shape))}",
                    "find out what keeps them from being fused",
                    size_of(instruction.shape) * (self.length - 1) * 2,
                )
