"""The module that XLA builds from a text: names, orders, tables, values. Must not import the readers.

XLA's tools print a module that they have read, which is not the text: computations come callees first, instructions that
are not scheduled come operands first, a name that stands twice gets a number. Printing what `reread` gives makes `diff`
against such a tool show what the tool did.
"""

from __future__ import annotations

from hlotext.syntax.reread.module import reread

__all__ = ["reread"]
