"""Products with a matrix that something of low rank was added to: adapters that are merged for a few rows."""

from __future__ import annotations

from hlotext.cost import product_sizes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import size_of
from hlotext.lint.products import SAME, Product, product_behind
from hlotext.lint.rule import Context, Report
from hlotext.lint.selectors import written
from hlotext.lint.values import Value, consumers, source
from hlotext.lint.wording import sizes

_HALF = 0.5
_HALVES = 2
_MOST_TERMS = 20


def of_sum(
    outer: Product,
    side: int,
    found: dict[tuple[Instruction, tuple[Instruction, ...]], Product],
    context: Context,
) -> Report | None:
    """Reports X (W + A B) with a narrow A, which equals X W + (X A) B; None for other products.

    The second form avoids a matrix as large as W for each A.
    """
    merged = outer.origins[side]
    if merged.instruction.opcode != "add":
        return None
    terms = merged.operands()
    for number, term in enumerate(terms):
        inner = product_behind(term, found)
        if inner is None or _has_other_users(inner.value, merged.instruction):
            continue
        if _has_other_users(merged, outer.dot):
            return None
        return _report(outer, side, inner, terms[1 - number], context)
    return None


def _has_other_users(value: Value, user: object) -> bool:
    return any(other.instruction is not user for other, _ in consumers(value, SAME))


def _report(outer: Product, side: int, inner: Product, base: Value, context: Context) -> Report | None:
    kept, rows = (outer.columns, outer.rows) if side else (outer.rows, outer.columns)
    if {inner.rows, inner.columns} != {outer.summed, kept} or inner.batch != outer.batch:
        return None
    if 2 * inner.summed > min(inner.rows, inner.columns):
        return None
    now = inner.rows * inner.columns * inner.summed
    then = rows * inner.summed * (inner.rows + inner.columns)
    if then >= _HALF * now:
        return None
    prices, runs = context.prices, context.runs(outer.whole)
    array = written(outer.operands[side])
    parts = dict.fromkeys([inner.whole, *([array] if array is not None else [])])
    parts.pop(outer.whole, None)
    least = prices.own_least.get(outer.whole)
    if least is None or array is None or array is outer.whole:
        return None
    # The product reads the one matrix in place of the sums; the narrow ones read both factors, its operand, and its result.
    alone = source(base, SAME | {"broadcast"}).instruction.shape
    spared = prices.reading(max(0, size_of(array.shape) - size_of(alone))) * runs
    factors = sum(size_of(operand.shape) for operand in inner.dot.operands[:2])
    again = size_of(outer.dot.operands[1 - side].shape) + 2 * size_of(outer.dot.shape) + factors
    whole = prices.seconds(outer.whole)
    after = max((least.compute or 0.0) * runs, whole - spared) + prices.reading(again * runs)
    saved = prices.together(parts) + whole - after
    if saved <= 0:
        return None
    return Report(
        outer.dot,
        f"a rank-{inner.summed:,} matmul of {' and '.join(sizes(one.shape) for one in inner.dot.operands[:2])} is "
        f"added to a matrix only to multiply {rows:,} rows by the sum, which writes an array of {sizes(array.shape)}",
        "multiply by the matrix and by the two factors separately, and add the results (x @ w + (x @ a) @ b)",
        flops=2 * (now - then) * inner.batch * context.runs(inner.whole),
        seconds=saved,
        spares={array: 1.0, inner.whole: 1.0},
        covers=frozenset(parts),
    )


def rank_of(matrix: Value) -> int | None:
    """Returns an upper bound on the rank of a matrix that is a sum of outer products or of matmuls; None for others."""
    pending, rank = [matrix], 0
    for _ in range(_MOST_TERMS):
        if not pending:
            return rank
        made = source(pending.pop(), SAME | {"negate"})
        one, operands = made.instruction, made.operands()
        sizes = product_sizes(one) if one.opcode in traits.DOTS else None
        if one.opcode in ("add", "subtract"):
            pending += operands
        elif sizes is not None and sizes[0] == 1:
            rank += sizes[3]
        elif one.opcode == "multiply" and _is_outer(operands):
            rank += 1
        elif one.opcode == "multiply" and (scaled := _unscaled(operands)) is not None:
            pending.append(scaled)
        else:
            return None
    return None


def _is_outer(factors: list[Value]) -> bool:
    """True for the factors of an outer product: one repeats a vector along the rows, the other one along the columns."""
    found = [_spread_along(factor) for factor in factors]
    return len(found) == _HALVES and None not in found and found[0] != found[1]


def _spread_along(factor: Value) -> int | None:
    one = source(factor, SAME).instruction
    places = tuple(one.attributes.get("dimensions", ())) if one.opcode == "broadcast" else ()
    return places[0] if len(places) == 1 and one.shape is not None and one.shape.rank == _HALVES else None


def _unscaled(factors: list[Value]) -> Value | None:
    """The factor that is a matrix where the other one is a scalar."""
    for factor, other in (factors, factors[::-1]):
        if (one := source(factor, SAME).instruction).opcode == "broadcast" and not one.attributes.get(
            "dimensions"
        ):
            return other
    return None
