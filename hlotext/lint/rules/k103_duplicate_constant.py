"""K103: a constant that repeats another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import size_of
from hlotext.lint.rule import Context, Report, Rule


class DuplicateConstant(Rule):
    code = "K103"
    name = "duplicate-constant"
    title = "a duplicate constant"
    waste = "held"
    is_default = False
    opcodes = frozenset({"constant"})

    min_bytes: ClassVar[int] = 1 << 12
    """Bytes from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        first: dict[object, Instruction] = {}
        for instruction in context.graph.sequential_instructions():
            literal = instruction.literal
            if (
                literal is None or literal.is_elided or size_of(instruction.shape) < self.min_bytes
            ):  # it is not a large constant with its values in the text
                continue
            other = first.setdefault((str(instruction.shape), literal), instruction)
            if other is not instruction:  # no other constant has its values
                size = size_of(instruction.shape)
                yield Report(
                    instruction,
                    f"a constant of {byte_text(size)} repeats the values of `{other.name}`",
                    "create it once",
                    size,
                )
