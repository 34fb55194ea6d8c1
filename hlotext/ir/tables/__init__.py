"""Tables of XLA's language: a row per opcode and per attribute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.ir.tables import attributes as attributes
else:
    __getattr__ = lazy_submodules(__name__, "attributes")
