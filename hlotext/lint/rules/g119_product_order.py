"""Chains of products in the order that takes more operations."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.lint.products import SAME, Product, product_behind, products
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import consumers
from hlotext.lint.wording import sizes

_LEAST = 16
"""The least of the sizes: smaller ones are vectors, for which the order is the point."""
_HALF = 0.5


@attrs.frozen
class ProductOrder(Rule):
    code = "G119"
    name = "product-order"
    title = "a chain of products in the order that takes more operations"
    waste = "dense"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        every = list(products(context))
        found = {(one.dot, one.value.fusions): one for one in every}
        for outer in every:
            for side in (0, 1):
                inner = product_behind(outer.operands[side], found)
                if inner is None or inner is outer or not _is_only_use(inner, outer):
                    continue
                report = _report(inner, outer, side, context)
                if report is not None:
                    yield report
                    break


def _is_only_use(inner: Product, outer: Product) -> bool:
    users = [user.instruction for user, _ in consumers(inner.value, SAME)]
    return not inner.whole.is_root and users == [outer.dot]


def _report(inner: Product, outer: Product, side: int, context: Context) -> Report | None:
    """(A B) C is A (B C): A of m x k, B of k x n, C of n x p; of C (A B) the same, turned."""
    if inner.batch != outer.batch or inner.batch != 1:
        return None
    other = outer.columns if side == 0 else outer.rows
    kept = outer.rows if side == 0 else outer.columns
    if inner.rows == kept and inner.columns == outer.summed:
        m, k, n = inner.rows, inner.summed, inner.columns
    elif inner.columns == kept and inner.rows == outer.summed:
        m, k, n = inner.columns, inner.summed, inner.rows
    else:
        return None
    p = other
    if min(m, k, n, p) < _LEAST:
        return None
    now, then = m * k * n + m * n * p, k * n * p + m * k * p
    if then >= _HALF * now:
        return None
    seconds = context.prices.together([inner.whole, outer.whole])
    return Report(
        outer.dot,
        f"the product of {sizes(inner.dot.operands[0].shape)} and {sizes(inner.dot.operands[1].shape)} is computed first "
        f"and multiplied with {p} columns; the other order takes {100 * then / now:.2g} % of the operations",
        "set the parentheses so that the narrow product comes first; rounding changes",
        flops=2 * (now - then) * context.runs(outer.whole),
        seconds=seconds * (1 - then / now),
    )
