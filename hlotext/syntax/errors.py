"""What can be wrong with a text, and how it is said."""

from __future__ import annotations

import attrs


class TermError(Exception):
    """A term that cannot be read. `position` is the offset in the term's text; callers turn it into an `HloSyntaxError`."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


@attrs.frozen
class Placeholder:
    """(the diagnostics come here)"""
