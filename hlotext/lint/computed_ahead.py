"""Arrays that are computed before a loop by broadcasting, of which each iteration only reads its own slice."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import only_does, size_of
from hlotext.lint.rounds import Rounds, stepped_rounds
from hlotext.lint.rule import Context
from hlotext.lint.slots import given_in
from hlotext.lint.values import VIEWS, Value, consumers, elements_of, made_of

_TIMES = 4
"""Minimum ratio of such an array to those that it is computed from."""
_LEAST_ROUNDS = 8
_MOST_STEPS = 20


@attrs.frozen(eq=False)
class Ahead:
    """An array computed before a loop whose iterations each read a slice of it, and that nothing else reads."""

    rounds: Rounds
    array: Instruction
    """The computed array, as a result of its operation."""
    copies: tuple[Instruction, ...]
    """Operations that only copy it before the loop."""
    made_of: tuple[Value, ...]
    """The smaller arrays that it is computed from."""
    readers: frozenset[Instruction]
    """The operations of an iteration that read a slice."""

    @property
    def writer(self) -> Instruction:
        """The operation that computes the array, perhaps with other results."""
        return self.array.operands[0] if self.array.opcode == "get-tuple-element" else self.array


def computed_ahead(context: Context) -> Iterator[Ahead]:
    """Yields arrays that are computed elementwise before a loop from at most a quarter as many elements."""
    for rounds in stepped_rounds(context):
        count = context.prices.trips(rounds.loop)
        if count < _LEAST_ROUNDS:
            continue
        for slot in sorted(rounds.passed):
            first = given_in(rounds.loop, slot)
            readers = sliced_by(rounds, slot, count) if first is not None else frozenset()
            if first is None or not readers:
                continue
            array, copies = computed(first, context)
            most = elements_of(array.shape) // _TIMES
            made = made_of(Value(array), most) if array.opcode in ("fusion", "get-tuple-element") else None
            if made is not None and _is_data(made, count):
                yield Ahead(rounds, array, tuple(copies), tuple(made), readers)


def sliced_by(rounds: Rounds, slot: int, count: int) -> frozenset[Instruction]:
    """Returns the operations that read a slice of a slot's array in each iteration; empty if anything else reads it."""
    whole, slices = elements_of(rounds.given[slot].shape), read_by(rounds, slot, _SLICING)
    if any(elements_of(one.instruction.shape) * count > whole for one in slices):
        return frozenset()
    return frozenset(one.writer for one in slices)


_SLICING = frozenset({"dynamic-slice"})


def read_by(rounds: Rounds, slot: int, opcodes: frozenset[str]) -> frozenset[Value]:
    """Returns the operations with these opcodes that take parts of a slot's array; empty if anything else reads it."""
    readers = set[Value]()
    for element in rounds.elements[slot]:
        for user, number in consumers(Value(element), VIEWS):
            if user.instruction is rounds.body.root and not user.fusions:
                continue
            if user.instruction.opcode not in opcodes or number:
                return frozenset()
            readers.add(user)
    return frozenset(readers)


def computed(first: Instruction, context: Context) -> tuple[Instruction, list[Instruction]]:
    """Returns the value of which an operand is a copy, and the copies, as long as each has no other users."""
    array, copies = first, list[Instruction]()
    for _ in range(_MOST_STEPS):
        is_copy = any(only_does(array, opcode, context) for opcode in ("copy", "transpose"))
        if len(array.users) != 1 or not array.operands or (array.opcode not in VIEWS and not is_copy):
            break
        if is_copy and size_of(array.shape):
            copies.append(array)
        array = array.operands[0]
    return array, copies


def _is_data(made: list[Value], count: int) -> bool:
    """True if arrays of the program are what it is computed from, not a key of random numbers, positions or constants."""
    given = [one for one in made if not one.fusions]
    generated = all(one.instruction.opcode in ("constant", "iota") for one in made if one.fusions)
    return generated and sum(elements_of(one.instruction.shape) for one in given) >= count
