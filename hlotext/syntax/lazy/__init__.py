"""Modules of large files, whose computations are read when they are touched. Must not know texts that are in error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.doors import door

if TYPE_CHECKING:
    from hlotext.syntax.lazy import lazy_module as lazy_module
else:
    __getattr__ = door(__name__, "lazy_module")
