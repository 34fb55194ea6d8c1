"""Running sums that are computed as products with a triangle of ones."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.ir.tables import traits
from hlotext.lint.helpers import size_of, times
from hlotext.lint.products import Product, products
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.selectors import is_zero
from hlotext.lint.values import Value, source
from hlotext.lint.wording import sizes

_BLOCK = 256
"""Rows of a block whose own triangle is small beside the rest."""
_SAME = traits.REPEATS_ELEMENTS | traits.CONVERSIONS
_ORDERS = frozenset({"GE", "GT", "LE", "LT"})


class ProductWithTriangle(Rule):
    code = "G125"
    name = "product-with-triangle"
    title = "a running sum computed as a matmul by a triangular matrix of ones"
    waste = "dense"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for product in products(context):
            for side, origin in enumerate(product.origins):
                if size_of(product.dot.operands[side].shape) and _is_triangle(origin, product.summed):
                    yield from _report(product, side, context)


def _is_triangle(value: Value, size: int) -> bool:
    """True for ones on one side of a square's diagonal, and zeros on the other."""
    made = source(value, _SAME)
    if made.instruction.opcode == "select":
        mask, one, zero = made.operands()
        if not is_zero(zero) or source(one, _SAME).instruction.opcode != "constant":
            return False
        made = source(mask, _SAME)
    shape = made.instruction.shape
    if made.instruction.opcode != "compare" or shape is None or shape.dimensions != (size, size):
        return False
    places = [_counted(operand) for operand in made.operands()]
    return str(made.instruction.attributes.get("direction")) in _ORDERS and sorted(
        place for place in places if place is not None
    ) == [0, 1]


def _counted(value: Value) -> int | None:
    """The dimension of a square along which a value counts; None for any other value."""
    made = source(value, _SAME - {"broadcast", "transpose"})
    if made.instruction.opcode == "add":
        terms = [source(term, _SAME - {"transpose"}) for term in made.operands()]
        rest = [
            source(term, _SAME - {"broadcast", "transpose"})
            for term, known in zip(made.operands(), terms, strict=True)
            if known.instruction.opcode != "constant"
        ]
        made = rest[0] if len(rest) == 1 else made
    one = made.instruction
    if one.opcode == "broadcast" and one.shape is not None and one.shape.rank == 2:
        inner = source(made.operands()[0], _SAME - {"broadcast"}).instruction
        place = one.attributes.get("dimensions", ())
        return place[0] if inner.opcode == "iota" and len(place) == 1 else None
    if one.opcode != "iota" or one.shape is None or one.shape.rank != 2:
        return None
    return int(one.attributes.get("iota_dimension", 0))


def _report(product: Product, side: int, context: Context) -> Iterator[Report]:
    prices, runs = context.prices, context.prices.runs(product.whole.computation)
    rows, made = size_of(product.dot.operands[1 - side].shape), size_of(product.dot.shape)
    least = prices.own_least.get(product.whole)
    compute = (least.compute or 0.0) * min(1.0, _BLOCK / product.summed) if least is not None else 0.0
    # Products within blocks, and one more pass to add what the blocks before sum up to.
    instead = max(compute, prices.reading(rows + made)) + prices.reading(2 * made)
    saved = prices.seconds(product.whole) - instead * runs
    if saved <= 0:  # a matmul in blocks would take as long
        return
    yield Report(
        product.dot,
        f"the matmul of {' and '.join(sizes(one.shape) for one in product.dot.operands[:2])} multiplies"
        f"{times(context.runs(product.whole))} by a triangular matrix of ones, to compute running sums of "
        f"{product.summed:,} rows",
        f"use jnp.cumsum, or multiply blocks of {_BLOCK} rows by a smaller triangular matrix and add the totals of the "
        "preceding blocks",
        flops=context.flops(product.dot),
        seconds=saved,
    )
