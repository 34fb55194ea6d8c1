"""From names to references: records of the grammar reader and lines of the fast one become nodes.

Both readers end here, so that an error reads the same whichever of them met it. Must not know where lines come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.linking import head_linker as head_linker
else:
    __getattr__ = lazy_submodules(__name__, "head_linker")
