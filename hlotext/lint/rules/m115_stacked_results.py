"""Results that a loop stacks, one slice for each iteration, of which only a part or a sum is used."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text, total_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape
from hlotext.lint.demand import Demand, fraction
from hlotext.lint.demanded import demands
from hlotext.lint.helpers import size_of
from hlotext.lint.masks import iterations_apart
from hlotext.lint.rounds import Rounds, in_calls, parts_of, stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.slots import SMALL, given_in, memory_of, stack_writers, stacks, taken_out
from hlotext.lint.values import (
    VIEWS,
    Value,
    behind_views,
    consumers,
    formula,
    is_spread,
    result_elements,
)

_HALF = 0.5
_MOST_STEPS = 200
_STACKING = VIEWS | ELEMENTWISE | traits.REPEATS_ELEMENTS | traits.SOURCES | traits.UPDATES_ELEMENTS
"""Opcodes of fusions that only write a slice, or compute it from arrays that a reduction would read instead."""
_CARRY = "carry the slices that the next iteration reads as loop state, and "
_STARTED = 2
"""Kernels of a reduction in each iteration."""
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
            taken, apart = taken_out(rounds), dict(stacks(rounds))
            for slot, writer in stack_writers(rounds, may_read=_is_of_earlier):
                needed, update = (
                    asked.get(slot) if isinstance(asked, dict) else None,
                    writer.instruction.operands[1],
                )
                report = _partly_used(rounds, slot, update, needed, context, reads_earlier=slot not in apart)
                if report is None and slot in apart:
                    report = _summed(rounds, slot, update, taken[slot], context)
                if report is not None:  # the stacked results are not only partly used
                    yield report


def _is_of_earlier(user: Value, writer: Value) -> bool:
    """True for a slice like that which is written, of a few iterations earlier: the loop's state can carry it."""
    one, update = user.instruction, writer.instruction.operands[1]
    if one.opcode != "dynamic-slice" or one.shape is None or update.shape is None:
        return False
    if one.shape.dimensions != update.shape.dimensions:
        return False
    places = zip(writer.operands()[2:], user.operands()[1:], strict=True)
    back = [0 if formula(a) == formula(b) else iterations_apart(a, b) for a, b in places]
    return None not in back and 1 <= sum(abs(one or 0) for one in back) <= _EARLIER


_EARLIER = 4


def _partly_used(
    rounds: Rounds,
    slot: int,
    update: Instruction,
    needed: object,
    context: Context,
    *,
    reads_earlier: bool,
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
        f"only {100 * part:.2g}% of which is used",
        f"{_CARRY if reads_earlier else ''}{_remedy(needed, update, shape)}",
        context,
        # An inner loop has steps of its own, which small ones would not repay.
        _stacking(rounds, slot, context) if part * context.prices.trips(rounds.loop) <= 1 else 0.0,
    )


def _remedy(needed: Demand, update: Instruction, whole: Shape | None) -> str:
    """Advice to return only what is used: of few iterations, or of each slice a part."""
    sizes = update.shape.dimensions if update.shape is not None else ()
    along = [d for d, size in enumerate(whole.dimensions if whole is not None else ()) if size != sizes[d]]
    if any(needed.parts[d] is not None for d in along):
        return (
            "return only what is used: the last value from the loop state, every k-th from an outer scan over an inner "
            "lax.fori_loop of k iterations"
        )
    return (
        "return only what is used of each slice: index it in the body (x[:k], jnp.diagonal(x)), not the stack after "
        "the loop"
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
        _stacking(rounds, slot, context)
        + context.prices.together(readers)
        - _adding(rounds, slot, made, context),
        cause=f"reduced by {min(one.name for one in readers)}",
    )


def _stacking(rounds: Rounds, slot: int, context: Context) -> float:
    """Seconds in which a stack is filled before the loop, and written slice by slice."""
    given, first = behind_views(rounds.given[slot]), rounds.before(slot)
    writer = given.operands[0] if given.opcode == "get-tuple-element" else given
    writer = writer.async_chain[0] if writer.opcode in traits.DONES and writer.async_chain else writer
    seconds = context.prices.seconds(writer)
    if not all(map(_only_stacks, parts_of(writer))) or len(writer.users) > 1:  # its other work remains
        size = size_of(rounds.given[slot].shape) * context.runs(in_calls(rounds.loop))
        seconds = min(seconds, context.prices.reading(size))
    filled = context.prices.seconds(behind_views(first)) if first is not None and is_spread(first) else 0.0
    return seconds + filled


def _only_stacks(part: Instruction) -> bool:
    return part.opcode in _STACKING or result_elements(part) <= 1


def _adding(rounds: Rounds, slot: int, made: int, context: Context) -> float:
    """Seconds in which the iterations read their slices instead, add to the reductions, and start doing so."""
    prices, loop = context.prices, in_calls(rounds.loop)
    slices = prices.trips(rounds.loop) * context.runs(loop)
    whole = size_of(rounds.given[slot].shape) * context.runs(loop)
    launch = prices.chip.rates.launch
    starts = _STARTED * slices * launch.value if launch is not None else 0.0
    return prices.reading(whole + 2 * min(made * slices, whole)) + starts


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
    seconds: float,
    cause: str = "",
) -> Report | None:
    """`seconds` is what the loop and its readers take less, 0 or less where that is uncertain."""
    if given_in(rounds.loop, slot) is None:
        return None
    size = total_of(rounds.given[slot].shape).allocated_bytes
    return Report(
        rounds.given[slot],
        f"a loop stacks {byte_text(size)} over {context.prices.trips(rounds.loop):,} iterations, {use}",
        remedy,
        round(size * part),
        is_held=True,
        seconds=seconds if seconds > 0 else None,
        spares=dict.fromkeys(memory_of(rounds, slot), part),
        origin=update,
        cause=cause,
    )
