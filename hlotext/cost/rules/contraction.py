"""Cost of matrix products and convolutions: two FLOPs per multiplied pair of elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hlotext.cost.op_cost import CannotCountError, OpCost, moved, rule
from hlotext.cost.sizes import ShapeSizes, elements
from hlotext.ir.caches import weighted_cache
from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.window import Window, WindowDimension

if TYPE_CHECKING:
    import numpy as np
else:
    np = late_module("numpy")

_MOST_POSITIONS = 1 << 24
"""Window positions along one dimension beyond which the pairs are not counted one position at a time."""

_FEW_POSITIONS = 64
"""So many are counted sooner in plain Python than in numpy."""


@rule("dot")
def _dot(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return moved(instruction, sizes, flops=_product_flops(instruction, elements(instruction.shape)))


@rule("ragged_dot")
def _ragged_dot(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """As a dot whose result has lost as many dimensions as there are group dimensions.

    XLA deletes them by position while it counts up: the first, then the second of what is left.
    """
    shape = instruction.shape
    dimensions = list(shape.dimensions) if shape is not None else []
    for number in range(len(instruction.attributes.get("rhs_group_dims", ()))):
        del dimensions[number]
    return moved(instruction, sizes, flops=_product_flops(instruction, math.prod(dimensions)))


def _product_flops(instruction: Instruction, count: int) -> int:
    lhs = _array(instruction.operands[0])
    summed = math.prod(lhs.dimensions[d] for d in instruction.attributes.get("lhs_contracting_dims", ()))
    flops: int = 2 * count * summed
    return max(0, flops)


def _array(operand: Instruction) -> Shape:
    if operand.shape is None or not operand.shape.is_array:
        raise CannotCountError("an operand has no array shape")
    return operand.shape


@rule("convolution")
def _convolution(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    lhs, rhs = (_array(operand) for operand in instruction.operands[:2])
    if instruction.shape is None:
        raise CannotCountError("it has no shape")
    return moved(instruction, sizes, flops=convolution_flops(instruction, lhs, rhs, instruction.shape))


def convolution_flops(instruction: Instruction, lhs: Shape, rhs: Shape, result: Shape) -> int:
    """Returns twice the number of input-kernel element pairs multiplied (`GetConvolutionFlops`).

    Pairs in padding or in the holes of a dilated operand do not count. Raises CannotCountError without `dim_labels`.
    """
    labels, window = (instruction.attributes.get(name) for name in ("dim_labels", "window"))
    if not isinstance(labels, ConvolutionDimensionNumbers):
        raise CannotCountError("it has no dim_labels")
    dimensions = window.dimensions if isinstance(window, Window) else ()
    pairs = 1
    for number, dimension in enumerate(dimensions):
        pairs *= valid_pairs(
            lhs.dimensions[labels.input_spatial_dimensions[number]],
            rhs.dimensions[labels.kernel_spatial_dimensions[number]],
            result.dimensions[labels.output_spatial_dimensions[number]],
            dimension,
        )
    groups, batches = (
        max(1, instruction.attributes.get(name, 1)) for name in ("feature_group_count", "batch_group_count")
    )
    multiplied: int = (
        lhs.dimensions[labels.input_feature_dimension]
        // groups
        * result.dimensions[labels.output_feature_dimension]
        * (lhs.dimensions[labels.input_batch_dimension] // batches)
    )
    return 2 * multiplied * pairs


@weighted_cache(4096)
def valid_pairs(size: int, kernel: int, result: int, window: WindowDimension) -> int:
    """Pairs (k, o) of an index of the kernel and one of the result that meet an element of the input.

    These are the pairs for which o * stride + k * window_dilation - padding_low is one of 0, base_dilation, ...
    (size - 1) * base_dilation. Raises CannotCountError for more than 2^24 indices on both sides.
    """
    if min(size, kernel, result) <= 0:
        return 0
    fast, slow = (window.stride, result), (window.window_dilation, kernel)
    if kernel > result:  # the condition is the same in both, so the shorter side is gone through
        fast, slow = slow, fast
    (step, count), (outer_step, outer_count) = fast, slow
    if min(step, outer_step, window.base_dilation) < 1:
        raise CannotCountError("a stride or dilation is below 1")
    if outer_count > _MOST_POSITIONS:
        raise CannotCountError("its window has too many positions")
    numbers = (size, count, step, outer_step, outer_count, window.padding_low, window.base_dilation)
    if outer_count <= _FEW_POSITIONS or max(map(abs, numbers)) >= 1 << 30:
        return sum(
            _meeting(window.padding_low - k * outer_step, *numbers[:3], window.base_dilation)
            for k in range(outer_count)
        )
    starts = window.padding_low - np.arange(outer_count, dtype=np.int64) * outer_step
    return int(_meeting_many(starts, size, count, step, window.base_dilation).sum())


def _meeting(start: int, size: int, count: int, step: int, holes: int) -> int:
    """Indices o below `count` for which o * step - start is a multiple of `holes` in 0 ... (size - 1) * holes."""
    common = math.gcd(step, holes)
    if start % common:
        return 0
    period = holes // common
    first = start // common * pow(step // common, -1, period) % period if period > 1 else 0
    low = max(0, -(-start // step))
    high = min(count - 1, (start + (size - 1) * holes) // step)
    low += (first - low) % period
    return (high - low) // period + 1 if high >= low else 0


def _meeting_many(starts: np.ndarray, size: int, count: int, step: int, holes: int) -> np.ndarray:
    """`_meeting` for many starts."""
    common = math.gcd(step, holes)
    period = holes // common
    inverse = pow(step // common, -1, period) if period > 1 else 0
    first = (starts // common % period) * inverse % period
    low = np.maximum(0, -(-starts // step))
    high = np.minimum(count - 1, (starts + (size - 1) * holes) // step)
    low = low + (first - low) % period
    found = np.where(high >= low, (high - low) // period + 1, 0)
    return np.where(starts % common == 0, found, 0)
