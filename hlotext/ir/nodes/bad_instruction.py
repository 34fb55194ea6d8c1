"""Placeholder in a computation for a line that could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.nodes.instruction import Form, Instruction

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.values.shape import Shape

UNREADABLE = "(unreadable)"
"""The opcode of a `BadInstruction`; no opcode is written like that."""


class BadInstruction(Instruction):
    """Placeholder for unreadable lines in a module from `parse_tolerant`, or for an undefined operand.

    It has the position and name of the text, so that its users have an operand, and the opcode `UNREADABLE`. Its shape
    is that of the line, or None. It has no operands or attributes.
    """

    __slots__ = ("text",)

    def __init__(
        self,
        name: str,
        shape: Shape | None,
        computation: Computation,
        place: tuple[int, int] | None = None,
        form: Form = Form.LINE,
        text: str = "",
    ) -> None:
        super().__init__(name, UNREADABLE, shape, computation=computation, place=place, form=form)
        self.text = text
        """The lines as they stand in the source, without indentation; empty for an operand that nothing defines."""

    @property
    def is_missing(self) -> bool:
        """True for an undefined operand, which has no line in the text."""
        return not self.text

    def __str__(self) -> str:
        return self.text
