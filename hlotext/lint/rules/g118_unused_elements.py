"""Products, sorts and what is made of them, of which only a part is used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from hlotext.analysis import Backend, memory_space
from hlotext.analysis.formatting import pluralize
from hlotext.cost import product_sizes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape
from hlotext.lint.alike_fusions import Alike, alike
from hlotext.lint.both_branches import both_branches
from hlotext.lint.demand import Asked, Demand, fraction
from hlotext.lint.demanded import demands, least_work
from hlotext.lint.helpers import (
    connected,
    fusions_around,
    is_of_fourier_transform,
    is_of_package,
    is_solvers,
    size_of,
)
from hlotext.lint.operand_demands import product_places
from hlotext.lint.own_parts import own_part
from hlotext.lint.own_parts import remedy as own_remedy
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import WORTH_KERNEL, Context, Report, Rule
from hlotext.lint.square_factors import square_factors
from hlotext.lint.stable_sorts import of_keys_alone
from hlotext.lint.unused_rows import unused_rows
from hlotext.lint.values import Value
from hlotext.lint.wording import sizes

_MOST_COUNTED, _QUARTER = 0.6, 0.25
"""Part of the elements, in blocks, that are used, up to which computing the others is worth knowing: where positions tell, as
causal masks of 768 positions do, and where data do, for which static sizes leave some room."""
_HALF = 0.5
"""Part of which the author is warned: blocks of a triangle are more, and take a kernel of their own."""
_FIRST = 0.125
"""Part of a sorted dimension that the first or last elements are, likewise: more of them are not found faster."""
_MOST_SELECTED, _LEAST_SELECTED_FROM = 16, 1024
"""The elements that XLA's kernel for top_k on GPU finds at most, and of how many at least."""
_WIDE = 64
"""Elements for each pair of rows that data pick, from which on a product of those pairs reads less than it computes."""
_PRODUCTS = traits.DOTS | {"convolution"}
_WORK = ELEMENTWISE | _PRODUCTS | traits.REPEATS_ELEMENTS | {"fusion", "reduce"}

_BY_BLOCKS = "compute only the blocks that the mask keeps: banded attention, or a kernel that skips blocks"


class UnusedElements(Rule):
    code = "G118"
    name = "unused-elements"
    title = "a matrix multiplication, sort or table whose result is only partly used"
    waste = "dense"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        yield from both_branches(context)
        asked, bodies = demands(context.module), alike(context.module)
        yield from square_factors(context, asked)
        saved: dict[Instruction, float] = {}
        main: dict[Instruction, Instruction] = {}
        for one in context.graph.sequential_instructions():
            opcode = one.opcode
            if (
                opcode not in _WORK and opcode != "sort"
            ):  # it is not a matmul or a sort, nor computed from one
                continue
            opcodes = bodies.opcodes(one)
            if "sort" in opcodes and (sort := _partly_used_sort(one, asked, context)) is not None:
                yield _of_sort(sort, one, context)
            elif (report := of_keys_alone(one, context)) is not None:
                yield report
            elif (
                opcode != "sort"
                and not is_of_fourier_transform(one)
                and not is_solvers(one)
                and (found := _unused(one, bodies, asked)) is not None
            ):  # all its elements are used
                main[one], kept = found
                read = sum(
                    size_of(operand.shape) * fraction(asked.get(operand), operand.shape)
                    for operand in one.operands
                    if operand.shape is None or not memory_space(operand.shape)
                )
                read = max(read * _kernel_positions(main[one]), _picked(main[one], asked))
                least = max(
                    kept * context.prices.seconds(one), context.prices.reading(read * context.runs(one))
                )
                saved[one] = max(0.0, context.prices.seconds(one) - least)
        saved = {one: seconds for one, seconds in saved.items() if seconds}
        for group in connected(saved):
            products = [one for one in group if main[one].opcode in _PRODUCTS]
            if not products:
                if (
                    report := unused_rows(group, saved, asked, context)
                ) is not None:  # too much of it is used
                    yield report
                continue
            first = max((one for one in saved if one in products), key=saved.__getitem__)
            words, remedy = _said(main[first], asked, context)
            seconds = sum(saved[one] for one in group)
            spares = {one: 1 - fraction(asked.get(one), one.shape) for one in group}
            if remedy == _BY_BLOCKS and not _is_worth_kernel(
                seconds, spares, context
            ):  # too little of it is unused
                continue
            more = (
                f"; the same holds for {pluralize(len(products) - 1, 'operation')} before or after it"
                if len(products) > 1
                else ""
            )
            part = max(least_work(main[one], asked)[1] for one in products)
            yield Report(
                main[first],
                f"{words.format(_product(main[first]))}{more}",
                remedy,
                flops=round(
                    sum(context.flops(main[one]) * (1 - least_work(main[one], asked)[1]) for one in products)
                ),
                seconds=seconds,
                spares=spares,
                covers=frozenset(group),
                # How far back the edit goes, or how much room it leaves, is for the author to say.
                is_proved=None
                if part <= _HALF or _in_iterations(main[first], asked) <= _MOST_COUNTED
                else False,
                is_at_most=len(products) > 1
                or not _is_of_positions(least_work(main[first], asked)[0])
                or product_places(main[first]) is None,
            )


def _is_worth_kernel(seconds: float, spares: Mapping[Instruction, float], context: Context) -> bool:
    if seconds >= WORTH_KERNEL * context.prices.step:
        return True
    saved = context.saved_peak(spares)
    return saved is not None and saved >= WORTH_KERNEL * (context.peak or saved)


def _kernel_positions(product: Instruction) -> int:
    """Positions of a kernel of which a convolution computes the gradient, each a sum over both operands; 1 for a matmul."""
    if product_places(product) is not None or product.opcode != "convolution" or product.shape is None:
        return 1
    labels = product.attributes["dim_labels"]
    return math.prod(product.shape.dimensions[d] for d in labels.output_spatial_dimensions)


def _picked(product: Instruction, asked: Mapping[Instruction, Asked]) -> int:
    """Bytes of the rows of both operands for the elements of a product that indices pick, gathered for each."""
    needed, found = asked.get(product), product_sizes(product)
    if not isinstance(needed, Demand) or found is None:
        return 0
    row = sum(
        found[3] * size_of(operand.shape) // max(1, operand.shape.element_count or 0)
        for operand in product.operands[:2]
        if operand.shape is not None
    )
    return row * sum(mask.picked for mask in (needed.masks or {}).values())


def _unused(
    one: Instruction, bodies: Alike, asked: Mapping[Instruction, Asked]
) -> tuple[Instruction, float] | None:
    """Result of which half at the most is used, of an operation or a product inside, with the part that is."""
    products = bodies.parts(one, _PRODUCTS)
    if not products and asked.get(one) is None:
        return None
    needed = [least_work(part, asked) for part in products or [one]]
    kept = max(part for _, part in needed)
    counted = all(_is_of_positions(each) for each, _ in needed)
    if kept > (_MOST_COUNTED if counted else _QUARTER) or not all(
        _could_be_skipped(part, asked) for part in products
    ):
        return None
    return (products[0] if products else one), kept


def _in_iterations(one: Instruction, asked: Mapping[Instruction, Asked]) -> float:
    """The part of the iterations of loops in which a mask keeps any element of a product: the others need not run."""
    needed, _ = least_work(one, asked)
    masks = (needed.masks or {}).values() if isinstance(needed, Demand) else ()
    return min((mask.rounds for mask in masks), default=1.0)


def _is_of_positions(needed: Asked) -> bool:
    return not isinstance(needed, Demand) or all(mask.is_counted for mask in (needed.masks or {}).values())


def _could_be_skipped(product: Instruction, asked: Mapping[Instruction, Asked]) -> bool:
    """True if there is a cheaper matmul: there is none if data selects single elements."""
    needed, places = asked.get(product), product_places(product)
    if least_work(product, asked)[0] is not needed:  # a mask of positions excludes rows of its operands
        return True
    if not isinstance(needed, Demand):
        return False
    if (
        places is None
    ):  # compilers compute all pairs of channels of a convolution with groups, and mask those of two groups
        return product.opcode == "convolution" and _is_of_positions(needed)
    rows, columns = (frozenset(there.values()) for there in places)
    sizes = product.shape.dimensions if product.shape is not None else ()
    for mask in (needed.masks or {}).values():
        pairs = mask.dimensions & (rows - columns) and mask.dimensions & (columns - rows)
        free = (rows ^ columns) - mask.dimensions
        if pairs and not (mask.is_counted or mask.picked) and math.prod(sizes[d] for d in free) < _WIDE:
            return False
    return True


def _product(one: Instruction) -> str:
    kind = "matmul" if product_places(one) is not None else "convolution"
    return f"the {kind} of {' and '.join(sizes(operand.shape) for operand in one.operands[:2])}"


def _said(one: Instruction, asked: Mapping[Instruction, Asked], context: Context) -> tuple[str, str]:
    """The part of a result that is used, in words with `{}` for the result, and the remedy."""
    needed, _ = least_work(one, asked)
    assert isinstance(needed, Demand)
    lengths = one.shape.dimensions if one.shape is not None else ()
    counts = {d: part.count for d, part in enumerate(needed.parts) if part is not None}
    if counts:
        d = min(counts, key=lambda d: counts[d] / max(1, lengths[d]))
        words = f"{counts[d]:,} of {lengths[d]:,} indices of dimension {d} of {{}}"
        cut = own_part(Value(one, fusions_around(one, context)), context)
        if cut is not None:
            return f"each device uses only its own {words}", own_remedy(cut)
        remedy = "slice first (x[:, -1] before the matmul), and compute only what is used"
        return f"only {words} {'is' if counts[d] == 1 else 'are'} used", remedy
    masks = list((needed.masks or {}).values())
    part = min(1.0, sum(mask.part for mask in masks))
    if all(mask.is_counted for mask in masks):
        if product_places(one) is None:
            return (
                f"only {100 * part:.2g}% of the elements of {{}} are used, those within a group of channels: the "
                "compiler computes the gradient of a grouped kernel for all pairs of channels",
                "write a depthwise convolution as a sum of shifted slices times their weights (x[:, i:i+h, j:j+w] * "
                "k[i, j] for each i and j), whose gradients sum each channel separately; with few large groups, "
                "convolve each group separately",
            )
        if len(masks) == 1 and masks[0].is_diagonal(lengths):
            remedy = "multiply elementwise and sum (jnp.einsum('ij,ji->i', a, b), jnp.sum(a * b.T))"
            return "only the diagonal of {} is used", remedy
        if (kept := min(mask.rounds for mask in masks)) <= _MOST_COUNTED:
            return (
                f"each element of {{}} is used in only {100 * kept:.2g}% of the iterations: "
                "a position mask excludes it from the others",
                "skip iterations that the mask excludes entirely: with a causal mask, loop over row blocks in Python "
                "and only over the key blocks up to each (lax.scan over blocks[: i + 1]), or skip the rest with lax.cond",
            )
        what = "elements" if needed is asked.get(one) else "multiplications"
        return (
            f"only {100 * part:.2g}% of the {what} of {{}} are used: a position mask excludes the others",
            _BY_BLOCKS,
        )
    if all(mask.picked for mask in masks):
        return (
            f"only {sum(mask.picked for mask in masks):,} elements of {{}} are used, selected by index",
            "gather the rows of both operands and sum over them (jnp.einsum('nk,nk->n', a[i], b[j]))",
        )
    return (
        f"only {100 * part:.2g}% of the elements of {{}} are used, selected by data",
        "compute only what is selected: before the matmul, gather the rows that each part needs into a fixed-size buffer, "
        "and scatter the results afterwards",
    )


def _partly_used_sort(
    one: Instruction, asked: Mapping[Instruction, Asked], context: Context
) -> tuple[Instruction, int, int] | None:
    """A sort of the program of which only so many first and so many last elements are used."""
    sort = next((part for part in parts_of(one) if part.opcode == "sort"), None)
    shape = sort.operands[0].shape if sort is not None and sort.operands else None
    if sort is None or shape is None or not shape.is_array or is_of_package(sort):
        return None
    # Compilers make sorts of other operations, top_k among them.
    if sort.metadata is None or not sort.metadata.op_name.endswith(("/sort", "/argsort")):
        return None
    along = (sort.attributes.get("dimensions") or (shape.rank - 1,))[0]
    needed = asked.get(sort)
    every = list(needed.values()) if isinstance(needed, dict) else [needed]
    size, first, last = shape.dimensions[along], 0, 0
    for each in every:
        part = each.parts[along] if isinstance(each, Demand) else None
        if part is None or part.loose or not part.known.any():
            return None
        places = part.known.nonzero()[0]
        first = max([first, *(places[places < size / 2] + 1).tolist()])
        last = max([last, *(size - places[places >= size / 2]).tolist()])
    most = first + last
    if most > _FIRST * size:
        return None
    if context.backend is Backend.GPU and max(first, last) > 1 and not _is_selected(shape, size, most):
        return None
    return sort, first, last


def _is_selected(shape: Shape, size: int, most: int) -> bool:
    """True if XLA has a kernel for the first elements on GPU; of others it makes a sort of all."""
    return shape.element_type.name == "f32" and most <= _MOST_SELECTED and size >= _LEAST_SELECTED_FROM


def _of_sort(found: tuple[Instruction, int, int], whole: Instruction, context: Context) -> Report:
    sort, first, last = found
    used = first + last
    read = sum(size_of(operand.shape) for operand in whole.operands) * context.runs(whole)
    ends = f" ({first:,} from the beginning, {last:,} from the end)" if first and last else ""
    return Report(
        sort,
        f"a sort of {sizes(sort.operands[0].shape)}, of which only {pluralize(used, 'element')} per row "
        f"{'is' if used == 1 else 'are'} used{ends}",
        "take those with jax.lax.top_k"
        if max(first, last) > 1
        else "take the smallest or largest with jnp.min or jnp.max, and its index with jnp.argmin or jnp.argmax",
        seconds=max(0.0, context.prices.seconds(whole) - context.prices.reading(read)),
        covers=frozenset([whole]),
    )
