"""Cost of elementwise operations, random numbers, transforms, sorting, linear algebra and data movement."""

from __future__ import annotations

import math

from hlotext.cost.op_cost import NOTHING, OpCost, moved, rule
from hlotext.cost.sizes import ShapeSizes, elements
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.enums import FftType
from hlotext.layout import LayoutError, transpose_is_bitcast


@rule("elementwise")
def _elementwise(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return moved(instruction, sizes, flops=elements(instruction.shape))


@rule("transcendental")
def _transcendental(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return moved(instruction, sizes, transcendentals=elements(instruction.shape))


@rule("moved")
def _moved(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return moved(instruction, sizes)


@rule("free")
def _free(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return NOTHING


@rule("tuple")
def _tuple(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """Only the table of pointers is written."""
    return OpCost(written=(sizes.of(instruction.shape),), at_once=True)


@rule("transpose")
def _transpose(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """Nothing where the layouts make it a bitcast (`HloInstruction::IsEffectiveBitcast`)."""
    source, target = instruction.operands[0].shape, instruction.shape
    permutation = instruction.attributes.get("dimensions", ())
    if source is not None and target is not None and source.is_array and target.is_array:
        try:
            if transpose_is_bitcast(source, target, permutation):
                return NOTHING
        except LayoutError:
            pass
    return moved(instruction, sizes)


@rule("rng")
def _rng(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return moved(instruction, sizes, transcendentals=elements(instruction.shape))


@rule("rng_bit_generator")
def _rng_bit_generator(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """The new state counts too."""
    shape = instruction.shape
    parts = shape.leaves() if shape is not None else ()
    return moved(instruction, sizes, transcendentals=sum(elements(leaf) for _, leaf in parts))


@rule("fft")
def _fft(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """For XLA eight operations, a complex product and sum, for each element and each step of halving a length.

    It multiplies the steps of several lengths, which one FFT after the other adds up: 5 n log2 n operations for the n points
    of a transform, the usual count of a fast one, and half of them where one side is real.
    """
    lengths = instruction.attributes.get("fft_length", ())
    steps = math.prod(length.bit_length() - 1 for length in lengths)
    operand = instruction.operands[0].shape
    if operand is not None and operand.is_tuple:
        operand = operand.tuple_shapes[0]
    kind = instruction.attributes.get("fft_type")
    points = elements(instruction.shape if kind is FftType.IRFFT else operand)
    each = 2.5 if kind in (FftType.RFFT, FftType.IRFFT) else 5
    performed = each * points * sum(math.log2(length) for length in lengths if length > 1)
    return moved(instruction, sizes, flops=8 * steps * elements(operand))._replace(performed=round(performed))


@rule("cholesky")
def _cholesky(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """n^3 / 3 for each matrix; half of the operand read, and as much written."""
    operand = instruction.operands[0]
    half = sizes.operand(operand) / 2
    shape = operand.shape
    size = shape.dimensions[-1] if shape is not None else 0
    return OpCost(size * elements(shape) // 3, written=(half,), read=(half,))


@rule("triangular_solve")
def _triangular_solve(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """m n^2 for each system; half of the matrix read."""
    matrix, right = instruction.operands[:2]
    shape = matrix.shape
    size = shape.dimensions[-1] if shape is not None else 0
    read = (sizes.operand(matrix) / 2, sizes.operand(right))
    return OpCost(2 * size * elements(right.shape), written=(sizes.of(instruction.shape),), read=read)


@rule("sort")
def _sort(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """n log n, n being all elements of the first operand, whatever dimension is sorted; the comparator is free."""
    count = elements(instruction.operands[0].shape)
    return moved(instruction, sizes, flops=count * (count - 1).bit_length() if count else 0)
