"""What a check says: a code, a sentence, and which part of the instruction is at fault. A value, so it can be kept."""

from __future__ import annotations

import enum
from typing import TypeAlias

import attrs


class Part(enum.Enum):
    """A part of an instruction's text that has no name of its own."""

    WHOLE = "the instruction"
    OPCODE = "the opcode"
    SHAPE = "the result's shape"


Where: TypeAlias = Part | int | str
"""The part at fault: an operand by its number, an attribute by its name, or a `Part`."""


@attrs.frozen
class Callee:
    """A parameter of a called computation, or its root."""

    computation: int
    """Number of the computation in `Instruction.called_computations`."""
    parameter: int | None = None
    """None for the root."""


@attrs.frozen
class Problem:
    """One thing that is wrong with an instruction, told without naming it."""

    code: str
    """One of `codes.CODES`."""
    message: str
    """What is wrong, in one sentence without a full stop."""
    where: Where = Part.OPCODE
    help: str = ""
    """What to do about it; empty when there is nothing to say."""
    related: tuple[int | Callee, ...] = ()
    """Other instructions that matter: operands by number, parts of called computations."""
