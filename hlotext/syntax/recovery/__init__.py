"""Reading on behind errors: the fast reader for texts that may be broken anywhere, and what it gives.

Nothing below may import it: a text is read as if it were right, and only then again by this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.recovery import head_recovery as head_recovery
    from hlotext.syntax.recovery import tolerant_scanner as tolerant_scanner
else:
    __getattr__ = lazy_submodules(__name__, "head_recovery", "tolerant_scanner")
