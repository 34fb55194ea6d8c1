"""Rendering of instructions in assertion failures: the line, its origin, and the Python frame."""

from __future__ import annotations

from collections.abc import Sequence

from hlotext.ir.nodes.instruction import Instruction

_SHOWN = 10
_WIDTH = 200


def describe(instruction: Instruction) -> list[str]:
    """Describes an instruction in a few lines."""
    text = " ".join(str(instruction).split())
    lines = [text if len(text) <= _WIDTH else f"{text[:_WIDTH]} ..."]
    origin = instruction
    if origin.metadata is None:
        origin = instruction.async_wrapped_instruction or instruction
    if origin.metadata is not None and origin.metadata.op_name:
        lines.append(f"  op_name: {origin.metadata.op_name}")
    if origin.frames:
        lines.append(f"  from: {origin.frames[0]}")
    return lines


def describe_all(instructions: Sequence[Instruction]) -> list[str]:
    """Describes the first instructions, with the number of the others."""
    lines = [line for instruction in instructions[:_SHOWN] for line in describe(instruction)]
    if len(instructions) > _SHOWN:
        lines.append(f"... and {len(instructions) - _SHOWN:,} more")
    return lines
