"""Uses of collectives' results: sums that a loop only accumulates, gathered arrays that are only summed."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import Communication
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import results
from hlotext.lint.rounds import Rounds, Same
from hlotext.lint.values import VIEWS, Value, consumers, entered, source

LINEAR = (
    frozenset({"convert", "copy", "multiply", "divide", "negate", "transpose", "slice", "reduce-precision"})
    | VIEWS
)
"""Opcodes whose result is linear in the first operand where the others do not change."""
_MOST_STEPS = 200


def adds(reducer: object) -> bool:
    """True if a reducer is a sum."""
    return isinstance(reducer, Computation) and len(reducer) > 0 and reducer.root.opcode == "add"


def takes_most(reducer: object) -> bool:
    """True if a reducer takes the maximum."""
    return isinstance(reducer, Computation) and len(reducer) > 0 and reducer.root.opcode == "maximum"


def accumulated(one: Communication, rounds: Rounds, same: Same) -> dict[Value, list[int]]:
    """The results of a collective that are only added to slots of a loop's state which nothing else reads, with the slots.

    Compilers join collectives, as those of gradients with that of the loss: each result, and each slice where only slices
    are used, counts for itself.
    """
    found: dict[Value, list[int]] = {}
    for result in results(one):
        whole = Value(result)
        users = [user for user, _ in consumers(whole, VIEWS - {"opt-barrier"})]
        is_cut = bool(users) and all(user.instruction.opcode == "slice" for user in users)
        for value in users if is_cut else [whole]:
            if slots := slots_added_to(value, rounds, same):
                found[value] = slots
    return found


def slots_added_to(value: Value, rounds: Rounds, same: Same) -> list[int]:
    """The slots that a value is added to; empty if anything else is done with it, or anything else reads the slots."""
    found: list[int] = []
    pending, seen = [value], 0
    while pending:
        for user, number in consumers(pending.pop(), VIEWS - {"opt-barrier"}):
            seen += 1
            if seen > _MOST_STEPS:
                return []
            made = user.instruction
            if made.opcode == "add":
                slot = _slot(user.operands()[1 - number], rounds)
                if slot is None or slot in rounds.passed or not _is_only_given_on(user, slot, rounds):
                    return []
                found.append(slot)
            elif made.opcode in LINEAR and all(
                is_same(other, same) for k, other in enumerate(user.operands()) if k != number
            ):
                if made.opcode == "divide" and number != 0:
                    return []
                pending.append(user)
            else:
                return []
    return found


def _slot(value: Value, rounds: Rounds) -> int | None:
    """The slot whose value is added to; in the first round, as the TPU compiler writes it, zeros in its place."""
    value = entered(value)
    for _ in range(_MOST_STEPS):
        one = value.instruction
        if one.opcode in ("bitcast", "copy", "convert") and one.operands:
            value = entered(value.operands()[0])
        elif one.opcode == "select" and len(one.operands) == 3:
            kept = [choice for choice in value.operands()[1:] if not _is_filled(choice)]
            if len(kept) != 1:
                return None
            value = entered(kept[0])
        else:
            break
    return None if value.fusions else rounds.slot_of(value.instruction)


def _is_filled(value: Value) -> bool:
    return source(value, ("broadcast",)).instruction.opcode == "constant"


def is_same(value: Value, same: Same) -> bool:
    value = entered(value)
    while value.instruction.opcode in ("broadcast", "bitcast", "convert") and value.instruction.operands:
        value = entered(value.operands()[0])
    return value.instruction.opcode == "constant" or (not value.fusions and value.instruction in same.whole)


def _is_only_given_on(added: Value, slot: int, rounds: Rounds) -> bool:
    """True if a sum goes to the next round alone, at the place of what was added to, which nothing else reads."""
    if any(True for _ in _readers(added, rounds)):
        return False
    taken = [
        user
        for element in rounds.elements[slot]
        for user, _ in consumers(Value(element), VIEWS | {"convert", "select"})
    ]
    return all(user.instruction is added.instruction or _is_root(user.instruction, rounds) for user in taken)


def _readers(value: Value, rounds: Rounds) -> Iterator[Value]:
    for user, _ in consumers(value, VIEWS | {"convert"}):
        if not _is_root(user.instruction, rounds):
            yield user


def _is_root(instruction: Instruction, rounds: Rounds) -> bool:
    return instruction is rounds.body.root
