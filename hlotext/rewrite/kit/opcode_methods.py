"""The builder's methods that are made from the opcode table; `opcode_methods.pyi` lists them for type checkers."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping
from typing import Any

from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Opcode
from hlotext.ir.tables.other_names import opcode_suggested

METHODS: Mapping[str, Opcode] = {
    (name.replace("-", "_") + ("_" if keyword.iskeyword(name) else "")): row
    for name, row in opcodes.OPCODES.items()
}
"""Every opcode by the name of the builder's method: `get_tuple_element`, `and_`."""


_OTHERWISE = "a builder has a method for each opcode, op(opcode, operands) and finish(root); dir() lists them"


class OpcodeMethods:
    """Builder methods for every opcode: positional operands, attributes by keyword."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *METHODS})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        row = METHODS.get(name)
        if row is None:
            meant = opcode_suggested(name)
            # Without the object, of which Python would propose another opcode.
            raise AttributeError(f"there is no opcode {name}; {meant or _OTHERWISE}", name=None, obj=None)
        return lambda *operands, **settings: self.op(row.name, operands, **settings)
