"""What the runtime will execute: the thunks of a scheduled module, predicted from its text or read from XLA's files.

>>> from hlotext import thunks
>>> thunks.predict(module).with_command_buffers().ended       # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.thunks.command_buffers import Cause, Run
from hlotext.thunks.overlap import Overlap, overlaps
from hlotext.thunks.predicting import predict
from hlotext.thunks.sequence import Thunks
from hlotext.thunks.tree import Launch, Note, Thunk, ThunkError

if TYPE_CHECKING:
    import os

__all__ = [
    "Cause",
    "Launch",
    "Note",
    "Overlap",
    "Run",
    "Thunk",
    "ThunkError",
    "Thunks",
    "load",
    "overlaps",
    "parse",
    "predict",
]


def load(path: str | os.PathLike[str]) -> Thunks:
    """The thunks that a file of XLA lists: `thunk_sequence*.txt`, `thunk_metadata.txt`, or a serialized CPU executable.

    Told by content; packed files (.gz, .xz, .zst) are unpacked. Kinds that this release does not know are kept. Raises
    ThunkError for what is none of these, OSError for what cannot be read.
    """
    from hlotext.thunks.reading import load as read

    return read(path)


def parse(text: str, name: str = "<text>") -> Thunks:
    """The same from the text of a thunk_sequence or thunk_metadata. Raises ThunkError."""
    from hlotext.thunks.reading import parse as read

    return read(text, name)
