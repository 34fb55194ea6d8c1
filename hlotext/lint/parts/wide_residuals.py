"""Residuals that a loop keeps in f32 for its backward pass although most of its matmuls have narrower operands."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import size_of
from hlotext.lint.products import SAME, Multiplication, multiplications
from hlotext.lint.rounds import Rounds, stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.slots import backward_loops, handed_to, memory_of, stacks, taken_out
from hlotext.lint.values import Value, entered

_NARROW = 16
"""Bits of the types that count as narrow."""
_MOST_STEPS = 50


class WideResiduals(Rule):
    is_proved = False  # whether the digits are needed is for the author to say
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        backward = backward_loops(context)
        if not backward:  # the module has no loop of a backward pass
            return
        taken = {one for loop in backward for one in handed_to(loop)}
        inside = _multiplied_inside(context)
        for rounds in stepped_rounds(context):
            multiplied = inside.get(rounds.body, ())
            narrow = sum(map(_is_narrow, multiplied))
            if rounds.loop not in backward and 2 * narrow > len(
                multiplied
            ):  # no loop of the forward pass multiplies mostly narrow operands
                yield from _reports(rounds, taken, _told(narrow, len(multiplied)), context)


def _multiplied_inside(context: Context) -> dict[Computation, list[Multiplication]]:
    """The matmuls and convolutions in each computation and in what it calls, libraries' calls too."""
    found: dict[Computation, list[Multiplication]] = {}
    for one in multiplications(context):
        around = one.whole.computation
        for _ in range(_MOST_STEPS):
            if around is None:
                break
            found.setdefault(around, []).append(one)
            caller = context.graph.caller(around)
            around = caller.computation if caller is not None else None
    return found


def _told(narrow: int, multiplied: int) -> str:
    if narrow == multiplied:
        return (
            "its matmul has narrower operands"
            if narrow == 1
            else f"all its {narrow:,} matmuls have narrower operands"
        )
    return f"{narrow:,} of its {multiplied:,} matmuls have narrower operands"


def _is_narrow(product: Multiplication) -> bool:
    """True if a matmul's operands have a narrow type, or had one before they were upcast for it."""
    return all(map(_was_narrow, product.operands))


def _was_narrow(value: Value) -> bool:
    for _ in range(_MOST_STEPS):
        value = entered(value)
        if _bits(value.instruction) <= _NARROW:
            return True
        if value.instruction.opcode not in SAME or not value.instruction.operands:
            break
        value = value.operands()[0]
    return False


def _bits(one: Instruction) -> int:
    shape = one.shape
    is_floating = shape is not None and shape.is_array and shape.element_type.is_floating
    return shape.element_type.bits if is_floating and shape is not None else 2 * _NARROW + 1


def _reports(rounds: Rounds, taken: set[Instruction], narrow: str, context: Context) -> Iterator[Report]:
    ends = taken_out(rounds)
    wide = {
        slot: update
        for slot, update in stacks(rounds)
        if _bits(update) == 2 * _NARROW and any(one in taken for one in ends[slot])
    }
    if not wide or _carries_wide(rounds):
        return
    largest = max(wide, key=lambda slot: size_of(rounds.given[slot].shape))
    whole = sum(size_of(rounds.given[slot].shape) for slot in wide)
    yield Report(
        rounds.given[largest],
        f"a loop of {context.prices.trips(rounds.loop):,} iterations saves {byte_text(whole)} in f32 for its backward pass, "
        f"although {narrow}",
        "compute the saved values (gates, activations) in bf16 where that is accurate enough: half the bytes",
        whole // 2,
        is_held=True,
        spares=dict.fromkeys((place for slot in wide for place in memory_of(rounds, slot)), 0.5),
        origin=wide[largest],
    )


def _carries_wide(rounds: Rounds) -> bool:
    """True if an iteration hands f32 arrays to the next: what it computes of them is f32 because the data is, as in a
    normalizing flow, rather than for want of a conversion."""
    stacked = {slot for slot, _ in stacks(rounds)}
    return any(
        _bits(value) == 2 * _NARROW and value.shape is not None and value.shape.rank > 1
        for slot, value in enumerate(rounds.given)
        if slot not in rounds.passed and slot not in stacked
    )
