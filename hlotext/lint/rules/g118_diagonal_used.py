"""Products of which only the diagonal is used."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.lint.helpers import size_of
from hlotext.lint.products import SAME, Product, products
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.selectors import is_zero, selector
from hlotext.lint.values import Value, consumers, is_counted
from hlotext.lint.wording import sizes

_FEW = 16
"""Minimum ratio of a product's elements to those gathered from it at numbered positions."""


@attrs.frozen
class DiagonalUsed(Rule):
    code = "G118"
    name = "diagonal-used"
    title = "a product of which only the diagonal is used"
    waste = "dense"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for product in products(context):
            if product.batch == 1 and product.rows != product.columns:
                continue
            readers = _readers(product)
            if not readers or not all(map(_is_of_diagonal, readers)):
                continue
            runs = context.runs(product.whole)
            rates = context.prices.chip.rates
            read = sum(size_of(operand.instruction.shape) for operand in product.operands) * runs
            kept = read / rates.bandwidth.value if rates.bandwidth is not None else 0.0
            masked = {user.fusions[0] if user.fusions else user.instruction for user, _ in readers}
            seconds = context.prices.together([product.whole, *masked])
            yield Report(
                product.dot,
                f"of the product of {sizes(product.dot.operands[0].shape)} and {sizes(product.dot.operands[1].shape)} only "
                "the diagonal is used",
                "multiply element by element and sum (jnp.einsum('ij,ji->i', a, b), jnp.sum(a * b.T))",
                flops=context.flops(product.dot),
                seconds=max(0.0, seconds - kept),
                peak_bytes=context.saved_peak(dict.fromkeys([product.whole, *masked], 1.0)),
                covers=frozenset([product.whole, *masked]),
            )


def _readers(product: Product) -> list[tuple[Value, int]]:
    if product.whole.is_root:
        return []
    return list(consumers(product.value, SAME))


def _is_of_diagonal(reader: tuple[Value, int]) -> bool:
    """True if a reader keeps what `iota == iota` selects, and zeros."""
    user, number = reader
    operands = user.operands()
    if user.instruction.opcode == "select" and number == 1:
        found = selector(operands[0])
        return found is not None and found.is_diagonal and is_zero(operands[2])
    if user.instruction.opcode == "multiply":
        found = selector(operands[1 - number])
        return found is not None and found.is_diagonal
    if user.instruction.opcode == "gather":
        taken, whole = user.instruction.shape, operands[0].instruction.shape
        return (
            number == 0
            and taken is not None and whole is not None and taken.is_array and whole.is_array
            and _FEW * (taken.element_count or 0) <= (whole.element_count or 0)
            and is_counted(operands[1])
        )  # fmt: skip
    return False
