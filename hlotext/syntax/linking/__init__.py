"""Name resolution: turns the records of the grammar parser and the lines of the fast parser into nodes.

Both parsers share this step, so error messages do not depend on the parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.linking import head_linker as head_linker
else:
    __getattr__ = lazy_submodules(__name__, "head_linker")
