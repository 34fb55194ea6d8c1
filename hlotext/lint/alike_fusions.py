"""Fusions that are alike, as those of repeated layers: of them one is looked at for all."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import chain

import attrs

from hlotext.analysis import fact
from hlotext.analysis.equal_computations import equal_computations
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module

_DECIDING = {"compare": slice(None), "select": slice(1), "dynamic-slice": slice(1, None)}
"""Opcodes whose operands decide which elements are used or zero, with these operands."""
ENTERED = ROLES.keys() | {"call", "fusion"}
"""Opcodes whose computations are looked into, as parts of the instruction."""
_OF_ITS_OWN = frozenset({"gather", "scatter"})
"""Opcodes that pick elements for which equal ones are not taken."""


@fact
def alike(module: Module) -> Alike:
    """Returns the equal fusions of a module."""
    return Alike(module)


@attrs.frozen
class Likeness:
    """The part of a fusion that is equal in others."""

    key: Hashable
    """Equal for equal bodies that are given the same values where they compare, select or slice by them."""
    others: tuple[Instruction, ...]
    """The other operands: equal bodies do the same to them."""


class Alike:
    """Equal fusion bodies, with the parameters by which they compare, select and slice."""

    def __init__(self, module: Module) -> None:
        self._first = equal_computations(module)
        self._deciding: dict[Computation, frozenset[int] | None] = {}
        self._numbers: dict[Computation, dict[Instruction, int]] = {}
        self._opcodes: dict[Computation, frozenset[str]] = {}
        self._opcodes_of: dict[Instruction, frozenset[str]] = {}
        """Of what enters computations."""
        self._likeness: dict[Instruction, Likeness | None] = {}
        self._places: dict[tuple[Computation, frozenset[str]], list[int]] = {}

    def first(self, body: Computation) -> Computation:
        """Returns the first of the computations that are equal to this one."""
        return self._first[body]

    def number(self, instruction: Instruction) -> int:
        """Returns the index of an instruction in its computation."""
        home = instruction.computation
        assert home is not None
        if home not in self._numbers:
            self._numbers[home] = {one: n for n, one in enumerate(home)}
        return self._numbers[home][instruction]

    def opcodes(self, instruction: Instruction) -> frozenset[str]:
        """Returns the opcodes of `parts_of`: the instruction's, or those in its fusion, call or asynchronous body,
        nested ones included.
        """
        opcode = instruction.opcode
        if opcode not in ENTERED:
            return frozenset({opcode})
        known = self._opcodes_of.get(instruction)
        if known is None:
            bodies = instruction.called_computations
            known = self._opcodes_of[instruction] = (
                self._opcodes_in(bodies[0])  # equal bodies share the set
                if len(bodies) == 1
                else frozenset(chain.from_iterable(map(self._opcodes_in, bodies)))
            )
        return known

    def parts(self, instruction: Instruction, opcodes: frozenset[str]) -> list[Instruction]:
        """Returns the instructions of `parts_of` with these opcodes, in order; equal bodies have them at the same
        indices.
        """
        opcode = instruction.opcode
        if opcode not in ENTERED:
            return [instruction] if opcode in opcodes else []
        found: list[Instruction] = []
        if self.opcodes(instruction).isdisjoint(opcodes):
            return found
        for body in reversed(instruction.called_computations):
            key = self._first[body], opcodes
            if key not in self._places:
                wanted = opcodes | ENTERED
                self._places[key] = [n for n, one in enumerate(key[0]) if one.opcode in wanted][::-1]
            inside = body.instructions if self._places[key] else ()
            for place in self._places[key]:
                found += self.parts(inside[place], opcodes)
        return found

    def _opcodes_in(self, body: Computation) -> frozenset[str]:
        first = self._first[body]
        known = self._opcodes.get(first)
        if known is None:
            found = {one.opcode for one in first}
            if not found.isdisjoint(ENTERED):
                found.difference_update(ENTERED)
                found.update(*[self.opcodes(one) for one in first if one.opcode in ENTERED])
            known = self._opcodes[first] = frozenset(found)
        return known

    def of(self, fusion: Instruction, body: Computation) -> Likeness | None:
        """Returns the likeness of a fusion that is not nested; None if it selects elements of its own."""
        if fusion not in self._likeness:
            self._likeness[fusion] = self._of(self._first[body], fusion.operands)
        return self._likeness[fusion]

    def _of(self, first: Computation, operands: tuple[Instruction, ...]) -> Likeness | None:
        if first not in self._deciding:
            self._deciding[first] = _deciding(first)
        deciding = self._deciding[first]
        if deciding is None:
            return None
        if not deciding:
            return Likeness(first, operands)
        key = (first, *[one for n, one in enumerate(operands) if n in deciding])
        return Likeness(key, tuple(one for n, one in enumerate(operands) if n not in deciding))


def _deciding(body: Computation) -> frozenset[int] | None:
    """The numbers of the parameters that decide; None if it picks elements of its own."""
    pending: list[Instruction] = []
    for one in body:
        if one.opcode in _OF_ITS_OWN:
            return None
        if one.opcode in _DECIDING:
            pending += one.operands[_DECIDING[one.opcode]]
        for inner in one.called_computations if one.opcode == "fusion" else ():
            numbers = _deciding(inner)
            if numbers is None:
                return None
            pending += [operand for n, operand in enumerate(one.operands) if n in numbers]
    return frozenset(one.parameter_number or 0 for one in _behind(pending) if one.opcode == "parameter")


def _behind(pending: list[Instruction]) -> Iterator[Instruction]:
    seen = set(pending)
    while pending:
        one = pending.pop()
        yield one
        more = [operand for operand in one.operands if operand not in seen]
        seen.update(more)
        pending += more
