"""Inventory of a module, collected in one pass for all queries."""

from __future__ import annotations

import functools
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from itertools import chain, compress
from typing import Generic, TypeVar, cast

import attrs

from hlotext.analysis.facts import fact
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.raw import NodeHead
from hlotext.ir.values.shape import Shape

T = TypeVar("T")
R = TypeVar("R")


@attrs.frozen
class Shared(Generic[T]):
    """Values of instructions, each distinct value stored once, with an index into them for every instruction in text
    order.
    """

    distinct: Sequence[T]
    """In the order of their first instructions."""
    numbers: Sequence[int]
    """Indices into `distinct`; an array of 32-bit integers."""

    @classmethod
    def of(cls, values: Sequence[T], keys: Sequence[Hashable] | None = None) -> Shared[T]:
        """Deduplicates values by keys that are equal exactly if the values are; by default, by the values themselves."""
        keys = cast("Sequence[Hashable]", values) if keys is None else keys
        known = dict(zip(keys, values, strict=True))
        number = dict(zip(known, range(len(known)), strict=True))
        return cls(list(known.values()), array("i", map(number.__getitem__, keys)))

    def mapped(self, function: Callable[[T], R]) -> Shared[R]:
        """Returns the results of a function, called once per distinct value. Results are deduplicated by identity."""
        results = list(map(function, self.distinct))
        found = Shared.of(results, list(map(id, results)))
        return Shared(found.distinct, array("i", map(found.numbers.__getitem__, self.numbers)))


@attrs.frozen(slots=False)
class Census:
    """The instructions of a module, grouped by opcode, shape and attributes."""

    instructions: Sequence[Instruction]
    """All instructions, grouped by computation."""
    heads: Shared[NodeHead]
    """Opcode and result shape of each instruction. Equal shapes are nearly always the same object."""
    attributes: Shared[Instruction]
    """For each distinct set of attributes, one instruction that has it."""
    by_opcode: Mapping[str, Sequence[Instruction]]
    """Instructions by opcode, each list in the order of `instructions`."""

    @property
    def attribute_sets(self) -> Sequence[Instruction]:
        """One instruction for each distinct set of attributes."""
        return self.attributes.distinct

    @functools.cached_property
    def shapes(self) -> Mapping[Shape, tuple[int, Instruction]]:
        """For each shape, the number of instructions with it and the first such instruction."""
        counts, found = Counter(self.heads.numbers), dict[Shape, tuple[int, Instruction]]()
        first = dict(zip(reversed(self.heads.numbers), reversed(self.instructions), strict=True))
        for number, head in enumerate(self.heads.distinct):
            if head.shape is not None:
                count, one = found.get(head.shape, (0, first[number]))
                found[head.shape] = count + counts[number], one
        return found

    def of(self, *opcodes: str) -> Sequence[Instruction]:
        """Returns the instructions with one of these opcodes, in text order."""
        found = [rows for opcode in opcodes if (rows := self.by_opcode.get(opcode))]
        if len(found) < 2:
            return found[0] if found else ()
        are_wanted = [head.opcode in opcodes for head in self.heads.distinct]
        return list(compress(self.instructions, map(are_wanted.__getitem__, self.heads.numbers)))


@fact
def census(module: Module) -> Census:
    """Groups the instructions of a module by opcode, shape and attributes."""
    every = list(chain.from_iterable([c._instructions for c in module.computations]))
    heads = Shared.of([one._head for one in every])
    attributes = Shared.of(every, [id(one._attributes) for one in every])
    by_opcode: dict[str, list[Instruction]] = {}
    rows = [by_opcode.setdefault(head.opcode, []) for head in heads.distinct]
    for number, instruction in zip(heads.numbers, every, strict=True):
        rows[number].append(instruction)
    return Census(every, heads, attributes, by_opcode)


@fact
def numbered(module: Module) -> Mapping[Instruction, int]:
    """Returns the position of each instruction in `Census.instructions`."""
    every = census(module).instructions
    return dict(zip(every, range(len(every)), strict=True))


@fact
def distinct_shapes(module: Module) -> Collection[Shape]:
    """Returns the shapes of all instructions, deduplicated by identity, which is faster than by equality.

    Equal shapes are nearly always the same object; a few may occur twice.
    """
    heads = {id(one._head): one._head for c in module.computations for one in c._instructions}
    return {id(head.shape): head.shape for head in heads.values() if head.shape is not None}.values()
