"""Texts and what is said about them: bytes from files, limits, codes of diagnostics, the reporter.

Must not know the language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.doors import door

if TYPE_CHECKING:
    from hlotext.syntax.source import inputs as inputs
else:
    __getattr__ = door(__name__, "inputs")
