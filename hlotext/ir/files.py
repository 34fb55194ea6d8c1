"""Texts written to files: here and nowhere else, since on some systems Python would write other line ends."""

from __future__ import annotations

from os import PathLike
from pathlib import Path


def write_text(path: str | PathLike[str], text: str) -> None:
    """Writes a text as it is: its line ends, and the bytes that are no UTF-8. Raises OSError."""
    Path(path).write_bytes(text.encode("utf-8", "surrogateescape"))
