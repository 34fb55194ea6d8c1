"""Findings in a text or a module: severity, place, and the error to raise. Must not know who finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.findings import finding as finding
else:
    __getattr__ = lazy_submodules(__name__, "finding")
