"""A large argument that every call converts to a narrower type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend, byte_text, written_bytes
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import is_argument, pieces, size_of
from hlotext.lint.rule import Context, Report, Rule


class ParameterCast(Rule):
    severity = Severity.NOTE
    needs_optimized = True

    min_bytes: ClassVar[int] = 1 << 20
    """Bytes of the argument from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        fused = [one for one, opcode in context.fused_work.items() if opcode == "convert"]
        for one in (*context.census.by_opcode.get("convert", ()), *fused):
            if context.is_stepped(one) and one.operands:  # it is not a conversion in the schedule
                yield from self._of(one, context)

    def _of(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        argument = instruction.operands[0]
        size, result = size_of(argument.shape), written_bytes(instruction)
        if any(user is not instruction for user in argument.users):  # the argument has other uses
            return  # a trained weight, whose update wants the wide one
        if not any(_is_programs(part, context) for part in pieces(instruction)):
            return  # the TPU compiler multiplies f32 in bf16
        if (
            size >= self.min_bytes and result < size and is_argument(argument, context)
        ):  # the cast does not make a large argument smaller
            yield Report(
                instruction,
                f"every call converts an argument of {byte_text(size)} to a narrower type ({byte_text(result)})",
                "pass it in the narrow type",
                size + result,
            )


def _is_programs(part: Instruction, context: Context) -> bool:
    """True for a conversion that the program asks for, or of which the text does not tell."""
    name = part.metadata.op_name if part.metadata is not None else ""
    return part.opcode == "convert" and (
        "convert_element_type" in name or (not name and context.backend is not Backend.TPU)
    )
