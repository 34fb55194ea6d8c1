"""Verification and shape inference of single instructions, independent of source text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.semantics import infer as infer
else:
    __getattr__ = lazy_submodules(__name__, "infer")
