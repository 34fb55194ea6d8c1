"""The fast reader: lines cut by expressions, parts looked up by their exact text, new terms through `shortcuts`.

What it does not recognise goes to the grammar reader. Must not know how to read on behind an error.
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
