"""Shape rules of reductions, windows and scans."""

from __future__ import annotations

from hlotext.ir.values.shape import UNBOUNDED_SIZE, Shape
from hlotext.ir.values.window import Window, WindowDimension
from hlotext.semantics.infer.errors import ShapeInferenceError
from hlotext.semantics.infer.op import Op
from hlotext.semantics.infer.rules import rule
from hlotext.semantics.infer.shapes import (
    PRED,
    Dimension,
    array,
    compatible,
    dimensions,
    is_unbounded,
    one_or_tuple,
    same_sizes,
    scalar,
)
from hlotext.semantics.infer.signatures import check_parameters, check_scalar_parameters, reduced_types
from hlotext.semantics.message_text import plural


def dilated_bound(size: int, dilation: int) -> int:
    """Returns the extent of `size` elements spaced `dilation` apart (`window_util::DilatedBound`)."""
    return (size - 1) * dilation + 1 if size else 0


def strided_bound(size: int, window: int, stride: int) -> int:
    """Returns the number of positions of a window over `size` elements (`window_util::StridedBound`)."""
    return 0 if size == 0 or window > size else (size - window) // stride + 1


def window_output(op: Op, base: list[Dimension], window: Window) -> list[Dimension]:
    """Returns the dimensions after sliding a window over an array of dimensions `base` (`InferWindowOutputShape`).

    Dynamic dimensions stay dynamic. Raises ShapeInferenceError for a window of another rank, or with a stride or
    dilation below 1.
    """
    if len(window.dimensions) != len(base):
        raise ShapeInferenceError(
            f"window={window} does not match {plural(len(base), 'dimension')}", attribute="window"
        )
    for part in window.dimensions:
        if min(part.size, part.stride, part.base_dilation, part.window_dilation) < 1:
            raise ShapeInferenceError(
                "sizes, strides and dilations of a window must be positive", attribute="window"
            )
    return [
        (UNBOUNDED_SIZE if is_unbounded(size) else _window_positions(size, part), dynamic)
        for (size, dynamic), part in zip(base, window.dimensions, strict=True)
    ]


def _window_positions(size: int, dimension: WindowDimension) -> int:
    padded = dimension.padding_low + dilated_bound(size, dimension.base_dilation) + dimension.padding_high
    if padded < 0:
        raise ShapeInferenceError("the window's padding leaves a negative size", attribute="window")
    return strided_bound(padded, dilated_bound(dimension.size, dimension.window_dilation), dimension.stride)


def _halves(op: Op) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    """Arrays of equal sizes, and as many initial values."""
    shapes = op.arrays()
    if len(shapes) % 2:
        raise ShapeInferenceError(
            f"{op.opcode} takes arrays and one initial value each, not {plural(len(shapes), 'operand')}"
        )
    middle = len(shapes) // 2
    for number in range(middle):
        if not same_sizes(shapes[0], shapes[number]):
            raise ShapeInferenceError(
                f"{op.opcode} of different sizes: {shapes[0]} and {shapes[number]}", operand=number
            )
    return shapes[:middle], shapes[middle:]


@rule("reduce")
def infer_reduce(op: Op) -> Shape:
    """Infers the shape of a reduce: the remaining dimensions, with the types that `to_apply` returns.

    Corresponds to `ShapeInference::InferReduceShape`.
    """
    arrays, inits = _halves(op)
    reduced = op.dimension_numbers("dimensions", arrays[0].rank)
    types = reduced_types(op, "to_apply", inits, tuple(a.element_type for a in arrays))
    kept = [d for i, d in enumerate(dimensions(arrays[0])) if i not in reduced]
    results = tuple(array(t, kept) for t in types)
    return Shape.tuple(results) if op.program("to_apply").result.is_tuple else results[0]


@rule("reduce_window")
def infer_reduce_window(op: Op) -> Shape:
    """Infers the shape of a reduce-window: the window positions, with the types of the initial values.

    Corresponds to `ShapeInference::InferReduceWindowShape`.
    """
    arrays, inits = _halves(op)
    reduced_types(op, "to_apply", inits, tuple(a.element_type for a in arrays))
    window = op.get("window", Window, Window())
    results = tuple(
        array(init.element_type, window_output(op, dimensions(a), window))
        for a, init in zip(arrays, inits, strict=True)
    )
    return Shape.tuple(results) if op.program("to_apply").result.is_tuple else results[0]


@rule("select_and_scatter")
def infer_select_and_scatter(op: Op) -> Shape:
    """Infers the shape of a select-and-scatter: operand 0's. Operand 1 has one value per window.

    Corresponds to `ShapeInference::InferSelectAndScatterShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand, source, init = op.array(0), op.array(1), op.array(2)
    select = op.program("select")
    check_scalar_parameters(op, "select", select, (operand.element_type, operand.element_type))
    if select.result != scalar(PRED):
        raise ShapeInferenceError(
            f"select of {op.opcode} must return pred[], not {select.result}", attribute="select"
        )
    reduced_types(op, "scatter", (init,), (source.element_type,))
    windows = window_output(op, dimensions(operand), op.get("window", Window, Window()))
    if not compatible(source, array(operand.element_type, windows), any_float=True):
        raise ShapeInferenceError(f"{source} does not have one value per window of {operand}", operand=1)
    return operand


@rule("scan")
def infer_scan(op: Op) -> Shape:
    """Infers the shape of a scan: the results of `to_apply`, its outputs with the scanned dimension added.

    Operands are the inputs, then `num_carries` carries; `to_apply` returns the outputs, then the carries. Corresponds
    to `ShapeVerifier::HandleScan`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    program, carries = op.program("to_apply"), op.get("num_carries", int)
    inputs = op.arrays()[: len(op.operands) - carries]
    results = program.result.tuple_shapes if program.result.is_tuple else (program.result,)
    if not 0 <= carries <= min(len(op.operands), len(results)) or not inputs:
        raise ShapeInferenceError(
            f"num_carries={carries} does not fit {plural(len(op.operands), 'operand')} and {plural(len(results), 'result')}",
            attribute="num_carries",
        )
    along = op.dimension(inputs[0].rank)
    size = dimensions(inputs[0])[along]
    steps = []
    for number, shape in enumerate(inputs):
        if along >= shape.rank or shape.dimensions[along] != size[0]:
            raise ShapeInferenceError(
                f"{shape} does not have size {size[0]} in dimension {along}", operand=number
            )
        steps.append(array(shape.element_type, [d for i, d in enumerate(dimensions(shape)) if i != along]))
    check_parameters(op, "to_apply", program, (*steps, *op.operands[len(inputs) :]))
    outputs = len(results) - carries
    for parameter, carry in zip(program.parameters[len(inputs) :], results[outputs:], strict=True):
        if not compatible(parameter, carry):
            raise ShapeInferenceError(
                f"to_apply takes a carry as {parameter}, but returns {carry}", attribute="to_apply"
            )
    stacked = []
    for shape in results[:outputs]:
        if not shape.is_array or along > shape.rank:
            raise ShapeInferenceError(
                f"outputs {shape} cannot be stacked along dimension {along}", attribute="to_apply"
            )
        sizes = dimensions(shape)
        stacked.append(array(shape.element_type, [*sizes[:along], size, *sizes[along:]]))
    found = (*stacked, *results[outputs:])
    return Shape.tuple(found) if program.result.is_tuple else one_or_tuple(found)
