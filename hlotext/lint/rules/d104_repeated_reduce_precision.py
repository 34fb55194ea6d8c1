"""D104: a reduce-precision that changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import origin
from hlotext.lint.rule import Context, Report, Rule


class RepeatedReducePrecision(Rule):
    code = "D104"
    name = "repeated-reduce-precision"
    title = "a reduce-precision without effect"
    waste = "wide"
    severity = Severity.NOTE
    is_default = False  # `jax.checkpoint` puts them there on purpose, and in a fusion they take no time
    needs_optimized = True  # before, the compiler has not had its chance to remove it
    opcodes = frozenset({"reduce-precision"})

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        own = _bits(instruction)
        source = origin(instruction.operands[0]) if instruction.operands else instruction
        before = _bits(source) if source is not instruction and source.opcode == "reduce-precision" else None
        if before is None and instruction.shape is not None:
            before = _FORMATS.get(instruction.shape.element_type.name)
        if (
            before is not None and own[0] >= before[0] and own[1] >= before[1]
        ):  # its operand is not the result of such a rounding
            yield Report(
                instruction,
                f"values with {before[0]} exponent and {before[1]} mantissa bits are rounded to {own[0]} and {own[1]} bits",
                "remove it",
            )


_FORMATS = {"f64": (11, 52), "f32": (8, 23), "bf16": (8, 7), "f16": (5, 10)}
"""Exponent and mantissa bits."""


def _bits(instruction: Instruction) -> tuple[int, int]:
    attributes = instruction.attributes
    return int(attributes.get("exponent_bits", 0)), int(attributes.get("mantissa_bits", 0))
