"""Error messages and hints for text that the grammar rejects.

Independent of the parsers: the input is a text, a position, and the terminals expected there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.hints import foreign_text as foreign_text
    from hlotext.syntax.hints import hints as hints
else:
    __getattr__ = lazy_submodules(__name__, "foreign_text", "hints")
