"""Chains of products in the order that takes more operations, and products of rows that were repeated by a gather."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hlotext.analysis import Backend
from hlotext.analysis.formatting import pluralize
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape
from hlotext.lint.helpers import size_of
from hlotext.lint.low_rank import of_sum
from hlotext.lint.products import SAME, Product, concatenated, products
from hlotext.lint.rounds import is_same_in_rounds, parts_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.selectors import selector, written
from hlotext.lint.values import Value, consumers, formula, source
from hlotext.lint.wording import sizes

_LEAST, _LEAST_NARROW = 16, 2
"""The least of the sizes, and of that which makes the other order cheap: of a vector the order is the point."""
_HALF = 0.5

_Use = tuple[Product, int]
"""A product that multiplies another one, and on which side."""


class ProductOrder(Rule):
    code = "G119"
    name = "product-order"
    title = "a matrix chain multiplied in the more expensive order"
    waste = "dense"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        every = products(context)
        found = {(one.dot, one.value.fusions): one for one in every}
        uses: dict[Product, list[_Use]] = {}
        counted: set[Product] = set()
        for outer in every:
            for side in (0, 1):
                origin = outer.origins[side]
                inner = found.get((origin.instruction, origin.fusions))
                if inner is not None and inner is not outer:
                    uses.setdefault(inner, []).append((outer, side))
                if (report := of_sum(outer, side, found, context)) is not None:
                    yield report
                if (report := _of_repeated_rows(outer, side, every, counted, context)) is not None:
                    yield report
                if (report := _of_broadcast_rows(outer, side, every, counted, context)) is not None:
                    yield report
        for inner, outers in uses.items():
            if (
                _are_only_uses(inner, outers) and (report := _report(inner, outers, context)) is not None
            ):  # no other order is cheaper
                yield report


def _are_only_uses(inner: Product, outers: list[_Use]) -> bool:
    users = {user.instruction for user, _ in consumers(inner.value, SAME)}
    return not inner.whole.is_root and users == {outer.dot for outer, _ in outers}


def _report(inner: Product, outers: list[_Use], context: Context) -> Report | None:
    """(A B) C is A (B C): A of m x k, B of k x n, C of n x p; of C (A B) the same, turned. For each product with C."""
    if is_same_in_rounds(inner.whole, context) or any(map(selector, inner.operands)):
        return None  # it is computed once and its rows are looked up, which is cheaper
    now, then = inner.rows * inner.summed * inner.columns, 0
    narrow = []
    for outer, side in outers:
        p = outer.columns if side == 0 else outer.rows
        kept = outer.rows if side == 0 else outer.columns
        summed = outer.summed * outer.batch if _is_split(outer) else outer.summed
        if inner.batch != 1 or (
            outer.batch != 1 and summed == outer.summed
        ):  # batched matmuls are not reordered
            return None
        if inner.rows == kept and inner.columns == summed:
            m, k, n = inner.rows, inner.summed, inner.columns
        elif inner.columns == kept and inner.rows == summed:
            m, k, n = inner.columns, inner.summed, inner.rows
        else:
            return None
        if min(m, k, n) < _LEAST or p < _LEAST_NARROW:
            return None
        now += m * n * p
        then += k * n * p + m * k * p
        narrow.append(p)
    if then >= _HALF * now:
        return None
    wholes = dict.fromkeys([inner.whole, *(outer.whole for outer, _ in outers)])
    last = outers[0][0]
    many = f" in {len(outers)} matmuls" if len(outers) > 1 else ""
    return Report(
        last.dot if len(outers) == 1 else inner.dot,
        f"the matmul of {sizes(inner.dot.operands[0].shape)} and {sizes(inner.dot.operands[1].shape)} is computed first, "
        f"and its result is multiplied by {max(narrow)} columns{many}; the other order needs {100 * then / now:.2g}% of "
        "the FLOPs",
        "parenthesize so that the narrow matmul is computed first; this changes rounding. If differentiation created it, "
        "apply the factors one after the other, (x @ a) @ b, instead of multiplying by their product",
        flops=2 * (now - then) * context.runs(last.whole),
        seconds=context.prices.together(wholes) * (1 - then / now),
        spares={inner.whole: 1.0},
        covers=frozenset(wholes),
    )


def _is_split(outer: Product) -> bool:
    """True if the batch is a part of what is summed: GPU compilers split long sums so, and add up the parts."""
    users = [user.instruction for user, _ in consumers(outer.value, SAME)]
    return (
        outer.batch > 1
        and bool(users)
        and all(
            one.opcode == "reduce" and tuple(one.attributes.get("dimensions", ())) == (0,) for one in users
        )
    )


def _of_repeated_rows(
    product: Product, side: int, every: Sequence[Product], counted: set[Product], context: Context
) -> Report | None:
    """The rows of a table, taken many times each, are multiplied after the gather: once would do for each row.

    With it go the products of its gradient, which then are of the table's rows likewise: each once (`counted`), since layers
    that share a matrix share them. Not on TPU, where the gather is the dear part and the product hides behind it.
    """
    made = product.origins[side]
    gather = made.instruction
    if (
        gather.opcode != "gather" or product.batch != 1 or context.backend is Backend.TPU
    ):  # no gathered rows are multiplied, or the platform is TPU
        return None
    table, taken = gather.operands[0].shape, gather.shape
    row = math.prod(gather.attributes.get("slice_sizes", ()))
    if table is None or taken is None or not table.element_count or not taken.element_count or row < _LEAST:
        return None
    if not _takes_rows(gather, table):
        return None  # its rows are overlapping windows
    rows, times = taken.element_count // row, taken.element_count / table.element_count
    if row != product.summed or rows != (product.rows if side == 0 else product.columns) or rows == row:
        return None
    matrix = product.origins[1 - side]
    after = [one for one in every if one is not product and _is_gradient(one, made, matrix, rows, row)]
    readers = {user.instruction for user, _ in consumers(made, SAME)} - {product.dot}
    if 1 / times > _HALF or product in counted or not readers.issubset(one.dot for one in after):
        return None
    after = [one for one in after if one not in counted]
    counted.update((product, *after))
    array = written(product.operands[side])
    wholes = dict.fromkeys([product.whole, *(one.whole for one in after)])
    less = _moved_less(product, array, [one for one in after if one.dot in readers], context)
    many = f", also in {pluralize(len(after), 'matmul')} of the gradient" if after else ""
    return Report(
        product.dot,
        f"{rows:,} rows that were gathered from a table of {sizes(table)} are multiplied by "
        f"{sizes(product.dot.operands[1 - side].shape)}: {times:.3g} times as many rows as the table has{many}",
        "multiply the table first, and gather rows of the result",
        flops=round(sum(context.flops(one.dot) for one in (product, *after)) * (1 - 1 / times)),
        seconds=context.prices.together(wholes) * (1 - 1 / times)
        + context.prices.reading(less * context.runs(product.whole)),
        covers=frozenset(wholes),
        spares={array: 1.0} if array is not None else {},
    )


def _moved_less(
    product: Product, array: Instruction | None, gradients: Sequence[Product], context: Context
) -> int:
    """Bytes that are read and written less, besides what products do, if rows are multiplied before they are gathered.

    The gather moves into what reads the product. With gradients of the matrix, those of the rows are first added up by row:
    GPU compilers compute them where that reads them, and the gathered products where they are used; others write both.
    """
    less = size_of(array.shape) if array is not None else 0
    if not gradients:
        return less
    made = [written(one.operands[side]) for one in gradients for side in (0, 1)]
    if context.backend is not Backend.GPU:
        return -sum(size_of(one.shape) for one in made if one is not None and one is not array)
    own = {one.whole for one in gradients}
    less += sum(
        size_of(one.shape)
        for one in dict.fromkeys(made)
        if one is not None and one is not array and own.issuperset(_readers(one))
    )
    return less + size_of(product.dot.shape) * len(_readers(product.whole))


def _takes_rows(gather: Instruction, table: Shape) -> bool:
    """True if each index selects a row of its own: a slice of one element along the dimensions of indices, all of others."""
    indexed = gather.attributes.get("start_index_map", ())
    sizes_ = gather.attributes.get("slice_sizes", ())
    return all(
        size == (1 if dimension in indexed else whole)
        for dimension, (size, whole) in enumerate(zip(sizes_, table.dimensions, strict=True))
    )


def _is_gradient(other: Product, gather: Value, matrix: Value, rows: int, row: int) -> bool:
    """True for the products of a gradient: of the matrix, which sums over the same gathered rows, and of these rows, which
    the same matrix multiplies, and which are scattered back to where they were gathered.

    Other layers gather rows of other tables and multiply them by other matrices; where layers share a matrix, what is
    sent along edges is gathered at one end, and scattered to the other.
    """
    table = gather.instruction.operands[0].shape
    if table is None:
        return False
    if rows == other.summed * other.batch:
        return any(
            origin.instruction.opcode == "gather"
            and all(map(_is_same, origin.operands()[:2], gather.operands()[:2]))
            for origin in other.origins
        )
    if other.batch != 1 or rows not in (other.rows, other.columns) or row not in (other.rows, other.columns):
        return False
    if not any(_is_same(origin, matrix) for origin in other.origins):
        return False
    users = {user for user, _ in consumers(other.value, SAME)}
    return bool(users) and all(
        user.instruction.opcode == "scatter"
        and _is_table(user.instruction, table)
        and _is_same(user.operands()[1], gather.operands()[1])
        for user in users
    )


def _is_same(one: Value, other: Value) -> bool:
    one, other = source(one, SAME), source(other, SAME)
    return one == other or formula(one) == formula(other)


def _is_table(scatter: Instruction, table: Shape) -> bool:
    return scatter.shape is not None and scatter.shape.element_count == table.element_count


def _of_broadcast_rows(
    product: Product, side: int, every: Sequence[Product], counted: set[Product], context: Context
) -> Report | None:
    """Rows that were broadcast or gathered, such as all pairs of rows side by side or those of both ends of edges, are
    multiplied: once would do for each row. With it go the products of its gradient."""
    joined = concatenated(product.origins[side])
    parts, along = joined if joined is not None else ([product.origins[side]], -1)
    parts = [source(part, SAME) for part in parts]
    kept, summed, gathered = 0.0, 0, 0
    for part in parts:
        shape = part.instruction.shape
        if shape is None or not shape.is_array or not shape.rank or not shape.element_count:
            return None
        if along not in (-1, shape.rank - 1) and part.instruction.opcode != "gather":
            return None
        summed += shape.dimensions[-1]
        kept += shape.dimensions[-1] * _distinct(part) / product.summed
        gathered += shape.dimensions[-1] if part.instruction.opcode == "gather" else 0
    if gathered and along == -1:  # a gather counts only together with its gradient
        return None
    whole = product.origins[side].instruction.shape
    if gathered and (whole is None or along != whole.rank - 1):
        return None
    if summed != product.summed or product.batch != 1 or kept >= _HALF or product.columns < _LEAST_NARROW:
        return None
    rows = product.rows if side == 0 else product.columns
    array = written(product.operands[side])
    after = _gradients(product, side, rows, array, every) if gathered else []
    if gathered and context.backend is Backend.TPU and not after:
        return None  # gathering rows of the wider matmuls takes as long as multiplying
    if product in counted:
        return None
    between = _between(after, array)
    readers = {product.whole, *between, *(one.whole for one in after)}
    if array is not None and (array.opcode == "parameter" or not readers.issuperset(_readers(array))):
        array, after, between = None, [], []
    after = [one for one in after if one not in counted]
    counted.update((product, *after))
    prices, runs = context.prices, context.runs(product.whole)
    # What is left reads the rows that were not gathered, and reads or writes what they are multiplied to, unless that is
    # computed where it is used.
    apart = 1 - gathered / summed if gathered else 0.0
    read = apart * (size_of(array.shape) if array is not None else 0)
    made = size_of(product.dot.shape)
    is_fused = _is_fused(product)
    spared = prices.reading(made * runs) if is_fused else 0.0
    for one in (product, *after):
        now = prices.seconds(one.whole)
        moved = read + (0 if one is product and is_fused else made)
        spared += now - min(now, max(now * kept, prices.reading(moved * runs)))
    wholes = [one.whole for one in (product, *after)]
    spared += prices.together(between) * (1 - apart)
    spares = dict.fromkeys(between, 1 - apart)
    if array is not None:  # only writing the gathered rows would be saved
        if gathered and not is_fused:
            spared += min(prices.seconds(array), prices.reading(size_of(array.shape) * runs))
        else:
            spared += prices.seconds(array)
        spares[array] = 1.0
    many = f", also in {pluralize(len(after), 'matmul')} of the gradient" if after else ""
    return Report(
        product.dot,
        f"{rows:,} rows that {'were gathered from fewer' if gathered else 'repeat fewer'} are multiplied by "
        f"{sizes(product.dot.operands[1 - side].shape)}{many}: {100 * kept:.2g}% of the FLOPs would suffice",
        f"multiply before the rows are {'gathered' if gathered else 'repeated'}, each part by its rows of the matrix, and "
        f"add the results: {'(x @ w[:k])[i] + (x @ w[k:])[j]' if gathered else '(a @ w[:k])[:, None] + (b @ w[k:])[None]'}",
        flops=round(sum(context.flops(one.dot) for one in (product, *after)) * (1 - kept)),
        seconds=spared,
        spares=spares,
        covers=frozenset([*wholes, *spares]),
    )


_PADDED = SAME | {"pad"}


def _readers(array: Instruction) -> set[Instruction]:
    """The operations that read an array, perhaps through views."""
    return {user.writer for user, _ in consumers(Value(array), SAME)}


def _is_fused(product: Product) -> bool:
    """True if what a product is added up to elsewhere needs no array of its own: only elementwise operations read it."""
    users = [user for user, _ in consumers(product.value, SAME)]
    return bool(users) and all(
        user.instruction.opcode in ELEMENTWISE
        and not any(part.opcode in traits.CONTRACTIONS for part in parts_of(user.writer))
        for user in users
    )


def _gradients(
    product: Product,
    side: int,
    rows: int,
    array: Instruction | None,
    every: Sequence[Product],
) -> list[Product]:
    """The products of the gradient of one that multiplies joined rows, perhaps held in an array: of its matrix, which sums
    over the rows, and of these rows, which the same matrix multiplies."""
    readers = (
        {user.instruction for user, _ in consumers(Value(array), _PADDED)} if array is not None else set()
    )
    matrix, joined = product.origins[1 - side], _rows_of(concatenated(product.origins[side]))
    return [
        one
        for one in every
        if one is not product
        and (
            (
                one.summed * one.batch >= rows
                and (one.dot in readers or joined in map(_rows_of, map(concatenated, one.origins)))
            )
            or (matrix in one.origins and {one.rows, one.columns} == {rows, product.summed})
        )
    ]


def _rows_of(joined: tuple[list[Value], int] | None) -> list[Value] | None:
    """Where joined rows come from, of gathered ones the table: TPU compilers join and gather them anew for each reader."""
    if joined is None:
        return None
    made = [source(part, SAME) for part in joined[0]]
    return [source(one.operands()[0], SAME) if one.instruction.opcode == "gather" else one for one in made]


def _between(after: Sequence[Product], array: Instruction | None) -> list[Instruction]:
    """Operations that pad an array for products that sum over its rows: compilers split long sums in equal parts."""
    made = {written(operand) for one in after for operand in one.operands}
    return [one for one in array.users if one in made] if array is not None else []


def _distinct(value: Value) -> float:
    """The part of the rows of a value that are not repetitions, of those of its last dimension."""
    one = value.instruction
    inner, shape = one.operands[0].shape if one.operands else None, one.shape
    if one.opcode == "gather" and inner is not None and shape is not None:
        is_of_rows = math.prod(one.attributes.get("slice_sizes", ())) == shape.dimensions[-1]
        return min(1.0, (inner.element_count or 0) / (shape.element_count or 1)) if is_of_rows else 1.0
    if one.opcode != "broadcast" or inner is None or shape is None or not inner.rank:
        return 1.0
    if one.attributes.get("dimensions", ())[-1] != shape.rank - 1:
        return 1.0
    return (inner.element_count or 0) / (shape.element_count or 1)
