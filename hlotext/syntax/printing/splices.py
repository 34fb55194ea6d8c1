"""Text put together from slices of a source and new text."""

from __future__ import annotations


class Splices:
    """Slices of a source, joined where they follow each other, and new text between them.

    New text that stands next in the source too is part of the slice, so a text that turns out to be the source is not copied.
    """

    def __init__(self, source: str, start: int = 0) -> None:
        self.source = source
        self.start = self.end = start
        """The slice that may go on; negative behind new text."""
        self._pieces: list[str] = []

    def copy(self, start: int, end: int) -> None:
        """Adds a slice of the source."""
        if start != self.end:
            self._flush()
            self.start = start
        self.end = end

    def add(self, text: str) -> None:
        """Adds text."""
        if self.end >= 0 and self.source.startswith(text, self.end):
            self.end += len(text)
            return
        self._flush()
        self._pieces.append(text)

    def text(self) -> str:
        """Everything so far."""
        self._flush()
        if len(self._pieces) != 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def _flush(self) -> None:
        """Cuts the slice so far out of the source."""
        if self.end > self.start:
            self._pieces.append(self.source[self.start : self.end])
        self.start = self.end = -1
