"""Sums over products that are computed element by element where a matrix product would do."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import Backend
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.alike_fusions import alike
from hlotext.lint.helpers import size_of, times
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.separable import Separable, separable_sums
from hlotext.lint.values import largest_elements
from hlotext.lint.wording import sizes

_TILES = {Backend.TPU: 128, Backend.GPU: 16}
"""To a multiple of this the unit for products pads the summed dimension and the columns."""
_NEEDED = frozenset({"broadcast", "reduce"})
_WRITTEN = "/dot_general"
"""A product of the program that the compiler writes out in elements, as those with vectors."""


class ProductByElements(Rule):
    code = "G123"
    name = "product-by-elements"
    title = "a sum of products computed elementwise, where a matmul would do"
    waste = "dense"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        bodies = alike(context.module)
        for whole in context.graph.sequential_instructions():
            if whole.opcode != "fusion" or not bodies.opcodes(whole) >= _NEEDED:
                continue  # it does not sum products
            for body in whole.called_computations:
                for found in separable_sums(body):
                    if not _is_written_out(found):
                        yield from _report(whole, found, context)


def _is_written_out(found: Separable) -> bool:
    """True if the program has the matmul, and the compiler writes it out: both factors vary along what it sums alone, or
    it is the compiler that broadcasts them."""
    parts = (found.reduce, *(one for side in found.factors for one in side))
    return all(one.metadata is not None and one.metadata.op_name.endswith(_WRITTEN) for one in parts)


def _report(whole: Instruction, found: Separable, context: Context) -> Iterator[Report]:
    prices, runs = context.prices, context.prices.runs(whole.computation)
    now = prices.seconds(whole) * _part(whole, found)
    saved = now - _instead(whole, found, context) * runs
    if saved <= 0:  # the matrix unit would take as long
        return
    summand = found.reduce.operands[0]
    if found.is_apart:
        yield Report(
            whole,
            f"{sizes(summand.shape)} terms are computed and summed{times(context.runs(whole))}, each a product of one factor "
            f"for each of {found.rows:,} rows and one for each of {found.columns:,} others: all pairs are summed",
            "sum the factors first, and multiply the sums: over all pairs, the sum of |x - y|^2 is "
            "n * sum(y^2) + m * sum(x^2) - 2 * sum(x) @ sum(y)",
            seconds=saved,
            origin=found.reduce,
        )
        return
    cancels = (
        "; |x - y|^2 = |x|^2 - 2 x.y + |y|^2 needs precision=jax.lax.Precision.HIGHEST (the stated saving assumes "
        "it), and is less accurate for distances that are small relative to the vectors"
        if found.is_difference
        else ""
    )
    yield Report(
        whole,
        f"{sizes(summand.shape)} terms are multiplied and summed elementwise{times(context.runs(whole))}: "
        "each term is the product of one element from each of two smaller arrays",
        f"write it as a matmul of the factors (jnp.einsum, x @ y.T){cancels}{_of_branch(found)}",
        seconds=saved,
        origin=found.reduce,
    )


def _of_branch(found: Separable) -> str:
    """Advice where `jax.vmap` broadcasts what a conditional reads."""
    metadata = found.reduce.metadata
    is_product = metadata is not None and metadata.op_name.endswith(_WRITTEN) and "vmap(" in metadata.op_name
    if not is_product:
        return ""
    return (
        "; under jax.vmap, a conditional broadcasts all that its branches read: apply them to the batch outside of it, and "
        "select with jnp.where"
    )


def _part(whole: Instruction, found: Separable) -> float:
    """The part of a fusion's work that is the sum's, by elements."""
    working = ELEMENTWISE | traits.REDUCTIONS
    every = sum(largest_elements(one) for one in parts_of(whole) if one.opcode in working)
    return min(1.0, sum(map(largest_elements, found.work)) / every) if every else 0.0


def _instead(whole: Instruction, found: Separable, context: Context) -> float:
    """Seconds of the matrix products, of differences in full precision; a result that is fused now is written and read."""
    prices = context.prices
    shape = found.reduce.operands[0].shape
    name = shape.element_type.name if shape is not None else "f32"
    if name == "f32" and context.backend is Backend.GPU and not found.is_difference:
        name = "tf32"  # XLA's default
    peak, launch = prices.chip.rates.peak(name), prices.chip.rates.launch
    tile = _TILES.get(context.backend, 1) if context.backend is not None else 1
    padded = found.flops
    for size in (found.summed, found.columns):
        padded = padded // size * (-(-size // tile) * tile)
    compute = padded / peak.value if peak is not None else 0.0
    factors = sum(size_of(one.operands[0].shape) for side in found.factors for one in side if one.operands)
    result = size_of(found.reduce.shape)
    reading = prices.reading(factors + result)
    started = launch.value if launch is not None else 0.0
    return started + max(compute, reading) + (0.0 if found.reduce.is_root else prices.reading(2 * result))
