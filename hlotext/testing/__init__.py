"""Assertions about HLO for tests: the pytest fixture `hlo`, and the object with the assertions.

>>> from hlotext.testing import inspect
>>> inspect("ENTRY e { x = f32[8] parameter(0)  ROOT y = f32[8] negate(x) }").count("negate") == 1
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.testing import snapshot as snapshot
    from hlotext.testing.assertions import Collectives, Count, Findings, Hlo, Instructions, inspect
    from hlotext.testing.reading import module_of
    from hlotext.testing.rows import Rows
else:
    # The plugin is loaded with every pytest, most of which have nothing to do with HLO.
    __getattr__ = lazy_submodules(
        __name__,
        "snapshot",
        assertions=("Collectives", "Count", "Findings", "Hlo", "Instructions", "inspect"),
        reading=("module_of",),
        rows=("Rows",),
    )

__all__ = ["Collectives", "Count", "Findings", "Hlo", "Instructions", "Rows", "inspect", "module_of"]
