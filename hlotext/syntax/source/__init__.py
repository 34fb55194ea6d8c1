"""Input files and diagnostics: reading and decompression, limits, diagnostic codes, the reporter.

Independent of the syntax of HLO.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.source import inputs as inputs
else:
    __getattr__ = lazy_submodules(__name__, "inputs")
