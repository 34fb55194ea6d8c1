"""The fast parser: lines are split by regular expressions, and parts are cached by their exact text.

New parts are parsed by `shortcuts`, unrecognized text by the grammar parser. Error recovery is not part of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.syntax.fast import line_records as line_records
    from hlotext.syntax.fast import shortcuts as shortcuts
    from hlotext.syntax.fast import statements as statements
else:
    __getattr__ = lazy_submodules(__name__, "line_records", "shortcuts", "statements")
