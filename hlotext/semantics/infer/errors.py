"""Why a result shape could not be inferred."""

from __future__ import annotations


class ShapeInferenceError(ValueError):
    """Raised if operands and attributes contradict each other, so that no result shape is valid."""

    def __init__(
        self, message: str, *, operand: int | None = None, attribute: str | None = None, help: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        """The error, in one sentence without a full stop."""
        self.operand = operand
        """Number of the operand at fault; None if there is not exactly one."""
        self.attribute = attribute
        """Name of the attribute at fault, possibly one that names a computation; None if there is none."""
        self.help = help
        """A repair; empty if none is known."""


class CannotInfer(ValueError):  # noqa: N818 - no error: nothing is wrong with the instruction
    """Raised if operands and attributes do not determine the result shape, and the instruction does not state it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        """The missing fact, in one sentence without a full stop."""
