"""Lazily loaded modules of large files, whose computations are parsed on first access."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.lazy import lazy_module as lazy_module
else:
    __getattr__ = lazy_submodules(__name__, "lazy_module")
