"""Modules of large files, whose computations are read when they are touched. Must not know texts that are in error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.lazy import lazy_module as lazy_module
else:
    __getattr__ = lazy_submodules(__name__, "lazy_module")
