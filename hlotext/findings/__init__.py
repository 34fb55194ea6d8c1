"""Findings in a text or module: severity, location and the error to raise. Independent of who reports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.findings import finding as finding
else:
    __getattr__ = lazy_submodules(__name__, "finding")
