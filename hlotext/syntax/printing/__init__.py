"""Printing of modules: the style "source", which copies unmodified lines, and XLA's styles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.printing import source_style as source_style
    from hlotext.syntax.printing import xla_styles as xla_styles
else:
    __getattr__ = lazy_submodules(__name__, "source_style", "xla_styles")
