"""Copies of a loop's state that go when two iterations are done in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlotext.analysis import Backend
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.metadata import Metadata
from hlotext.lint.helpers import size_of, works
from hlotext.lint.rounds import Rounds, unmoved
from hlotext.lint.rule import Context
from hlotext.lint.values import VIEWS, Value, consumers, entered

_MOST_VALUES = 300
"""Values that are looked at on the way from new state to old."""


def alternates(copies: Sequence[Instruction], rounds: Rounds) -> bool:
    """True if two iterations together need no copy: arrays are swapped, or new values overwrite dead old ones.

    A copy of an old value is for an operation that still reads it.
    """
    return _are_swapped(rounds) or all(
        rounds.slot_of(operand) is None for copy in copies for operand in copy.operands
    )


def _are_swapped(rounds: Rounds) -> bool:
    return any(rounds.slot_of(value) not in (None, slot) for slot, value in enumerate(rounds.given))


def longest_chain(rounds: Rounds) -> int:
    """Returns the number of slots through which a value moves: unrolling that many iterations needs no copy.

    Two for arrays that are swapped, and for a new value that becomes the previous one; more for a longer history.
    """
    before = {
        slot: source
        for slot, value in enumerate(rounds.given)
        if (source := rounds.slot_of(value)) not in (None, slot)
    }
    longest = 1
    for slot in before:
        seen = {slot}
        while (source := before.get(slot)) is not None and source not in seen:
            seen.add(source)
            slot = source
        longest = max(longest, len(seen))
    return longest


def keeps_copies(copies: Sequence[Instruction], rounds: Rounds, context: Context) -> bool:
    """True if copies remain in a body unrolled twice: it already is, or the compiler fuses both iterations.

    Then the result of the second still reads the state before the first. The CPU compiler does so if one fusion
    computes new state from old with nothing written in between, for no other reader; this takes more time than two
    separate iterations.
    """
    if _are_swapped(rounds):  # what one iteration does is not done yet as often as they need
        return False
    for value in map(Value, _written(copies, rounds)):
        slots = [number for number, given in enumerate(rounds.given) if unmoved(given) is value.instruction]
        if any(_is_repeated(value, slot, rounds) for slot in slots):
            return True
        writer = value.writer
        made = writer.operands[0] if writer.opcode == "get-tuple-element" else writer
        if (
            context.backend is Backend.CPU
            and made.opcode == "fusion"
            and all(user in copies or user.is_root for user in writer.users)
            and all(not works(operand) for operand in map(unmoved, made.operands))
        ):
            return True
    return False


def joins_parts(copies: Sequence[Instruction], rounds: Rounds) -> bool:
    """True if new state is a concatenation, which the GPU compiler duplicates for each reader in a longer body."""
    return any(
        entered(Value(value)).instruction.opcode == "concatenate" for value in _written(copies, rounds)
    )


def is_stacked(copy: Instruction) -> bool:
    """True if the copied state is also stacked, as scan does for the backward pass, so that it outlives the iteration."""
    return any(
        user.instruction.opcode == "dynamic-update-slice"
        and size_of(user.instruction.shape) > size_of(copy.shape)
        for value in (copy, *copy.operands)
        for user, _ in consumers(Value(value), VIEWS)
    )


def written_beside(copies: Sequence[Instruction], rounds: Rounds) -> int:
    """Returns the bytes that an iteration writes besides its state, which may grow if two iterations are merged.

    If there are intermediate arrays, the GPU compiler fuses operations differently in the longer body.
    """
    kept = {*copies}
    for value in map(unmoved, rounds.given):
        kept |= {value, *(value.operands if value.opcode == "get-tuple-element" else ())}
    return sum(size_of(one.shape) for one in rounds.body if works(one) and one not in kept)


def _written(copies: Sequence[Instruction], rounds: Rounds) -> Iterator[Instruction]:
    """The values that the slots of copied state get, without their copies."""
    for copy in copies:
        slot = rounds.slot_of(copy)
        yield unmoved(copy if slot is None else rounds.given[slot])


def _is_repeated(value: Value, slot: int, rounds: Rounds) -> bool:
    """True if the same operation of the program computes a value and, of the state before, all that it is computed from: the
    body has several iterations.
    """
    last = entered(value)
    metadata = last.instruction.metadata
    if metadata is None or not metadata.op_name:
        return False
    pending, seen, is_found = last.operands(), {last}, False
    while pending and len(seen) < _MOST_VALUES:
        current = entered(pending.pop())
        if current in seen:
            continue
        seen.add(current)
        one = current.instruction
        if not current.fusions and rounds.slot_of(one) == slot:
            return False  # one iteration may have the operation twice
        if (
            one.opcode == last.instruction.opcode
            and one.shape == last.instruction.shape
            and _place(one.metadata) == _place(metadata)
        ):
            is_found = True
        else:
            pending += current.operands()
    return is_found


def _place(metadata: Metadata | None) -> tuple[object, ...]:
    if metadata is None:
        return ()
    return metadata.op_name, metadata.stack_frame_id, metadata.source_file, metadata.source_line
