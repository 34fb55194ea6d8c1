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
    """A line, or several in a row, that `parse_tolerant` could not read; or an operand that nothing defines.

    It is at the position of the text, so that nothing is lost, and has the line's name, so that its users have an operand;
    its opcode is `UNREADABLE`. The shape is what the line says, or None. It has no operands and no attributes.
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
