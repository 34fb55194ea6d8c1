"""Values that a text names although it omits them."""

from __future__ import annotations

import attrs

from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class LeftOut(Value):
    """A control predecessor that a compact text leaves out: the name of a get-tuple-element, whose place is nowhere told.

    XLA's compact form prints an element only where it is an operand, as `NAME#I`; where one must run before another
    instruction, its name alone is left. It orders nothing, and full texts and protos go without it.
    """

    name: str

    def __str__(self) -> str:
        return self.name
