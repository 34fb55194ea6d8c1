"""Errors of nodes and values."""

from __future__ import annotations


class EditError(ValueError):
    """Raised if an edit is rejected, which leaves the module unchanged. The message gives the problem and a remedy."""

    def __init__(self, message: str, instead: str = "", *, code: str = "") -> None:
        super().__init__(f"{message}; {instead}" if instead else message)
        self.message = message
        """The error and the node at fault, in one sentence without a full stop."""
        self.instead = instead
        """The alternative; empty if there is none."""
        self.code = code
        """Code of the corresponding finding of the parser or the verifier; empty if there is none."""


class UnknownSizeError(ValueError):
    """Raised if the elements of a shape with an unbounded dimension are counted."""
