"""Thunks that the runtime executes for a scheduled module, predicted from its text or read from XLA's files.

>>> from hlotext import thunks
>>> thunks.predict(module).with_command_buffers().ended       # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.doors import door

if TYPE_CHECKING:
    from hlotext.thunks.command_buffers import CaptureBlocker, Run
    from hlotext.thunks.overlap import Overlap, overlaps
    from hlotext.thunks.predicting import predict
    from hlotext.thunks.reading import load, parse
    from hlotext.thunks.sequence import Thunks
    from hlotext.thunks.tree import Launch, Thunk, ThunkError, ThunkNote

__getattr__ = door(
    __name__,
    command_buffers=("CaptureBlocker", "Run"),
    overlap=("Overlap", "overlaps"),
    predicting=("predict",),
    reading=("load", "parse"),
    sequence=("Thunks",),
    tree=("Launch", "ThunkNote", "Thunk", "ThunkError"),
)

__all__ = [
    "CaptureBlocker",
    "Launch",
    "Overlap",
    "Run",
    "Thunk",
    "ThunkError",
    "ThunkNote",
    "Thunks",
    "load",
    "overlaps",
    "parse",
    "predict",
]
