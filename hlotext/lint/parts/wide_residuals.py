"""Residuals that a loop keeps in f32 for its backward pass although its matmuls have narrower operands."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import size_of
from hlotext.lint.products import SAME, Product, products
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
        by_body: dict[Computation | None, list[Product]] = {}
        for product in products(context):
            by_body.setdefault(product.whole.computation, []).append(product)
        for rounds in stepped_rounds(context):
            multiplied = by_body.get(rounds.body)
            if (
                rounds.loop not in backward and multiplied and all(map(_is_narrow, multiplied))
            ):  # no loop of the forward pass multiplies only narrow operands
                yield from _reports(rounds, taken, context)


def _is_narrow(product: Product) -> bool:
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


def _reports(rounds: Rounds, taken: set[Instruction], context: Context) -> Iterator[Report]:
    ends = taken_out(rounds)
    wide = {
        slot: update
        for slot, update in stacks(rounds)
        if _bits(update) == 2 * _NARROW and any(one in taken for one in ends[slot])
    }
    if not wide:
        return
    largest = max(wide, key=lambda slot: size_of(rounds.given[slot].shape))
    whole = sum(size_of(rounds.given[slot].shape) for slot in wide)
    yield Report(
        rounds.given[largest],
        f"a loop of {context.prices.trips(rounds.loop):,} iterations saves {byte_text(whole)} in f32 for its backward pass, "
        "although all its matmuls have narrower operands",
        "compute the saved values (gates, activations) in bf16 where that is accurate enough: half the bytes",
        whole // 2,
        is_held=True,
        spares=dict.fromkeys((place for slot in wide for place in memory_of(rounds, slot)), 0.5),
        origin=wide[largest],
    )
