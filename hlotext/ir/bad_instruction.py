"""What stands in a computation in place of a line that could not be read."""

from __future__ import annotations

import attrs

from hlotext.ir.instruction import Instruction

UNREADABLE = "(unreadable)"
"""The opcode of a `BadInstruction`; no opcode is written like that."""


@attrs.define(eq=False, repr=False)
class BadInstruction(Instruction):
    """A line, or several in a row, that `parse_tolerant` could not read; or an operand that nothing defines.

    It stands where the text stands, so that nothing is lost, and has the line's name, so that its users have an operand; its
    opcode is `UNREADABLE`. The shape is what the line says, or None. It has no operands and no attributes.
    """

    text: str = ""
    """The lines as they stand in the source, without indentation; empty for an operand that nothing defines."""

    @property
    def is_missing(self) -> bool:
        """True for an operand that nothing defines: no line of the text stands behind it."""
        return not self.text

    def __str__(self) -> str:
        return self.text
