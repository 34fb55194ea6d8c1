"""Values that a text names although it omits them."""

from __future__ import annotations

import attrs

from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class LeftOut(Value):
    """A control predecessor omitted from a compact text: the name of a get-tuple-element whose position is unknown.

    XLA's compact form prints an element only where it is an operand, as `NAME#I`; as a control predecessor only its name is
    printed. It orders nothing, and full texts and protos omit it.
    """

    name: str

    def __str__(self) -> str:
        return self.name
