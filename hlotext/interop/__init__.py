"""Bridges to other software. Each needs its own extra."""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.execution import NotExecutable as NotExecutable
    from hlotext.execution import run as run

__getattr__ = lazy_submodules("hlotext.execution", running=("run",), errors=("NotExecutable",))
