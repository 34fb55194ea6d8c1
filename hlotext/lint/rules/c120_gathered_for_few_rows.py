"""Arrays gathered for products that would move less if each device multiplied its own part."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import Communication, byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import results, size_of, times
from hlotext.lint.products import SAME, Product, products
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, consumers

_PASSED = SAME | VIEWS | {"get-tuple-element", "all-gather-done"}
_MOST_PRODUCTS = 50


class GatheredForFewRows(Rule):
    code = "C120"
    name = "gathered-for-few-rows"
    title = "an all-gather of weights for matmuls with few rows"
    waste = "sent"
    needs_optimized = True
    yields_to = frozenset({"C102", "C108", "C115", "C116"})

    def check_module(self, context: Context) -> Iterator[Report]:
        gathers = [one for one in context.communications if one.kind == "all-gather" and one.fusion is None]
        by_place = {(one.dot, one.whole): one for one in products(context)} if gathers else {}
        for one in gathers:
            if by_place and (found := _products_of(one, by_place)):
                yield from _report(one, found, context)


def _products_of(
    one: Communication, by_place: dict[tuple[Instruction, Instruction], Product]
) -> list[tuple[Product, int]]:
    """The products that read a gathered array, with the number of its operand; empty if anything else does."""
    found: list[tuple[Product, int]] = []
    for value in results(one):
        if value.is_root:
            return []
        for user, number in consumers(Value(value), _PASSED):
            product = by_place.get((user.instruction, user.writer))
            if product is None or len(found) >= _MOST_PRODUCTS:  # something other than a matmul uses it
                return []
            found.append((product, number))
    return found


def _report(one: Communication, found: list[tuple[Product, int]], context: Context) -> Iterator[Report]:
    prices, devices = context.prices, one.participants or 1
    others = sum(size_of(product.dot.operands[1 - side].shape) for product, side in found)
    made = sum(size_of(product.dot.shape) for product, _ in found)
    # At most the other operands are gathered, and as much as the products are summed or handed over: in any case of what is
    # split, and of whether the devices have the same rows or their own.
    instead = devices * (others + made)
    if (
        devices < 2 or instead >= one.result_bytes
    ):  # each device's shard is smaller than the arrays it is multiplied with
        return
    runs, part = context.runs(one.start), 1 - 1 / devices
    read = prices.reading(one.result_bytes) * prices.runs(one.start.computation)
    wholes = {product.whole for product, _ in found}
    yield Report(
        one.start,
        f"{byte_text(one.result_bytes)} is gathered from {devices} devices{times(runs)} for matmuls whose other operands "
        f"and results total {byte_text(others + made)}, less than each device's own shard",
        "keep it sharded: each device multiplies all rows by its own shard, and the small results are summed (all-reduce "
        "or reduce-scatter) or gathered; constrain the other operand and the result with with_sharding_constraint",
        one.sent_bytes * runs,
        seconds=prices.seconds(one.start) * (1 - instead / one.result_bytes)
        + min(read, prices.together(wholes)) * part,
        spares={one.start: part},
        covers=frozenset({one.start}),
    )
