"""Text put together from slices of a source and new text."""

from __future__ import annotations


class Splices:
    """Builds a text from slices of a source and new text; adjacent slices are merged.

    New text that equals the following source text extends the slice, so that a text that turns out to be the source is
    not copied.
    """

    def __init__(self, source: str, start: int = 0) -> None:
        self.source = source
        self.start = self.end = start
        """The slice that may go on; negative behind new text."""
        self._head = 0
        """Length of the beginning of the source that comes first."""
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
        """Returns the text built so far."""
        self._flush()
        if not self._head:
            return "".join(self._pieces)
        if not self._pieces:
            return self.source[: self._head]
        # Unlike a slice, this copies most of a large text once: new memory for it costs more than all else.
        return ("%.*s" + "%s" * len(self._pieces)) % (self._head, self.source, *self._pieces)

    def _flush(self) -> None:
        """Ends the slice so far."""
        if self.end > self.start:
            if self.start == 0 and not self._pieces and type(self.source) is str:
                self._head = self.end
            else:
                self._pieces.append(self.source[self.start : self.end])
        self.start = self.end = -1
