"""The grammar reader: Lark over a term or a whole module. Slow, obviously right, and imported when it is first needed.

Gives values and records, in which names are still names. Must not know nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.reading import records as records
    from hlotext.syntax.reading import reference as reference
    from hlotext.syntax.reading import terms as terms
    from hlotext.syntax.reading import valid_prefix as valid_prefix
else:
    __getattr__ = lazy_submodules(__name__, "valid_prefix", "records", "reference", "terms")
