"""Overlapping windows of an array that are gathered into one, for matmuls that a convolution would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hlotext.analysis import Backend, byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import fusions_around, size_of, times
from hlotext.lint.products import SAME, Product, products
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import Context, Report
from hlotext.lint.selectors import written
from hlotext.lint.values import Value, consumers, elements_of, entered, is_counted, is_spread, source

_LEAST = 4
"""Minimum number of windows that each element is in."""
_MOST_STEPS = 40
_PASSED = ELEMENTWISE | traits.REPEATS_ELEMENTS


def gathered_windows(context: Context) -> Iterator[Report]:
    """Yields reports on windows that are gathered and written for matmuls, where a convolution would read the array
    itself.

    Not on TPU, where a convolution with few features pads them, in contrast to gathered windows.
    """
    if context.backend is Backend.TPU:
        return
    arrays: dict[Instruction, Value] = {}
    every: dict[Instruction, Product] = {}
    for product in products(context):
        every[product.whole] = product
        for operand, origin in zip(product.operands, product.origins, strict=True):
            array, whole = written(operand), _windowed(origin)
            if array is not None and whole is not None:
                arrays[array] = whole
    for gather in context.census.by_opcode.get("gather", ()):
        value = Value(gather, fusions_around(gather, context))
        if value.writer not in arrays and (whole := _windowed(value)) is not None:
            yield from _of_sums(value.writer, whole.instruction, context)
    for array, whole in arrays.items():
        readers = {user.writer for user, _ in consumers(Value(array), SAME)}
        readers_found = [every[one] for one in every if one in readers]
        if len(readers_found) == len(readers):
            yield from _of_products(array, whole.instruction, readers_found, context)


def _of_products(
    array: Instruction, whole: Instruction, readers: Sequence[Product], context: Context
) -> Iterator[Report]:
    """Windows that are written for matmuls."""
    if any(one.batch != 1 for one in readers):
        return
    moved = {
        one.whole: max(
            0, sum(size_of(operand.shape) for operand in one.whole.operands) - size_of(array.shape)
        )
        + size_of(one.dot.shape)
        for one in readers
    }
    yield from _report(
        array,
        whole,
        moved,
        "for a matmul" if len(readers) == 1 else f"for {pluralize(len(readers), 'matmul')}",
        "use a convolution (jax.lax.conv_general_dilated, jnp.convolve): it reads the windows from the array itself",
        context,
    )


def _of_sums(array: Instruction, whole: Instruction, context: Context) -> Iterator[Report]:
    """Windows that are written only to be reduced."""
    readers = {user.writer for user, _ in consumers(Value(array), SAME)}
    opcodes = [{part.opcode for part in parts_of(one)} for one in readers]
    if not readers or not all(map(_only_reduce, opcodes)):
        return
    others = {operand for one in readers for operand in one.operands} - {array}
    if any(_LEAST * elements_of(one.shape) > elements_of(array.shape) for one in others):
        return  # windows are combined with values of their own for each element, such as scores with a bias by position
    yield from _report(
        array,
        whole,
        {one: size_of(one.shape) for one in readers},
        "only to be reduced",
        "use jax.lax.reduce_window, which reads the windows from the array itself, or add up shifted slices",
        context,
        is_proved=False,  # what is computed of each window may need all of it
    )


def _report(
    array: Instruction,
    whole: Instruction,
    moved: Mapping[Instruction, int],
    purpose: str,
    remedy: str,
    context: Context,
    *,
    is_proved: bool | None = None,
) -> Iterator[Report]:
    """Reports windows that are written, unless they are few, or reading the array instead saves nothing.

    `moved` has the readers, and the bytes that each moves besides the windows.
    """
    count = elements_of(array.shape) // max(1, elements_of(whole.shape))
    if count < _LEAST:
        return
    prices, covers = context.prices, frozenset({array, *moved})
    saved = prices.together(covers)
    for one, other in moved.items():
        least = prices.own_least.get(one)
        read = prices.reading(size_of(whole.shape) + other)
        saved -= max((least.compute or 0.0) if least is not None else 0.0, read) * context.runs(one)
    if saved > 0:
        yield Report(
            array,
            f"overlapping windows are gathered into an array of {byte_text(size_of(array.shape))}"
            f"{times(context.runs(array))}, {count:,} times the size of the array that they are taken from, {purpose}",
            remedy,
            2 * size_of(array.shape) * context.runs(array),
            seconds=saved,
            spares={array: 1.0},
            covers=covers,
            is_proved=is_proved,
        )


def _only_reduce(opcodes: set[str]) -> bool:
    return not opcodes.isdisjoint(traits.REDUCTIONS) and opcodes.isdisjoint(traits.CONTRACTIONS)


def _windowed(value: Value) -> Value | None:
    """The array whose overlapping windows a value holds, along one dimension or several; None if it holds none."""
    found: Value | None = None
    for _ in range(_MOST_STEPS):
        value = source(value, SAME)
        one = value.instruction
        if one.opcode == "select":  # what stands for elements out of bounds
            rest = [operand for operand in value.operands()[1:] if not is_spread(operand.instruction)]
            if len(rest) != 1:
                break
            value = rest[0]
        elif one.opcode == "gather" and _are_of_windows(value.operands()[1]):
            found = value = source(value.operands()[0], SAME)
        else:
            break
    return found


def _are_of_windows(indices: Value) -> bool:
    """True if indices are sums of two positions: that of the window, and that within it."""
    if not is_counted(indices):
        return False
    pending, seen = [indices], {indices}
    while pending and len(seen) < _MOST_STEPS:
        value = entered(pending.pop())
        operands = value.operands() if value.instruction.opcode in _PASSED else []
        parts = [source(one, traits.REPEATS_ELEMENTS).instruction.opcode for one in operands]
        if value.instruction.opcode == "add" and "constant" not in parts:
            return True
        new = [one for one in operands if one not in seen]
        seen.update(new)
        pending += new
    return False
