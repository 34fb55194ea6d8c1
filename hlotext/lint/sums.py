"""Uses of collectives' results: sums that a loop only accumulates, gathered arrays that are only summed."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hlotext.analysis import Communication
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import results
from hlotext.lint.rounds import Rounds, Same
from hlotext.lint.values import VIEWS, Value, consumers, entered, fetched, source

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
    """True if a reducer is a maximum."""
    return isinstance(reducer, Computation) and len(reducer) > 0 and reducer.root.opcode == "maximum"


def accumulated(one: Communication, rounds: Rounds, same: Same) -> dict[Value, list[int]]:
    """Returns the results of a collective that are only added to slots of loop state that nothing else reads, with the
    slots.

    Compilers combine collectives, such as those of gradients with that of the loss, so each result is judged by itself,
    or each slice if only slices are used.
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
    """Returns the slots to which a value is added; empty if it, or one of the slots, has other uses."""
    found: list[int] = []
    for user, number in linear_users(value, same):
        if user.instruction.opcode != "add":
            return []
        slot = _slot(user.operands()[1 - number], rounds)
        if slot is None or slot in rounds.passed or not _is_only_given_on(user, slot, rounds):
            return []
        found.append(slot)
    return found


def linear_users(value: Value, same: Same) -> list[tuple[Value, int]]:
    """Returns the users of a value with operand numbers, looking through linear operations; empty if there are too
    many.
    """
    found: list[tuple[Value, int]] = []
    pending, seen = [value], 0
    while pending:
        for user, number in users_of(pending.pop(), VIEWS - {"opt-barrier"}):
            seen += 1
            if seen > _MOST_STEPS:
                return []
            opcode = user.instruction.opcode
            if (
                opcode in LINEAR
                and (opcode != "divide" or number == 0)
                and all(is_same(other, same) for k, other in enumerate(user.operands()) if k != number)
            ):
                pending.append(user)
            else:
                found.append((user, number))
    return found


def users_of(value: Value, through: Collection[str]) -> Iterator[tuple[Value, int]]:
    """Yields the users of a value with operand numbers, including users of copies in fast memory."""
    pending, seen = [value], {value}
    while pending:
        for user, number in consumers(pending.pop(), through):
            given = _fetching(user)
            if given is None:
                yield user, number
            elif given not in seen:
                seen.add(given)
                pending.append(given)


def _fetching(user: Value) -> Value | None:
    """The array, or the slice of it, that a user only fetches; None for any other user."""
    one = user.instruction
    if user.fusions:
        return None
    if one.opcode == "async-start":
        done = one.async_chain[-1] if one.async_chain else one
        return Value(done) if fetched(done) is not None else None
    if one.opcode == "custom-call" and fetched(one) is not None:  # slices of one array, joined again
        return user if len({fetched(part) for part in one.operands}) == 1 else None
    return None


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
        elif not value.fusions and (whole := fetched(one)) is not None:
            value = entered(Value(whole))
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
        for user, _ in users_of(Value(element), VIEWS | {"convert", "select"})
    ]
    return all(user.instruction is added.instruction or _is_root(user.instruction, rounds) for user in taken)


def _readers(value: Value, rounds: Rounds) -> Iterator[Value]:
    for user, _ in consumers(value, VIEWS | {"convert"}):
        if not _is_root(user.instruction, rounds):
            yield user


def _is_root(instruction: Instruction, rounds: Rounds) -> bool:
    return instruction is rounds.body.root
