"""Wide products that are held for all rows at once, although each row is worked on by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import seconds
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import size_of
from hlotext.lint.products import SAME, Product, products
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, consumers, made_of, result_elements, source
from hlotext.lint.wording import sizes

_MUCH = 0.3
"""Part of the peak that blocks save, from which on they are worth the time of a second product."""
_WIDE = 8
"""Minimum ratio of the result to the arrays that its rows are made of."""
_BLOCKS = 8
_MOST_STEPS = 400
_PASSED = ELEMENTWISE | VIEWS | {"transpose"}
_PICKED = traits.SLICES | {"gather"}
"""Opcodes that pick values of rows, such as those of the labels."""


@attrs.define(eq=False)
class _Rows:
    """Uses of the rows of a product, as far as one is worked on by itself."""

    arrays: dict[object, Instruction] = attrs.field(factory=dict)
    """Arrays of all rows that are written to memory, as `Context.saved_peak` takes them, with the operation."""
    readers: set[Instruction] = attrs.field(factory=set)
    """The operations that read rows."""
    made: set[Instruction] = attrs.field(factory=set)
    """Operations that make something smaller of them: a few values for each row, or sums over rows."""
    is_reduced: bool = False
    is_multiplied: bool = False


class WideRows(Rule):
    code = "M120"
    name = "wide-rows"
    title = "a wide matmul result that is live for all rows at the same time, although rows are independent"
    waste = "held"
    is_proved = False  # whether time or memory is short is for the author to say
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        by_place = {(one.dot, one.whole): one for one in products(context)}
        for product in by_place.values():
            if not context.peak or size_of(product.dot.shape) < _MUCH * context.peak:
                continue  # no matmul is large enough
            if product.rows == product.columns:  # its rows cannot be told from its columns
                continue
            loop = context.loop_around(product.whole.computation)
            is_in_blocks = loop is not None and context.prices.trips(loop) >= _BLOCKS
            found = _rows_of(product, is_in_blocks, by_place)
            if found is not None:
                yield from _report(product, found, context)


def _rows_of(
    product: Product, is_in_loop: bool, by_place: Mapping[tuple[Instruction, Instruction], Product]
) -> _Rows | None:
    """Uses of the rows of a product that are much wider than what they are made of; the rows are what is reduced.

    None if the product is one of a loop's, and either operand is already a block of each iteration's own.
    """
    whole = result_elements(product.dot)
    sides = ((product.columns, product.operands[0]), (product.rows, product.operands[1]))
    for columns, operand in sorted(sides, key=lambda side: -side[0]):
        made = made_of(operand, whole // _WIDE)
        if made is None or (is_in_loop and any(map(_is_block, (*made, *product.operands)))):
            continue  # no matmul has rows much wider than what they are computed from
        found = _followed(product, columns, by_place)
        if found is not None and not _flows_back(found, whole // columns):
            return found
    return None


def _is_block(value: Value) -> bool:
    return source(value, SAME).instruction.opcode == "dynamic-slice"


def _followed(
    product: Product, columns: int, by_place: Mapping[tuple[Instruction, Instruction], Product]
) -> _Rows | None:
    """Uses of the rows of a product, of so many columns; None if anything needs several of them at once, or keeps all."""
    whole = result_elements(product.dot)
    found, pending, seen = _Rows(), [product.value], {product.value}
    while pending:
        value = pending.pop()
        if value.instruction.is_root and not value.fusions:
            return None
        _add_written(value, found)
        for user, _ in consumers(value):
            made = user.instruction
            found.readers.add(user.writer)
            if user in seen:
                continue
            seen.add(user)
            if len(seen) > _MOST_STEPS:
                return None
            if (made, user.writer) in by_place:
                found.is_multiplied = True
                found.made.add(user.writer)
            elif made.opcode in traits.REDUCTIONS:
                found.is_reduced = found.is_reduced or result_elements(made) * columns == whole
                found.made.add(user.writer)
            elif made.opcode in _PICKED and result_elements(made) * columns == whole:
                found.made.add(user.writer)
            elif _is_passed(made, whole, columns):
                pending.append(user)
            else:
                return None
    return found if found.is_reduced else None


def _is_passed(made: Instruction, whole: int, columns: int) -> bool:
    """True for what works on each element by itself, and for a scatter of one value to each row, the gradient of picking
    one."""
    if made.opcode == "scatter":
        return len(made.operands) == 3 and result_elements(made.operands[2]) * columns == whole
    return made.opcode in _PASSED and result_elements(made) == whole


def _add_written(value: Value, found: _Rows) -> None:
    """Notes an array that leaves the operation in which it is made."""
    one, fusions = value.instruction, value.fusions
    while fusions:
        root = fusions[-1].called_computations[0].root
        if root is not one and (root.opcode != "tuple" or len(fusions) > 1):
            return
        if root is not one:
            for index, part in enumerate(root.operands):
                if part is one:
                    found.arrays[fusions[-1], (index,)] = fusions[-1]
            return
        one, fusions = fusions[-1], fusions[:-1]
    if one.opcode not in VIEWS:
        found.arrays[one] = one


def _flows_back(found: _Rows, rows: int) -> bool:
    """True if a value computed from several rows is combined with them again, as in a batch normalization.

    Where there is a gradient, each row's own values come first: what combines these in the loss, as a sum over alignments
    does, runs between the two passes over blocks.
    """
    pending = [
        (one, result_elements(one) < rows)
        for one in found.made
        if not (found.is_multiplied and result_elements(one) == rows)
    ]
    seen = set(pending)
    while pending:
        one, is_of_all = pending.pop()
        for user in one.users:
            if user in found.readers and is_of_all:
                return True
            state = (user, is_of_all or result_elements(user) < rows)
            if state not in seen and user not in found.readers:
                if len(seen) > _MOST_STEPS:
                    return True
                seen.add(state)
                pending.append(state)
    return False


def _report(product: Product, found: _Rows, context: Context) -> Iterator[Report]:
    spares = dict.fromkeys(found.arrays, 1 - 1 / _BLOCKS)
    saved = context.saved_peak(spares)
    if not saved or not context.peak or saved < _MUCH * context.peak:
        return
    again = context.prices.seconds(product.whole)
    costs = f"; the backward pass recomputes the matmul, in {seconds(again)}" if found.is_multiplied else ""
    block = "jax.checkpoint(loss of a block)" if found.is_multiplied else "a function of a block"
    size = size_of(product.dot.shape)
    yield Report(
        product.whole,
        f"a matmul result of {byte_text(size)} ({sizes(product.dot.shape)}) is live for all rows at the same time, "
        "although the rows are independent and no result of the program is as large",
        f"process the rows in blocks, for example {_BLOCKS} of them: lax.scan over {block}{costs}",
        saved,
        is_held=True,
        spares=spares,
        origin=product.dot,
    )
