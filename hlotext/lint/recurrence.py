"""Values of a loop that its state does not determine: only counters do, and arrays that no iteration changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hlotext.analysis.loops import operands_first
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import size_of
from hlotext.lint.rounds import Purity, Rounds, Same
from hlotext.lint.slots import given_in, stacks, taken_out
from hlotext.lint.sums import is_same
from hlotext.lint.values import VIEWS, Value, consumers, entered, is_computed_from, source

_MOST_STEPS = 200
_STACKED = VIEWS | {"convert", "transpose"}


def apart_from_state(rounds: Rounds, purity: Purity, fixed: Collection[int]) -> frozenset[Instruction]:
    """Returns the instructions of a loop body that do not depend on earlier iterations, except through counters.

    Of loop-invariant slots, they depend on no others than `fixed`.
    """
    counters = {
        slot
        for slot, given in enumerate(rounds.given)
        if slot not in rounds.passed
        and given.shape is not None
        and given.shape.is_array
        and not given.shape.rank
    }
    order = operands_first(rounds.body)
    while True:
        found = _made_of({*fixed, *counters}, rounds, order, purity)
        wrong = {slot for slot in counters if rounds.given[slot] not in found}
        if not wrong:
            return found
        counters -= wrong


def _made_of(
    slots: Collection[int], rounds: Rounds, order: Sequence[Instruction], purity: Purity
) -> frozenset[Instruction]:
    found: set[Instruction] = set()
    for one in order:
        if one.opcode == "get-tuple-element" and one.operands[0].opcode == "parameter":
            if one.attributes.get("index") in slots:
                found.add(one)
        elif purity.is_pure(one) and all(operand in found for operand in one.operands):
            found.add(one)
    return frozenset(found)


def is_made_of(value: Value, known: Collection[Instruction], purity: Purity) -> bool:
    """True if a value, possibly inside fusions, is computed only from these instructions of a body."""
    return is_computed_from(
        value, known.__contains__, lambda one: one.opcode != "parameter" and purity.is_pure(one), _MOST_STEPS
    )


def not_of_loops(rounds: Rounds) -> frozenset[int]:
    """Returns the loop-invariant slots, except those that another loop computed, such as residuals for a backward pass."""
    found = set()
    for slot in rounds.passed:
        first = given_in(rounds.loop, slot)
        if first is None or not _is_of_loop(source(Value(first), VIEWS).instruction):
            found.add(slot)
    return frozenset(found)


def _is_of_loop(one: Instruction) -> bool:
    return one.opcode == "get-tuple-element" and one.operands[0].opcode in traits.CONTROL_FLOW


def only_stacked(value: Value, rounds: Rounds, same: Same) -> frozenset[Instruction]:
    """Returns the operations through which a value flows if it only flows into stacked results of the loop; else empty.

    They work on its elements and rows, such as softmax or further matmuls, together with loop-invariant values.
    """
    updates = {update for slot, update in stacks(rounds) if taken_out(rounds)[slot]}
    pending, derived, found = [value], {value}, False
    others: list[Value] = []
    while pending:
        for user, number in consumers(pending.pop(), _STACKED):
            made = user.instruction
            if made.opcode == "dynamic-update-slice" and number == 1 and _writes(user, updates):
                found = True
                continue
            if len(derived) >= _MOST_STEPS or made.opcode not in _OF_ROWS:
                return frozenset()
            if size_of(made.shape) > _MOST_LARGER * size_of(value.instruction.shape):
                return frozenset()
            others += [other for k, other in enumerate(user.operands()) if k != number]
            if user not in derived:
                derived.add(user)
                pending.append(user)
    if not found or not all(source(other, _STACKED) in derived or is_same(other, same) for other in others):
        return frozenset()
    return frozenset(one.writer for one in derived)


_OF_ROWS = ELEMENTWISE | traits.REDUCTIONS | traits.DOTS | {"broadcast"}
_MOST_LARGER = 8
"""Maximum ratio of what is made of a value to the value: all of it is held for all iterations."""


def _writes(user: Value, updates: Collection[Instruction]) -> bool:
    return user.instruction.operands[1] in updates or _seen(user.operands()[1]) in updates


def _seen(value: Value) -> Instruction:
    value = entered(value)
    for _ in range(_MOST_STEPS):
        if value.instruction.opcode not in VIEWS or not value.instruction.operands:
            break
        value = entered(value.operands()[0])
    return value.instruction
