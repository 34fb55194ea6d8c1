"""Inventory of a module, collected in one pass for all queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

import attrs

from hlotext.analysis.facts import fact
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape


@attrs.frozen
class Census:
    """The instructions of a module, grouped by category."""

    instructions: Sequence[Instruction]
    """All instructions, computation by computation."""
    by_opcode: Mapping[str, Sequence[Instruction]]
    """Instructions by opcode, in the same order."""
    shapes: Mapping[Shape, tuple[int, Instruction]]
    """Number of instructions with each shape, and the first of them."""
    attribute_sets: Sequence[Instruction]
    """One instruction for each distinct set of attributes; the reader shares sets of equal text."""

    def of(self, *opcodes: str) -> Sequence[Instruction]:
        """The instructions with one of these opcodes, in the order of the text."""
        found = [rows for opcode in opcodes if (rows := self.by_opcode.get(opcode))]
        if len(found) < 2:
            return found[0] if found else ()
        return [one for one in self.instructions if one._head.opcode in opcodes]


@fact
def census(module: Module) -> Census:
    """Counts the instructions of a module by category."""
    every = list(chain.from_iterable([c._instructions for c in module.computations]))
    # What is found by number is found sooner: equal heads and sets of attributes are nearly always one object each.
    heads = [id(one._head) for one in every]
    counts = Counter(heads)
    by_opcode: dict[str, list[Instruction]] = {}
    shapes: dict[Shape, tuple[int, Instruction]] = {}
    rows: dict[int, list[Instruction]] = {}
    for number, first in _first_of_each(heads, every).items():
        rows[number] = by_opcode.setdefault(first.opcode, [])
        if first.shape is not None:
            count, one = shapes.get(first.shape, (0, first))
            shapes[first.shape] = count + counts[number], one
    for number, instruction in zip(heads, every, strict=True):
        rows[number].append(instruction)
    sets = _first_of_each([id(one._attributes) for one in every], every)
    return Census(every, by_opcode, shapes, list(sets.values()))


@fact
def distinct_shapes(module: Module) -> Collection[Shape]:
    """The shapes of all instructions, each once. Equal ones are nearly always one object: by equality takes several times
    as long, and of the few that are not both are here."""
    heads = {id(one._head): one._head for c in module.computations for one in c._instructions}
    return {id(head.shape): head.shape for head in heads.values() if head.shape is not None}.values()


def _first_of_each(keys: list[int], values: list[Instruction]) -> dict[int, Instruction]:
    """The first value of each key, in the order of the values."""
    found = dict(zip(reversed(keys), reversed(values), strict=True))
    return dict(reversed(found.items()))
