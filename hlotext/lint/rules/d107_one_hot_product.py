"""Products with matrices that only select: one-hot rows and diagonals."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend, memory_space
from hlotext.cost import product_sizes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.diagonals import diagonals, has_diagonals
from hlotext.lint.helpers import fusions_around, is_of_convolution, size_of, times
from hlotext.lint.products import SAME, Product, concatenated, products
from hlotext.lint.rounds import Purity, rounds_of, same_in_rounds, unmoved
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.selectors import Selector, selector, writers, written
from hlotext.lint.slots import before_loops
from hlotext.lint.sums import slots_added_to
from hlotext.lint.values import VIEWS, Value, entered, source
from hlotext.lint.wording import sizes
from hlotext.lint.zeros import zeros

_LEAST = 2
_SPARSE = 1 / 64
"""Part of a matrix that may not be zero, up to which adding up the terms takes less than a dense product."""
_MOST_OFFSETS = 7
"""Offsets that are named."""


class OneHotProduct(Rule):
    code = "D107"
    name = "one-hot-product"
    title = "a matrix multiplication by a one-hot or diagonal matrix"
    needs_any = traits.CONTRACTIONS
    waste = "dense"

    def check_module(self, context: Context) -> Iterator[Report]:
        priced: set[Instruction] = set()
        part_of = zeros(context.module).part
        every, is_banded = products(context), has_diagonals(context.module)
        for product in every:
            for side, value in enumerate(product.operands):
                found = selector(product.origins[side])
                if (
                    found is not None and found.classes >= _LEAST
                ):  # no operand of a matmul is known to be one-hot
                    if context.backend is Backend.TPU and not found.is_diagonal and _adds_up(product, found):
                        break  # a TPU adds scattered rows one after the other, and a matmul many at once
                    if found.is_diagonal and _is_of_second_derivative(product.dot):
                        break  # differentiation multiplies all directions, and no edit of the matmul parts them
                    report = _report(product, side, found, priced, context)
                    yield attrs.evolve(report, origin=_origin(product, side))
                    break
                if found is None and (joined := _of_part(product, side, priced, context)) is not None:
                    yield joined
                    break
                matrix = value
                if product.origins[side].instruction.opcode == "get-tuple-element":
                    matrix = before_loops(value)
                bands = diagonals(matrix) if is_banded and found is None else None
                if bands is not None and 1 < len(bands) <= _SPARSE * product.summed:
                    yield _of_diagonals(product, side, matrix, bands, priced, context)
                    break
                part = part_of(matrix) if found is None else None
                if part is not None and part <= _SPARSE:  # no operand of a matmul is known to be one-hot
                    yield _of_sparse(product, value, matrix, part, context)
                    break
        dots = {product.dot for product in every}
        for convolution in context.census.by_opcode.get("convolution", ()):
            if convolution not in dots:
                yield from _of_diagonal_kernel(convolution, context)


def _origin(product: Product, side: int) -> Instruction | None:
    """Where the program makes a selecting matrix, for a matmul without frames: a gradient's other operand has those of the
    loss. None for a matmul that has its own."""
    if product.dot.innermost_frame is not None or product.whole.innermost_frame is not None:
        return None
    made = (product.origins[side].instruction, product.operands[side].instruction)
    return next((one for one in made if one.innermost_frame is not None), None)


def _report(
    product: Product, side: int, found: Selector, priced: set[Instruction], context: Context
) -> Report:
    runs, all_runs = context.runs(product.whole), context.prices.runs(product.whole.computation)
    masks = [one for one in writers(product.operands[side]) if one not in priced]
    sums = _accumulated(product, context) if not found.is_diagonal and _adds_up(product, found) else []
    # What is scaled is read instead as it is read now; a table may be fetched as a whole for its rows, too.
    fetches = _fetches(product) if found.is_diagonal else []
    priced.update(masks, sums)
    # Rows that are added to a sum in place are read, and the sum's rows are read and written.
    rows = product.operands[1 - side].instruction.shape
    reader = _scaled_in(product, context) if found.is_diagonal else None
    moved = 3 * size_of(rows) if sums else 2 * size_of(product.dot.shape)
    if not sums and not found.is_diagonal and _adds_up(product, found):
        moved += size_of(rows)
    instead = 0.0 if reader is not None else context.prices.reading(moved * all_runs)
    seconds = context.prices.seconds(product.whole) + context.prices.together([*masks, *sums, *fetches])
    spares = {one: _less(one, product, all_runs) for one in masks}
    if reader is not None:
        spares[product.whole] = 1.0
    blocks = found.is_diagonal and found.classes < product.summed
    kind = "block-diagonal" if blocks else "diagonal" if found.is_diagonal else "one-hot"
    of = "blocks" if blocks else "rows" if found.is_diagonal else "classes"
    does = "keep blocks apart" if blocks else "scale rows" if found.is_diagonal else "select or sum rows"
    return Report(
        product.dot,
        f"the matmul of {' and '.join(sizes(one.shape) for one in product.dot.operands[:2])} runs{times(runs)} with a {kind} "
        f"matrix of {found.classes:,} {of}, multiplying by zeros to {does}",
        "multiply each block separately: give the other matrix a dimension of blocks, and use jnp.einsum"
        if blocks
        else "multiply by the diagonal itself (d[:, None] * a)"
        if found.is_diagonal
        else "gather the rows by index (table[indices], jnp.take), and sum with .at[].add",
        flops=context.flops(product.dot),
        seconds=max(0.0, seconds - instead),
        spares=spares,
        covers=frozenset([*masks, *sums]),
    )


def _is_of_second_derivative(dot: Instruction) -> bool:
    """True if a matmul is part of a derivative of a derivative, as a Hessian is."""
    return dot.metadata is not None and dot.metadata.op_name.count("jvp(") > 1


def _scaled_in(product: Product, context: Context) -> Instruction | None:
    """The one operation that reads a product, into which a scaling in its place is fused: not into the calls of a CPU."""
    users = product.whole.users
    if context.backend is Backend.CPU or len(users) != 1 or product.whole.is_root:
        return None
    return users[0] if users[0].opcode in traits.CONTRACTIONS | {"fusion"} else None


def _of_part(product: Product, side: int, priced: set[Instruction], context: Context) -> Report | None:
    """A product with one-hot rows beside others, as of categories and numbers that describe the same thing."""
    value = product.origins[side]
    joined, shape = concatenated(value), value.instruction.shape
    if joined is None or shape is None or joined[1] != shape.rank - 1:
        return None
    classes = sum(_classes(part) for part in joined[0])
    if (
        classes < _LEAST or classes * 2 < shape.dimensions[-1]
    ):  # no operand of a matmul is known to be one-hot
        return None
    prices, runs = context.prices, context.prices.runs(product.whole.computation)
    masks = [one for one in writers(product.operands[side]) if one not in priced]
    priced.update(masks)
    part = classes / shape.dimensions[-1]
    # The rows that are picked are read, and added to what the others give.
    instead = prices.reading(3 * size_of(product.dot.shape) * runs)
    seconds = prices.seconds(product.whole) * part + prices.together(masks) - instead
    if seconds <= 0:  # gathering the rows would take as long
        return None
    return Report(
        product.dot,
        f"{classes:,} of {shape.dimensions[-1]:,} columns of a {sizes(shape)} matmul operand are one-hot, almost all zeros"
        f"{times(context.runs(product.whole))}",
        "gather the rows of the other matrix by index, and add the matmul of the remaining columns (w[i] + x @ w[n:])",
        flops=round(context.flops(product.dot) * part),
        seconds=seconds,
        spares=dict.fromkeys(masks, part),
        covers=frozenset(masks),
    )


def _classes(part: Value) -> int:
    """Columns of a part of a matrix that are one-hot; 0 where its rows are not."""
    shape, found = source(part, SAME).instruction.shape, selector(part)
    if found is None or found.is_diagonal or shape is None or not shape.rank:
        return 0
    return found.classes if shape.dimensions[-1] == found.classes else 0


def _fetches(product: Product) -> list[Instruction]:
    """The transfers into fast memory of an operand for the product alone."""
    done = (one for one in product.whole.operands if one.opcode == "copy-done" and len(one.users) == 1)
    return [one.async_chain[0] for one in done if one.async_chain]


def _less(mask: Instruction, product: Product, runs: int) -> float:
    """The part of a matrix that need not be held: where it is made before the loop that takes slices of it, the rows are."""
    if mask.computation is product.whole.computation:
        return 1.0
    return max(0.0, 1 - size_of(product.dot.shape) * runs / max(1, size_of(mask.shape)))


def _accumulated(product: Product, context: Context) -> list[Instruction]:
    """The instructions that add a product to the state of the loop around it, where nothing else reads it."""
    loop = context.loop_around(product.whole.computation)
    rounds = rounds_of(loop) if loop is not None else None
    if rounds is None or rounds.body is not product.whole.computation:
        return []
    slots = slots_added_to(product.value, rounds, same_in_rounds(rounds, Purity()))
    sums = {unmoved(rounds.given[slot]) for slot in slots}
    return [one for one in sums if one.opcode in ("add", "fusion") and one is not product.whole]


def _adds_up(product: Product, found: Selector) -> bool:
    """True if rows are summed by class rather than selected."""
    return product.dot.shape is not None and found.classes in product.dot.shape.dimensions


def _of_diagonals(
    product: Product,
    side: int,
    matrix: Value,
    bands: frozenset[int],
    priced: set[Instruction],
    context: Context,
) -> Report:
    """A product with a few diagonals, as of a difference scheme: each scales the rows of the other matrix, shifted by its
    offset."""
    prices, runs = context.prices, context.prices.runs(product.whole.computation)
    masks = [one for one in writers(product.operands[side]) if one not in priced]
    priced.update(masks)
    # The rows and the diagonals are read, and the sum is written.
    shapes = [source(product.operands[1 - side], VIEWS).instruction.shape, product.whole.shape]
    rows = sum(size_of(shape) for shape in shapes if shape is None or not memory_space(shape))
    diagonal = size_of(product.dot.operands[side].shape) // max(1, product.summed)
    instead = prices.reading((rows + len(bands) * diagonal) * runs)
    offsets = ", ".join(str(offset) for offset in sorted(bands)[:_MOST_OFFSETS])
    more = ", ..." if len(bands) > _MOST_OFFSETS else ""
    array = written(matrix)
    return Report(
        product.dot,
        f"the matmul of {' and '.join(sizes(one.shape) for one in product.dot.operands[:2])} runs"
        f"{times(context.runs(product.whole))} with a matrix that is zero except on {len(bands)} diagonals (offsets {offsets}"
        f"{more})",
        "multiply the rows by each diagonal and add them, shifted by its offset (d[:, None] * x, with "
        "jnp.pad(e[:, None] * x[1:], ((0, 1), (0, 0))) for the diagonal above)",
        flops=context.flops(product.dot),
        seconds=max(0.0, prices.seconds(product.whole) + prices.together(masks) - instead),
        spares={one: 1.0 for one in (*masks, array) if one is not None and one is not product.whole},
        covers=frozenset(masks),
    )


def _of_sparse(product: Product, value: Value, whole: Value, part: float, context: Context) -> Report:
    """A product with a matrix of which almost all is zero: few elements scattered into zeros, such as a graph's edges."""
    matrix = entered(whole).instruction.shape
    terms = part * (matrix.element_count or 0) if matrix is not None else 0.0
    width = max(1, (product.rows * product.columns * product.batch) // max(1, _other(product, value)))
    # Each term reads a row, its sum is read and written.
    moved = (
        3
        * terms
        * width
        * max(1, size_of(product.dot.shape) // max(1, product.batch * product.rows * product.columns))
    )
    instead = context.prices.reading(moved * context.prices.runs(product.whole.computation))
    mask = written(whole)
    return Report(
        product.dot,
        f"the matmul of {' and '.join(sizes(one.shape) for one in product.dot.operands[:2])} runs"
        f"{times(context.runs(product.whole))} with an operand that is at most {100 * part:.2g}% nonzero",
        "sum the terms by index (jax.ops.segment_sum(x[source], target), .at[].add), or use jax.experimental.sparse",
        flops=context.flops(product.dot),
        seconds=max(0.0, context.prices.seconds(product.whole) - instead),
        spares={mask: 1.0} if mask is not None else {},
        is_proved=context.backend is not Backend.TPU,  # which adds scattered rows one after the other
    )


def _other(product: Product, value: Value) -> int:
    """The size of the dimension that the result has of a matrix."""
    return product.rows if value == product.operands[0] else product.columns


def _of_diagonal_kernel(convolution: Instruction, context: Context) -> Iterator[Report]:
    """A convolution whose kernel has each channel of the result depend on the one channel of the same number."""
    labels, window = convolution.attributes.get("dim_labels"), convolution.attributes.get("window")
    fusions = fusions_around(convolution, context)
    if labels is None or window is None or product_sizes(convolution) is not None:
        return
    kernel = Value(convolution.operands[1], fusions)
    found, shape = selector(kernel), convolution.operands[1].shape
    if (
        found is None
        or not found.is_diagonal
        or shape is None
        or shape.dimensions.count(found.classes) < _LEAST
    ):
        return
    if convolution.attributes.get("feature_group_count", 1) != 1 or _is_expanded(kernel):
        return
    whole, prices = (*fusions, convolution)[0], context.prices
    flops = context.flops(convolution)
    vector = prices.chip.rates.vector
    runs = prices.runs(whole.computation)
    moved = sum(size_of(one.shape) for one in (convolution, convolution.operands[0]))
    by_channel = (
        context.in_all_rounds(flops, whole) / found.classes / vector.value if vector is not None else 0.0
    )
    yield Report(
        convolution,
        f"a convolution with a kernel of {sizes(shape)}{times(context.runs(whole))} multiplies by zeros: the kernel is "
        f"diagonal, so each of {found.classes:,} channels is convolved separately",
        f"pass one filter per channel, with feature_group_count={found.classes}",
        flops=flops,
        seconds=max(0.0, prices.seconds(whole) - max(by_channel, prices.reading(moved) * runs)),
    )


def _is_expanded(kernel: Value) -> bool:
    """True if the compiler made the mask in a kernel, as it expands some convolutions by channel."""
    pending, seen = [kernel], {kernel}
    while pending and len(seen) < _MOST_STEPS:
        value = entered(pending.pop())
        if value.instruction.opcode == "compare" and is_of_convolution(value.instruction):
            return True
        new = [operand for operand in value.operands() if operand not in seen]
        pending += new
        seen.update(new)
    return False


_MOST_STEPS = 100
