"""Products with matrices that only select: one-hot rows and diagonals."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import size_of, times
from hlotext.lint.masks import nonzero_part
from hlotext.lint.products import Product, products
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.selectors import Selector, selector, written
from hlotext.lint.values import Value
from hlotext.lint.wording import sizes

_LEAST = 2
_SPARSE = 1 / 64
"""Part of a matrix that may not be zero, up to which adding up the terms takes less than a dense product."""


@attrs.frozen
class OneHotProduct(Rule):
    code = "D107"
    name = "one-hot-product"
    title = "a matrix product with a one-hot or diagonal matrix, which only picks or scales rows"
    waste = "dense"

    def check_module(self, context: Context) -> Iterator[Report]:
        priced: set[Instruction] = set()
        nonzero: dict[Value, float] = {}
        for product in products(context):
            for value in product.operands:
                found = selector(value)
                if found is not None and found.classes >= _LEAST:
                    if context.backend is Backend.TPU and not found.is_diagonal and _adds_up(product, found):
                        break  # a TPU adds scattered rows one after the other, and a product many at once
                    yield _report(product, found, written(value), priced, context)
                    break
                rate = nonzero_part(value, nonzero) if found is None else None
                if rate is not None and rate.part <= _SPARSE:
                    yield _of_sparse(product, value, rate.part, context)
                    break


def _report(
    product: Product, found: Selector, mask: Instruction | None, priced: set[Instruction], context: Context
) -> Report:
    runs = context.runs(product.whole)
    instead = context.prices.reading(2 * size_of(product.dot.shape) * runs)
    seconds = context.prices.seconds(product.whole)
    if mask is not None and mask not in priced:
        priced.add(mask)
        seconds += context.prices.seconds(mask)
    else:
        mask = None
    kind = "diagonal" if found.is_diagonal else "one-hot"
    does = "scale rows" if found.is_diagonal else "pick rows, or to add them up"
    return Report(
        product.dot,
        f"the product of {' and '.join(sizes(one.shape) for one in product.dot.operands[:2])} with a {kind} matrix of "
        f"{found.classes:,} {'rows' if found.is_diagonal else 'classes'} runs{times(runs)}: "
        f"it multiplies by zeros to {does}",
        "multiply by the vector itself (d[:, None] * a)"
        if found.is_diagonal
        else "take the rows by their index (table[indices], jnp.take), and add up with .at[].add",
        flops=context.flops(product.dot),
        seconds=max(0.0, seconds - instead),
        peak_bytes=context.saved_peak({mask: 1.0}) if mask is not None else None,
        covers=frozenset([mask] if mask is not None else []),
    )


def _adds_up(product: Product, found: Selector) -> bool:
    """True if rows are added up by class, rather than picked."""
    return product.dot.shape is not None and found.classes in product.dot.shape.dimensions


def _of_sparse(product: Product, value: Value, part: float, context: Context) -> Report:
    """A product with a matrix of which almost all is zero: few elements scattered into zeros, such as a graph's edges."""
    matrix = value.instruction.shape
    terms = part * (matrix.element_count or 0) if matrix is not None else 0.0
    width = max(1, (product.rows * product.columns * product.batch) // max(1, _other(product, value)))
    # Each term reads a row, its sum is read and written.
    moved = (
        3
        * terms
        * width
        * max(1, size_of(product.dot.shape) // max(1, product.batch * product.rows * product.columns))
    )
    instead = context.prices.reading(moved * context.runs(product.whole))
    mask = written(value)
    return Report(
        product.dot,
        f"the product of {' and '.join(sizes(one.shape) for one in product.dot.operands[:2])} runs"
        f"{times(context.runs(product.whole))} with a matrix of which at most {100 * part:.2g} % is not zero",
        "add up the terms by their indices (jax.ops.segment_sum(x[source], target), .at[].add), or use "
        "jax.experimental.sparse",
        flops=context.flops(product.dot),
        seconds=max(0.0, context.prices.seconds(product.whole) - instead),
        peak_bytes=context.saved_peak({mask: 1.0}) if mask is not None else None,
        is_proved=context.backend is not Backend.TPU,  # which adds scattered rows one after the other
    )


def _other(product: Product, value: Value) -> int:
    """The size of the dimension that the result has of a matrix."""
    return product.rows if value == product.operands[0] else product.columns
