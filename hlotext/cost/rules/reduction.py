"""Cost of operations that apply a computation to elements: its FLOPs are scaled, its bytes are not counted."""

from __future__ import annotations

import math

from hlotext.cost.op_cost import CannotCountError, OpCost, moved, rule
from hlotext.cost.sizes import ShapeSizes, elements
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.window import Window


def _applied(instruction: Instruction, sizes: ShapeSizes, count: int) -> OpCost:
    """Everything moved, and the one body applied so often."""
    return moved(instruction, sizes)._replace(applied=((instruction.called_computations[0], count),))


def _first(shape: Shape | None) -> Shape | None:
    """The shape itself, or the first element of a tuple."""
    return shape.tuple_shapes[0] if shape is not None and shape.is_tuple else shape


def _window(instruction: Instruction) -> Window:
    window = instruction.attributes.get("window")
    if not isinstance(window, Window):
        raise CannotCountError("it has no window")
    return window


@rule("map")
def _map(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return _applied(instruction, sizes, elements(instruction.shape))


@rule("reduce")
def _reduce(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """Each step makes two elements one. The body of a variadic reduction does the work of all arrays."""
    count = elements(instruction.operands[0].shape) - elements(_first(instruction.shape))
    return _applied(instruction, sizes, count)


@rule("scan")
def _scan(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """XLA takes the elements of operand 1, whatever that is."""
    return _applied(instruction, sizes, elements(instruction.operands[1].shape))


@rule("reduce_window")
def _reduce_window(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    window = _window(instruction)
    count = elements(_first(instruction.shape))
    return _applied(instruction, sizes, _window_steps(instruction.shape, window, count))


def _window_steps(shape: Shape | None, window: Window, count: int) -> int:
    """Steps of a window reduction. One that means "reduce, then broadcast" is counted as what it means."""
    dimensions = window.dimensions
    sliding = sum(d.size != 1 for d in dimensions)
    padded = sum(d.padding_low != 0 or d.padding_high != 0 for d in dimensions)
    if sliding == padded == 1 and shape is not None and shape.is_array:
        for number, d in enumerate(dimensions):
            if d.size != 1 and d.padding_low == d.padding_high != 0 and d.size == 2 * d.padding_low + 1:
                size = shape.dimensions[number]
                if d.padding_low == size - 1:
                    return count // size + size - 1
                break
    return (math.prod(d.size for d in dimensions) - 1) * count


@rule("select_and_scatter")
def _select_and_scatter(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """The selection runs for all but one element of each window, the scatter once for each source element."""
    count = elements(instruction.operands[1].shape)
    size = math.prod(d.size for d in _window(instruction).dimensions)
    select, scatter = instruction.called_computations[:2]
    return moved(instruction, sizes)._replace(applied=((select, count * (size - 1)), (scatter, count)))
