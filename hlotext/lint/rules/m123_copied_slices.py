"""Slices of stacked arrays that a loop copies before matmuls read them."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import Backend, byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import is_product_call, size_of
from hlotext.lint.rounds import Rounds, parts_of, stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.training import is_inference
from hlotext.lint.values import VIEWS, Value, consumers, elements_of
from hlotext.lint.wording import every_round

_LEAST_SHARE, _LEAST_OF_TRAINING = 0.03, 0.05
"""Minimum share of the step that the copies take for a larger program to be worth considering; a training step grows more."""
_LEAST_BYTES = 1 << 20
"""Minimum bytes of the slices that an operation copies per iteration: smaller ones are steps of a sequence, not layers."""
_CUTTING = VIEWS | traits.TUPLES | {"dynamic-slice", "parameter"}


class CopiedSlices(Rule):
    code = "M123"
    name = "copied-slices"
    title = "slices of stacked arrays that a loop copies for matmuls"
    waste = "copied"
    is_proved = False  # whether a larger program is worth it is for the author to say
    needs_optimized = True
    # The TPU compiler fetches a slice into fast memory, where products read it; on CPU they read it where it lies.
    backends = frozenset({Backend.GPU})

    def check_module(self, context: Context) -> Iterator[Report]:
        is_training = not is_inference(context)
        least = (_LEAST_OF_TRAINING if is_training else _LEAST_SHARE) * context.prices.step
        for rounds in stepped_rounds(context):
            count = context.prices.trips(rounds.loop)
            copies = [one for one in rounds.body if _cuts(one, count) and _is_for_products(one)]
            seconds = context.prices.together(copies)
            is_hidden = bool(copies) and not seconds and not is_training
            if is_hidden:  # what runs beside matmuls takes bandwidth from them: at most all of its time
                seconds = sum(
                    context.prices.reading(2 * _sliced_bytes(one)) * context.runs(one) for one in copies
                )
            if copies and seconds >= least:  # no loop spends much time on slices
                yield _report(copies, seconds, is_hidden, rounds, context)


def _report(
    copies: list[Instruction], seconds: float, is_at_most: bool, rounds: Rounds, context: Context
) -> Report:
    size = sum(_sliced_bytes(one) for one in copies)
    count = context.prices.trips(rounds.loop)
    return Report(
        max(copies, key=lambda one: (_sliced_bytes(one), one.name)),
        f"{byte_text(size)} of slices, in {pluralize(len(copies), 'operation')}, are copied "
        f"{every_round(count, rounds.loop not in context.prices.rounds)}, only for matmuls to read them",
        "keep the arrays of each layer separate (in a list instead of a stack), and loop over them in Python: matmuls then "
        "read them in place; unrolling the scan alone still copies slices",
        context.in_all_rounds(2 * size * context.runs(copies[0]), copies[0]),
        seconds=seconds,
        spares=dict.fromkeys((one.async_wrapped_instruction or one for one in copies), 1.0),
        is_at_most=is_at_most,
        covers=frozenset(copies),
        cause=f"slices of {rounds.loop.name}",
    )


def _fusion(one: Instruction) -> Instruction | None:
    """The fusion that an instruction is, or starts to run beside the rest."""
    inner = one.async_wrapped_instruction if one.opcode == "async-start" else one
    return inner if inner is not None and inner.opcode == "fusion" else None


def _cuts(one: Instruction, count: int) -> bool:
    """True if a fusion does nothing but slice stacks, of as many layers as there are iterations, but for computing where."""
    fusion = _fusion(one)
    if fusion is None:
        return False
    large = [part for part in parts_of(fusion) if elements_of(part.shape) > 1]
    slices = [part for part in large if part.opcode == "dynamic-slice"]
    return (
        bool(slices)
        and {part.opcode for part in large} <= _CUTTING
        and all(_is_layer(part, count) for part in slices)
        and _sliced_bytes(one) >= _LEAST_BYTES
    )


def _is_layer(part: Instruction, count: int) -> bool:
    whole, shape = part.operands[0].shape, part.shape
    if whole is None or shape is None:
        return False
    cut = [(size, of) for size, of in zip(shape.dimensions, whole.dimensions, strict=True) if size != of]
    return cut == [(1, count)]


def _sliced_bytes(one: Instruction) -> int:
    fusion = _fusion(one)
    return (
        sum(size_of(part.shape) for part in parts_of(fusion) if part.opcode == "dynamic-slice")
        if fusion
        else 0
    )


def _is_for_products(one: Instruction) -> bool:
    """True if products are all that reads the slices."""
    end = one.async_chain[-1] if one.opcode == "async-start" and one.async_chain else one
    readers = [user for user, _ in consumers(Value(end), VIEWS | {"get-tuple-element"})]
    return bool(readers) and all(map(_is_product, readers))


def _is_product(user: Value) -> bool:
    return user.instruction.opcode in traits.CONTRACTIONS or is_product_call(user.instruction)
