"""Helpful messages for text that the grammar cannot read.

Must not know how it was read: what comes in is a text, a place and the terminals that could stand there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.hints import foreign_text as foreign_text
else:
    __getattr__ = lazy_submodules(__name__, "foreign_text")
