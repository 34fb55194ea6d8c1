"""Texts and what is said about them: bytes from files, limits, codes of diagnostics, the reporter.

Must not know the language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.source import inputs as inputs
else:
    __getattr__ = lazy_submodules(__name__, "inputs")
