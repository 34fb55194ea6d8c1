"""Order in which XLA made what a text lists sorted, as far as names tell it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import CALLS_NOTHING

_NUMBER = re.compile(r"\.(\d+)$")
_COPIED = re.compile(r"^wide\.|\.(?:clone|sunk)\b")
"""Names that passes give to the computations that they put in the place of others."""
_SUNK = re.compile(r"\.sunk(?:\.\d+)?$")


def number_of(name: str) -> int:
    """Returns the number at the end of a name; -1 if there is none. Of two names with one stem, XLA created the higher
    later.
    """
    number = _NUMBER.search(name)
    return int(number[1]) if number is not None else -1


def in_creation_order(module: Module) -> list[Computation]:
    """Returns all computations in the order of `HloModule::computations()`, which the text does not show.

    Computations of the program are ordered by number. They are followed by those that passes created in place of
    others, last those of `WhileLoopConstantSinking`, which visits outer loops first.
    """
    is_sunk = {c for c in module.computations if _SUNK.search(c.name)}
    sunk = {body: place for place, body in enumerate(_outside_in(module))} if is_sunk else {}

    def key(computation: Computation) -> tuple[int, int]:
        if computation in is_sunk:
            return 2, sunk.get(computation, -1)
        return (1, 0) if _COPIED.search(computation.name) else (0, number_of(computation.name))

    return sorted(module.computations, key=key)


def _outside_in(module: Module) -> Iterator[Computation]:
    """The bodies of loops in the order in which constants sink into them: a stack of what is called, from the entry on."""
    stack, seen = [module.entry], set()
    while stack:
        computation = stack.pop()
        if computation in seen:
            continue
        seen.add(computation)
        calling = [i for i in computation if i.opcode not in CALLS_NOTHING]
        for i in sorted(calling, key=lambda i: number_of(i.name)):
            if i.opcode == "while":
                yield i.attributes["body"]
            stack += i.called_computations


__all__ = ["in_creation_order", "number_of"]
