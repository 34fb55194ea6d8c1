"""Slots of a loop's state: what fills them before the loop, what takes them after it, and the memory that they lie in."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import is_computed_again, size_of
from hlotext.lint.rounds import Rounds, in_calls, moves, unmoved
from hlotext.lint.rule import Context
from hlotext.lint.training import is_backward
from hlotext.lint.values import VIEWS, Value, consumers, formula, source

SMALL = 8
"""Minimum ratio of a stack's size to one slice of it, and to the sums that are made of it."""


def given_in(loop: Instruction, slot: int) -> Instruction | None:
    """Returns the initial value of a slot; None if the initial state is not a visible tuple."""
    state = source(Value(in_calls(loop).operands[0]), VIEWS).instruction
    return state.operands[slot] if state.opcode == "tuple" and slot < len(state.operands) else None


def taken_out(rounds: Rounds) -> list[list[Instruction]]:
    """Returns the get-tuple-elements of a loop's result for each slot."""
    found: list[list[Instruction]] = [[] for _ in rounds.given]
    for one in in_calls(rounds.loop).users:
        slot = one.attributes.get("index")
        if one.opcode == "get-tuple-element" and isinstance(slot, int) and slot < len(found):
            found[slot].append(one)
    return found


def written_at(value: Instruction) -> list[object]:
    """Returns the writers of an array for `Context.saved_peak`, including a fusion with several results or an
    asynchronous one.
    """
    made = source(Value(value), VIEWS)
    written = unmoved(value)
    return [
        made.writer,
        written,
        written.async_wrapped_instruction,
        *((one, (written.attributes.get("index"),)) for one in written.operands[:1]),
    ]


def before_loops(value: Value) -> Value:
    """Returns the initial value of a slot that no iteration changes, out of nested loops; else the value itself."""
    for _ in range(_MOST_LOOPS):
        made = source(value, VIEWS)
        first = _unchanged_in_loop(made.instruction) if not made.fusions else None
        if first is None:
            break
        value = Value(first)
    return value


def _unchanged_in_loop(element: Instruction) -> Instruction | None:
    """The initial value of the slot that an instruction is an element of; None if an iteration may change it."""
    body, slot = element.computation, element.attributes.get("index")
    if element.opcode != "get-tuple-element" or body is None or not isinstance(slot, int):
        return None
    (state,) = element.operands
    callers = body.callers
    if state.opcode != "parameter" or len(callers) != 1 or callers[0].attributes.get("body") is not body:
        return None
    given = unmoved(body.root.operands[slot]) if body.root.opcode == "tuple" else body.root
    if (
        given.opcode != "get-tuple-element"
        or given.operands[0] is not state
        or given.attributes.get("index") != slot
    ):
        return None
    return given_in(callers[0], slot)


_MOST_LOOPS = 8


def memory_of(rounds: Rounds, slot: int) -> list[object]:
    """Returns the writers of a slot's memory for `Context.saved_peak`: before the loop, in iterations, and the loop
    itself.
    """
    bodies = [parameter for callee in rounds.loop.called_computations for parameter in callee.parameters]
    first = given_in(rounds.loop, slot)
    places = written_at(rounds.given[slot])
    if first is not None:
        places += [*written_at(first), *moves(first)]  # of zeros that fill several slots each has a copy
    return [*places, *((one, (slot,)) for one in (rounds.loop, *bodies))]


def stacks(rounds: Rounds, times: int = SMALL) -> Iterator[tuple[int, Instruction]]:
    """Yields the slots into which each iteration only writes a slice, with the written value."""
    for slot, writer in stack_writers(rounds, times):
        yield slot, writer.instruction.operands[1]


def stack_writers(
    rounds: Rounds, times: int = SMALL, may_read: Callable[[Value, Value], bool] | None = None
) -> Iterator[tuple[int, Value]]:
    """Yields the slots into which each iteration only writes a slice, with the dynamic-update-slice."""
    for slot, given in enumerate(rounds.given):
        if slot in rounds.passed:
            continue
        writer = source(Value(given), VIEWS)
        if writer.instruction.opcode != "dynamic-update-slice":
            continue
        changed, update = writer.operands()[:2]
        kept = source(changed, VIEWS)
        if kept.fusions or rounds.slot_of(kept.instruction) != slot:
            continue
        if times * size_of(update.instruction.shape) > size_of(given.shape):
            continue
        readers = [user for element in rounds.elements[slot] for user, _ in consumers(Value(element), _MOVED)]
        others = [user for user in readers if user.instruction is not writer.instruction]
        if all(
            _only_keeps_old(user, writer) or (may_read is not None and may_read(user, writer))
            for user in others
        ):
            yield slot, writer


_MOVED = VIEWS | {"copy"}


def _only_keeps_old(user: Value, writer: Value) -> bool:
    """True for the old slice that a masked write leaves where its place is out of bounds, as `.at[i].set` writes."""
    one = user.instruction
    if one.opcode != "dynamic-slice" or one.shape != writer.instruction.operands[1].shape:
        return False
    if list(map(formula, user.operands()[1:])) != list(map(formula, writer.operands()[2:])):
        return False
    return all(
        then.instruction.opcode == "select" and number == _ELSE for then, number in consumers(user, VIEWS)
    )


_ELSE = 2


# ---- stacks that a forward pass keeps for the backward pass


def backward_loops(context: Context) -> list[Instruction]:
    """Returns the loops of a backward pass."""
    return [loop for loop in context.census.by_opcode.get("while", ()) if is_backward(loop)]


def handed_to(loop: Instruction) -> list[Instruction]:
    """Returns the initial values of a loop, looking through views; empty if it recomputes what it needs."""
    state = source(Value(in_calls(loop).operands[0]), VIEWS).instruction
    if state.opcode != "tuple" or any(map(is_computed_again, loop.attributes["body"])):
        return []
    return [source(Value(operand), VIEWS).instruction for operand in state.operands]
