"""Results that a loop stacks, one slice for each iteration, of which only a part or a sum is used."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text, total_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.demand import Demand, fraction
from hlotext.lint.demanded import demands
from hlotext.lint.helpers import size_of
from hlotext.lint.rounds import Rounds, stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.slots import SMALL, given_in, in_calls, memory_of, stacks, taken_out
from hlotext.lint.values import VIEWS, Value, consumers

_HALF = 0.5
_MOST_STEPS = 200
_SUMMED = VIEWS | {"convert", "transpose"}


class StackedResults(Rule):
    code = "M115"
    name = "stacked-results"
    title = "stacked loop results used only in part or as a sum"
    waste = "held"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for rounds in stepped_rounds(context):
            asked = demands(context.module).get(in_calls(rounds.loop))
            taken = taken_out(rounds)
            for slot, writer in stacks(rounds):
                needed = asked.get(slot) if isinstance(asked, dict) else None
                report = _partly_used(rounds, slot, writer, needed, context) or _summed(
                    rounds, slot, writer, taken[slot], context
                )
                if report is not None:  # the stacked results are not only partly used
                    yield report


def _partly_used(
    rounds: Rounds, slot: int, update: Instruction, needed: object, context: Context
) -> Report | None:
    shape = rounds.given[slot].shape
    if not isinstance(needed, Demand) or fraction(needed, shape) > _HALF:
        return None
    part = fraction(needed, shape)
    return _report(
        rounds,
        slot,
        update,
        1 - part,
        f"only {100 * part:.2g} % of which is used",
        "return only what is used: the last value from the loop state, every k-th from an outer scan over an inner "
        "lax.fori_loop of k iterations",
        context,
    )


def _summed(
    rounds: Rounds, slot: int, update: Instruction, elements: list[Instruction], context: Context
) -> Report | None:
    """Of a stack of which only sums are used the sums of each slice would do, or one that is added up on the way."""
    whole, made = size_of(rounds.given[slot].shape), 0
    pending, seen = [Value(one) for one in elements], set[Value]()
    readers = set[Instruction]()
    while pending and len(seen) < _MOST_STEPS:
        for user, number in consumers(pending.pop(), _SUMMED):
            one = user.instruction
            if _is_sum(one, number):
                made += size_of(one.shape)
                readers.add(user.writer)
            elif one.opcode not in ELEMENTWISE:
                return None
            elif user not in seen:
                seen.add(user)
                pending.append(user)
    if not made or pending or SMALL * made > whole or any(one.is_root for one in elements):
        return None
    return _report(
        rounds,
        slot,
        update,
        1.0,
        "of which only reductions are used",
        "reduce in the body, and return or accumulate the result",
        context,
        min(
            context.prices.reading(whole * context.runs(in_calls(rounds.loop))),
            context.prices.together(readers),
        ),
    )


def _is_sum(one: Instruction, number: int) -> bool:
    """True for a reduction of an operand, and for a product in which each iteration's slice is of the batch."""
    if one.opcode == "dot":
        return 0 in tuple(one.attributes.get("rhs_batch_dims" if number else "lhs_batch_dims") or ())
    return one.opcode == "reduce" and number < len(one.operands) // 2


def _report(
    rounds: Rounds,
    slot: int,
    update: Instruction,
    part: float,
    use: str,
    remedy: str,
    context: Context,
    reading: float = 0.0,
) -> Report | None:
    """`reading` are the seconds in which it is read behind the loop, and need not be."""
    if given_in(rounds.loop, slot) is None:
        return None
    size = total_of(rounds.given[slot].shape).allocated_bytes
    writing = context.prices.reading(size * context.runs(in_calls(rounds.loop)))
    return Report(
        rounds.given[slot],
        f"a loop stacks {byte_text(size)} over {context.prices.trips(rounds.loop):,} iterations, {use}",
        remedy,
        round(size * part),
        is_held=True,
        seconds=reading + min(writing, context.prices.seconds(update)) if reading else None,
        spares=dict.fromkeys(memory_of(rounds, slot), part),
        origin=update,
    )
