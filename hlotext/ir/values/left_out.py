"""Values that a text names although it omits them."""

from __future__ import annotations

import attrs

from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class LeftOut(Value):
    """A control predecessor omitted from compact text: the name of a get-tuple-element whose position is unknown.

    XLA's compact form prints a get-tuple-element only where it is an operand, as `NAME#I`, and as a control predecessor
    only by name. It imposes no order, and full text and protos omit it.
    """

    name: str

    def __str__(self) -> str:
        return self.name
