"""Helpful messages for text that the grammar cannot read.

Must not know how it was read: what comes in is a text, a place and the terminals that could stand there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.doors import door

if TYPE_CHECKING:
    from hlotext.syntax.hints import stranger as stranger
else:
    __getattr__ = door(__name__, "stranger")
