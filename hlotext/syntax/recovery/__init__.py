"""Error recovery: a fast parser for text with errors anywhere.

Text is first parsed as if it were valid, and parsed again by this package only if that fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.recovery import head_recovery as head_recovery
    from hlotext.syntax.recovery import tolerant_scanner as tolerant_scanner
else:
    __getattr__ = lazy_submodules(__name__, "head_recovery", "tolerant_scanner")
