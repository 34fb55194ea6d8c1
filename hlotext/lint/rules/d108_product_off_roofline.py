"""D108: a matrix product whose shape fills little of a TPU's matrix units."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis import Backend, arrays_of, memory_space, total_of
from hlotext.analysis.chips import chip
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.lint.helpers import fusions_around
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class ProductOffRoofline(Rule):
    code = "D108"
    name = "product-off-roofline"
    title = "a matrix product whose shape fills little of the matrix units"
    waste = "dense"
    backends = frozenset({Backend.TPU})
    needs_optimized = True
    is_default: ClassVar[bool] = False
    opcodes = frozenset({"dot", "convolution"})

    min_ratio: ClassVar[float] = 2
    """How many times as long as its roofline allows the product takes at least, from which on it is worth a finding."""
    min_flops: ClassVar[int] = 1_000_000_000
    """Operations with padding, in all runs, likewise."""
    chip: str = "v5e"
    """Whose rates are taken."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        flops = context.flops(instruction)
        sizes = _sizes(instruction, flops // max(1, context.runs(instruction)))
        rates = chip(self.chip).rates
        peak = rates.peak("bf16")
        if sizes is None or peak is None or rates.bandwidth is None:
            return
        rows, columns, depth = sizes
        wide = max(rows, columns)
        filled = depth / _up(depth) * wide / _up(wide)
        padded = int(flops / filled)
        if padded < self.min_flops:
            return
        memory = _moved(instruction, context) * context.runs(instruction) / rates.bandwidth.value
        ratio = padded / peak.value / max(flops / peak.value, memory)
        if ratio >= self.min_ratio:
            yield Report(
                instruction,
                f"{instruction.opcode} of {rows:,} x {depth:,} by {depth:,} x {columns:,} fills {100 * filled:.2g} % of a "
                f"matrix unit of {_LANES} x {_LANES}, and takes {ratio:.2g} times as long as its operations and bytes do",
                "let the dimension that is summed over, and one of the others, be multiples of 128: merge heads, groups or "
                "small batches into them",
                flops=padded - flops,
            )


def _moved(product: Instruction, context: Context) -> int:
    """Bytes of main memory that a product, or the fusion that it is part of, reads and writes in one run at the most."""
    step = (*fusions_around(product, context), product)[0]
    arrays = [array for one in (*step.operands, step) for _, array in arrays_of(one.shape)]
    return sum(total_of(array).allocated_bytes for array in arrays if memory_space(array) == 0)


_LANES = 128
"""Rows and columns of a matrix unit of every TPU up to v5p; those of v6e and tpu7x are larger."""


def _up(size: int) -> int:
    return -(-size // _LANES) * _LANES


def _sizes(product: Instruction, flops: int) -> tuple[int, int, int] | None:
    """Rows, columns and how many are summed over, of one product of a batch; None where the text does not tell.

    Of a convolution what is summed over is what is multiplied for an element on average, and the batch counts as rows: no
    less is filled than this says.
    """
    result = product.shape
    if (
        result is None
        or not result.is_array
        or result.element_count == 0
        or len(product.operands) < 2
        or not flops
    ):
        return None
    depth = max(1, round(flops / (2 * result.element_count)))
    labels = product.attributes.get("dim_labels")
    if isinstance(labels, ConvolutionDimensionNumbers):
        if labels.output_feature_dimension >= result.rank:
            return None
        columns = result.dimensions[labels.output_feature_dimension]
        return result.element_count // columns, columns, depth
    if product.opcode != "dot":
        return None
    free = []
    for side, operand in zip(("lhs", "rhs"), product.operands, strict=False):
        shape = operand.shape
        taken = {
            *product.attributes.get(f"{side}_contracting_dims", ()),
            *product.attributes.get(f"{side}_batch_dims", ()),
        }
        if shape is None or not shape.is_array:
            return None
        free.append(math.prod(size for d, size in enumerate(shape.dimensions) if d not in taken))
    return free[0], free[1], depth
