"""Irregularities of a dump: reported, never raised."""

from __future__ import annotations

import attrs


@attrs.frozen
class Note:
    """An irregularity in a dump, such as a missing or damaged file."""

    code: str
    """`mixed-processes`, `no-final-text`, `cut-off`, `unreadable`, `overwritten`, `lying-name`, `other-compiler`, ..."""
    message: str
    path: str = ""
    """The affected file or module; empty for the folder as a whole."""

    def __str__(self) -> str:
        return self.message if not self.path or self.path in self.message else f"{self.path}: {self.message}"
