"""Sums over devices that a loop stacks, one slice per iteration, and that a loop around it only accumulates."""

from __future__ import annotations

from hlotext.analysis import Communication
from hlotext.analysis.trip_count import counter
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import results
from hlotext.lint.rounds import Rounds, Same, in_calls
from hlotext.lint.selectors import is_zero
from hlotext.lint.slots import before_loops, given_in, stack_writers, taken_out
from hlotext.lint.sums import linear_users, slots_added_to
from hlotext.lint.values import VIEWS, Value, consumers, entered

_CONSTANTS = Same(frozenset(), {})
"""Of an inner loop: what is the same in its iterations may be another for each iteration of the outer one."""
_MOST_STEPS = 50


def accumulated_stacks(one: Communication, inner: Rounds, outer: Rounds, same: Same) -> list[Instruction]:
    """Returns results of a collective in the inner loop that are only stacked, if the outer loop only adds up the
    stacks.

    As in the backward pass of a scan over layers, in a scan over microbatches. A stack is linear in the values written
    to it, since its slices are at positions determined by the inner loop's counter, in zeros.
    """
    whole = in_calls(inner.loop)
    if any(user.opcode != "get-tuple-element" for user in whole.users) or whole.is_root:
        return []
    stacks, ends = {writer: slot for slot, writer in stack_writers(inner, 1)}, taken_out(inner)
    found = []
    for result in results(one):
        writers = linear_users(Value(result), _CONSTANTS)
        if not writers or any(number != 1 or user not in stacks for user, number in writers):
            continue
        if all(
            _is_linear(user, stacks[user], inner) and _is_added_up(ends[stacks[user]], outer, same)
            for user, _ in writers
        ):
            found.append(result)
    return found


def _is_added_up(ends: list[Instruction], outer: Rounds, same: Same) -> bool:
    return bool(ends) and all(slots_added_to(Value(end), outer, same) for end in ends)


def _is_linear(writer: Value, slot: int, rounds: Rounds) -> bool:
    """True if iterations write slices, at known places, into zeros that nothing else sees."""
    base, update, *places = writer.operands()
    stack, part, count = base.instruction.shape, update.instruction.shape, counter(rounds.loop)
    if stack is None or part is None or count is None or len(places) != stack.rank:
        return False
    cut = [d for d in range(stack.rank) if part.dimensions[d] != stack.dimensions[d]]
    if len(cut) != 1 or part.dimensions[cut[0]] != 1 or stack.dimensions[cut[0]] > count.trips:
        return False
    if any(
        number != slot or user.instruction is not rounds.body.root
        for user, number in consumers(writer, VIEWS)
    ):
        return False
    condition = rounds.loop.attributes["condition"]
    if any(user.attributes.get("index") in (None, slot) for user in condition.parameters[0].users):
        return False
    first = given_in(rounds.loop, slot)
    return (
        first is not None
        and is_zero(before_loops(Value(first)))
        and _is_counted(places[cut[0]], rounds, count.element)
    )


def _is_counted(place: Value, rounds: Rounds, counter: int) -> bool:
    """True if a place is computed from constants and a loop's counter, so that it is the same on all devices."""
    pending = [place]
    for _ in range(_MOST_STEPS):
        if not pending:
            return True
        value = entered(pending.pop())
        one = value.instruction
        if one.opcode == "constant" or (not value.fusions and rounds.slot_of(one) == counter):
            continue
        if one.opcode in ELEMENTWISE | VIEWS:
            pending += value.operands()
        elif (first := before_loops(value)) != value:
            pending.append(first)
        else:
            return False
    return False
