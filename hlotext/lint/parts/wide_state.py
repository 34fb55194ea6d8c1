"""Loop state that was upcast before the loop although only narrow data is written to it."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text
from hlotext.analysis.entries import aliases_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import pieces, size_of
from hlotext.lint.rounds import Rounds, stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.slots import given_in, memory_of, taken_out
from hlotext.lint.values import VIEWS, Value, source
from hlotext.lint.wording import every_round

_MOVED = VIEWS | traits.KEEPS_ELEMENTS | traits.REPEATS_ELEMENTS | {"dynamic-slice", "slice"}
_NARROW = 16
"""Bits of the types that are narrow."""
_CONVERTING = VIEWS | traits.KEEPS_ELEMENTS | {"convert", "parameter"}


class WideState(Rule):
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for rounds in stepped_rounds(context):
            slots = [slot for slot in range(len(rounds.given)) if _is_widened(rounds, slot)]
            if slots:  # no loop state is wider than the data written to it
                yield _report(rounds, slots, context)


def _is_widened(rounds: Rounds, slot: int) -> bool:
    """True if an f32 slot begins with narrow data, and only narrow data are written into parts of it."""
    first, given = given_in(rounds.loop, slot), rounds.given[slot]
    if slot in rounds.passed or first is None or not _is_f32(given) or not was_narrow(Value(first)):
        return False
    value = source(Value(given), VIEWS)
    for _ in range(len(rounds.body)):
        if value.instruction.opcode not in ("dynamic-update-slice", "scatter"):
            break
        operands = value.operands()
        update = operands[-1] if value.instruction.opcode == "scatter" else operands[1]
        if not was_narrow(update):
            return False
        value = source(operands[0], VIEWS)
    return value.instruction is not given and not value.fusions and rounds.slot_of(value.instruction) == slot


def was_narrow(value: Value) -> bool:
    """True if a value is converted from a narrow floating-point type."""
    made = source(value, _MOVED)
    before = made.instruction.operands[0].shape if made.instruction.opcode == "convert" else None
    return (
        before is not None
        and before.is_array
        and before.element_type.is_floating
        and before.element_type.bits <= _NARROW
    )


def _is_f32(one: Instruction) -> bool:
    return one.shape is not None and one.shape.is_array and one.shape.element_type.name == "f32"


def _report(rounds: Rounds, slots: list[int], context: Context) -> Report:
    prices, seconds, taken = context.prices, 0.0, taken_out(rounds)
    shares: dict[object, float] = {}
    for slot in slots:
        given = rounds.given[slot]
        half = prices.reading(size_of(given.shape) / 2)
        readers = {user for one in (given, *rounds.elements[slot]) for user in one.users} - {
            given,
            rounds.body.root,
        }
        seconds += sum(min(prices.seconds(one), half * context.runs(one)) for one in readers)
        first = given_in(rounds.loop, slot)
        ends = [user for one in taken[slot] for user in one.users]
        seconds += sum(
            prices.seconds(one) for one in {first, *ends} if one is not None and _only_converts(one)
        )
        # The narrow array is there before the loop: where its memory is taken over, none is needed besides.
        shares |= dict.fromkeys(memory_of(rounds, slot), 1.0 if _is_taken_over(first, context) else 0.5)
    size = sum(size_of(rounds.given[slot].shape) for slot in slots)
    count = prices.trips(rounds.loop)
    return Report(
        rounds.given[slots[0]],
        f"{byte_text(size)} of loop state is kept in f32 although the data was narrower, and is read "
        f"{every_round(count, rounds.loop not in prices.rounds)}",
        "carry it in its original narrow type, and widen it where it is read: einsum(..., "
        "preferred_element_type=jnp.float32)",
        seconds=seconds,
        spares=shares,
        cause=f"state of {rounds.loop.name}",
    )


def _only_converts(one: Instruction) -> bool:
    return {part.opcode for part in pieces(one)} <= _CONVERTING


def _is_taken_over(first: Instruction | None, context: Context) -> bool:
    """True if what was widened is an argument in whose memory a result lies."""
    if first is None:
        return False
    made = source(Value(first), _MOVED | {"convert"}).instruction
    taken = {one.parameter_number for one in aliases_of(context.module)}
    return made.opcode == "parameter" and made.parameter_number in taken
