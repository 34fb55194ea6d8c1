"""Findings in HLO text or modules, shared by parser, verifier and linter: severity, location, errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.findings import finding as finding
else:
    __getattr__ = lazy_submodules(__name__, "finding")
