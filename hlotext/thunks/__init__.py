"""Thunks executed by XLA's runtime, predicted from a scheduled module or read from XLA's files.

>>> from hlotext import thunks
>>> thunks.predict(module).with_command_buffers().ended       # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.thunks.command_buffers import CaptureBlocker, CaptureRun
    from hlotext.thunks.overlap import Overlap, overlaps
    from hlotext.thunks.predicting import predict
    from hlotext.thunks.reading import load, parse
    from hlotext.thunks.sequence import Thunks
    from hlotext.thunks.thunk import Launch, Thunk, ThunkError, ThunkNote
    from hlotext.thunks.traced_kernels import with_kernels_named

__getattr__ = lazy_submodules(
    __name__,
    command_buffers=("CaptureBlocker", "CaptureRun"),
    overlap=("Overlap", "overlaps"),
    predicting=("predict",),
    reading=("load", "parse"),
    sequence=("Thunks",),
    thunk=("Launch", "ThunkNote", "Thunk", "ThunkError"),
    traced_kernels=("with_kernels_named",),
)

__all__ = [
    "CaptureBlocker",
    "CaptureRun",
    "Launch",
    "Overlap",
    "Thunk",
    "ThunkError",
    "ThunkNote",
    "Thunks",
    "load",
    "overlaps",
    "parse",
    "predict",
    "with_kernels_named",
]
