"""The grammar parser, which runs Lark on a term or a whole module. Slow but simple; imported on first use.

Returns values and records with unresolved names, which `linking` turns into nodes.
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
