"""Bridges to other software; each needs an extra of its own."""

from typing import TYPE_CHECKING

from hlotext.ir.doors import door

if TYPE_CHECKING:
    from hlotext.execution import NotExecutable as NotExecutable
    from hlotext.execution import run as run

__getattr__ = door("hlotext.execution", running=("run",), errors=("NotExecutable",))
