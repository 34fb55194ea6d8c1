"""Floating-point operations of matrix products and convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.ir.values.shape import Shape


def product_flops(instruction: Instruction) -> int | None:
    """Multiplications and additions of a `dot` or `convolution` that runs once, as `HloCostAnalysis` counts them.

    Of a convolution also those that meet padding or the holes of a dilated operand, so it is at most so many. None for
    other opcodes and where sizes are not known.
    """
    shapes = [instruction.shape, *(operand.shape for operand in instruction.operands[:2])]
    known = [shape for shape in shapes if shape is not None and shape.is_array and shape.is_static]
    if len(known) != 3:
        return None
    result, lhs, rhs = known
    count = _SUMMED.get(instruction.opcode)
    summed = count(instruction, lhs, rhs) if count is not None else None
    return None if summed is None else 2 * result.element_count * summed


def _contracted(instruction: Instruction, lhs: Shape, rhs: Shape) -> int:
    """Products that are added up for each element of a dot's result."""
    dimensions: tuple[int, ...] = instruction.attributes.get("lhs_contracting_dims", ())
    return math.prod(lhs.dimensions[d] for d in dimensions if d < lhs.rank)


def _kernel(instruction: Instruction, lhs: Shape, rhs: Shape) -> int | None:
    """The elements of the kernel that each element of a convolution's result meets."""
    labels = instruction.attributes.get("dim_labels")
    if (
        not isinstance(labels, ConvolutionDimensionNumbers)
        or labels.kernel_output_feature_dimension >= rhs.rank
    ):
        return None
    features = rhs.dimensions[labels.kernel_output_feature_dimension]
    return rhs.element_count // features if features else 0


_SUMMED: dict[str, Callable[[Instruction, Shape, Shape], int | None]] = {
    "dot": _contracted,
    "convolution": _kernel,
}
