"""What goes wrong with nodes."""

from __future__ import annotations


class EditError(ValueError):
    """An edit that is refused, and has changed nothing. Says what is wrong, where, and what to do instead."""

    def __init__(self, message: str, instead: str = "", *, code: str = "") -> None:
        super().__init__(f"{message}; {instead}" if instead else message)
        self.message = message
        """What is wrong, and with which node, in one sentence without a full stop."""
        self.instead = instead
        """What to do instead; empty where there is nothing to say."""
        self.code = code
        """The code that the reader or the verifier has for it; empty where it has none."""
