"""Result of a check: a code, a sentence, and the part of the instruction at fault. A value, so it can be cached."""

from __future__ import annotations

import enum
from collections.abc import Collection
from typing import TYPE_CHECKING, TypeAlias

import attrs

from hlotext.findings.errors import Severity

if TYPE_CHECKING:
    from hlotext.ir.nodes.instruction import Instruction


class Part(enum.Enum):
    """A part of an instruction's text other than an operand or attribute."""

    WHOLE = "the instruction"
    OPCODE = "the opcode"
    SHAPE = "the result's shape"


Where: TypeAlias = Part | int | str
"""The part at fault: an operand by its number, an attribute by its name, or a `Part`."""


@attrs.frozen
class Callee:
    """A parameter or the root of a called computation."""

    computation: int
    """Number of the computation in `Instruction.called_computations`."""
    parameter: int | None = None
    """None for the root."""


Other: TypeAlias = "tuple[str, Instruction]"
"""A related instruction, and its relation to the problem in words."""


@attrs.frozen
class Problem:
    """A problem of an instruction, in words that do not name it."""

    code: str
    """One of `codes.CODES`."""
    message: str
    """The problem, in one sentence without a full stop."""
    where: Where = Part.OPCODE
    help: str = ""
    """A suggestion; empty if there is none."""
    related: tuple[int | Callee | Other, ...] = ()
    """Other instructions that matter: operands by number, parts of called computations, or any, with what it has to do."""
    known: Collection[str] | None = attrs.field(default=None, eq=False)
    """Words of which `word` may be a misspelling; None if there is nothing to suggest."""
    word: str = ""

    @property
    def is_error(self) -> bool:
        """True if XLA rejects the instruction because of it."""
        return self.code not in MILD


MILD: dict[str, Severity] = {
    "V107": Severity.NOTE,
    "V111": Severity.WARNING,
    "V115": Severity.WARNING,
    "V209": Severity.WARNING,
    "V211": Severity.WARNING,
    "V309": Severity.NOTE,
    "V508": Severity.WARNING,
    "V515": Severity.NOTE,
    "X201": Severity.NOTE,
    "X208": Severity.NOTE,
}
"""Codes of problems that are no errors: what XLA accepts, or what is worth knowing."""
