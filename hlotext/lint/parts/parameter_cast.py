"""A large argument that every call converts to a narrower type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis import Backend, byte_text, written_bytes
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import is_argument, only_does, pieces, size_of
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class ParameterCast(Rule):
    severity = Severity.NOTE
    needs_optimized = True
    opcodes = frozenset({"convert", "fusion"})

    min_bytes: ClassVar[int] = 1 << 20
    """Bytes of the argument from which on it is worth a finding."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        if (
            not context.is_stepped(instruction)
            or not only_does(instruction, "convert", context)
            or not instruction.operands
        ):  # it is not a conversion in the schedule
            return
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
                f"every call converts an argument of {byte_text(size)} to {byte_text(result)}",
                "pass it in the narrow type",
                size + result,
            )


def _is_programs(part: Instruction, context: Context) -> bool:
    """True for a conversion that the program asks for, or of which the text does not tell."""
    name = part.metadata.op_name if part.metadata is not None else ""
    return part.opcode == "convert" and (
        "convert_element_type" in name or (not name and context.backend is not Backend.TPU)
    )
