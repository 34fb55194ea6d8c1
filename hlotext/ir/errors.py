"""Errors of nodes and values."""

from __future__ import annotations


class EditError(ValueError):
    """An edit was rejected and the module is unchanged. The message gives the problem, its location and a remedy."""

    def __init__(self, message: str, instead: str = "", *, code: str = "") -> None:
        super().__init__(f"{message}; {instead}" if instead else message)
        self.message = message
        """The error and the node at fault, in one sentence without a full stop."""
        self.instead = instead
        """The alternative; empty if there is none."""
        self.code = code
        """Code of the corresponding finding of the parser or the verifier; empty if there is none."""


class UnknownSizeError(ValueError):
    """The elements of an unbounded dimension were to be counted."""
