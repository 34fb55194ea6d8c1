"""Errors of shapes, layouts and indices, each with the part at fault."""

from __future__ import annotations

from hlotext.ir import sending

_LONGEST = 160
"""Characters of a shape or an index that a message repeats; a tuple's text can be megabytes long."""


def shorten(text: str) -> str:
    """Returns text that is too long for a message with its middle replaced by `...`."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2 - 2
    return f"{text[:half]} ... {text[-half:]}"


class LayoutError(sending.Whole, ValueError):
    """Raised for a shape without a valid memory layout, and for an index or buffer that does not match the shape.

    `part` names the invalid part.
    """

    def __init__(self, part: str, problem: str, shape: object = None) -> None:
        """`part` as in `tile 2`; `problem` continues the sentence that begins with the part; `shape` is shown
        where given.
        """
        of = "" if shape is None else f" of {shorten(str(shape))}"
        super().__init__(f"{part}{of}: {problem}")
        self.part = part
        self.problem = problem
        self.shape = shape
