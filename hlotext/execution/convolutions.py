"""cuDNN's convolutions as plain ones: forwards, and both gradients, which a forward one computes too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hlotext.execution.errors import NotExecutable
from hlotext.execution.lines import Lines, Plain
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import element_type
from hlotext.ir.values.window import Window, WindowDimension

_FUSED = "__cudnn$convBiasActivationForward"


def convolution(
    lines: Lines, i: Instruction, operands: Sequence[Plain], result: Shape, config: Mapping[str, Any]
) -> Plain:
    """Emits lines for a `__cudnn$conv*` custom call and returns its result, in the result's element type. Raises
    NotExecutable.

    Window and dimension labels of a gradient are those of the convolution that it belongs to (`ConvRewriter`).
    """
    target = str(i.attributes.get("custom_call_target", ""))
    labels, window = i.attributes.get("dim_labels"), i.attributes.get("window")
    if not isinstance(labels, ConvolutionDimensionNumbers) or not isinstance(window, Window):
        raise NotExecutable("it has no window or no dimension labels")
    groups = int(i.attributes.get("feature_group_count", 1))
    type_ = result.element_type if result.element_type.bits >= 32 else element_type("f32")
    lhs, rhs = (lines.convert(value, type_) for value in operands[:2])
    shape = Shape(type_, result.dimensions)
    if target in ("__cudnn$convForward", _FUSED):
        count = f"feature_group_count={groups}" if groups != 1 else ""
        found = _convolved(lines, shape, lhs, rhs, window, labels, count)
    elif groups != 1:
        raise NotExecutable("the gradient of a grouped convolution")
    elif target == "__cudnn$convBackwardFilter":
        found = _filter_gradient(lines, shape, lhs, rhs, window, labels)
    else:
        found = _input_gradient(lines, shape, lhs, rhs, window, labels)
    scale = float(config.get("conv_result_scale", 1) or 1)
    if scale != 1:
        factor = lines.filled(lines.scalar(type_, repr(scale)), found.sizes)
        found = lines.binary("multiply", found, factor)
    if target == _FUSED:
        found = _activated(lines, found, operands[2:], labels, config)
    return lines.convert(found, result.element_type)


def _activated(
    lines: Lines,
    value: Plain,
    rest: Sequence[Plain],
    labels: ConvolutionDimensionNumbers,
    config: Mapping[str, Any],
) -> Plain:
    """With bias and side input added, through the activation."""
    mode = str(config.get("activation_mode", "kNone"))
    if mode not in ("kNone", "kRelu", "kRelu6") or not rest:
        raise NotExecutable(f"a convolution with {mode}")
    bias = lines.convert(rest[0], value.type)
    axis = labels.output_feature_dimension
    bias = lines.reshape(bias, (value.sizes[axis],))
    value = lines.binary("add", value, lines.add("broadcast", value.shape, (bias,), f"dimensions={{{axis}}}"))
    scale = float(config.get("side_input_scale", 0) or 0)
    if scale:
        factor = lines.filled(lines.scalar(value.type, repr(scale)), value.sizes)
        value = lines.binary(
            "add", value, lines.binary("multiply", lines.convert(rest[1], value.type), factor)
        )
    for opcode, limit in (("maximum", "0"), ("minimum", "6"))[: {"kNone": 0, "kRelu": 1}.get(mode, 2)]:
        value = lines.binary(opcode, value, lines.filled(lines.scalar(value.type, limit), value.sizes))
    return value


def _convolved(
    lines: Lines,
    shape: Shape,
    lhs: Plain,
    rhs: Plain,
    window: Window,
    labels: ConvolutionDimensionNumbers,
    *attributes: str,
) -> Plain:
    text = [f"window={window}"] if window.dimensions else []
    return lines.add("convolution", shape, (lhs, rhs), *text, f"dim_labels={labels}", *attributes)


def _filter_gradient(
    lines: Lines,
    shape: Shape,
    given: Plain,
    gradient: Plain,
    window: Window,
    labels: ConvolutionDimensionNumbers,
) -> Plain:
    """The input convolved with the gradient of the result, features and batch exchanged."""
    swapped = ConvolutionDimensionNumbers(
        input_batch_dimension=labels.input_feature_dimension,
        input_feature_dimension=labels.input_batch_dimension,
        input_spatial_dimensions=labels.input_spatial_dimensions,
        kernel_input_feature_dimension=labels.output_batch_dimension,
        kernel_output_feature_dimension=labels.output_feature_dimension,
        kernel_spatial_dimensions=labels.output_spatial_dimensions,
        output_batch_dimension=labels.kernel_input_feature_dimension,
        output_feature_dimension=labels.kernel_output_feature_dimension,
        output_spatial_dimensions=labels.kernel_spatial_dimensions,
    )
    moves = []
    for number, one in enumerate(window.dimensions):
        size = gradient.sizes[labels.output_spatial_dimensions[number]]
        have = given.sizes[labels.input_spatial_dimensions[number]]
        wanted = shape.dimensions[labels.kernel_spatial_dimensions[number]]
        spread = (size - 1) * one.stride + 1
        high = (wanted - 1) * one.window_dilation + spread - have - one.padding_low
        moves.append(
            WindowDimension(
                size,
                stride=one.window_dilation,
                padding_low=one.padding_low,
                padding_high=high,
                window_dilation=one.stride,
            )
        )
    return _convolved(lines, shape, given, gradient, Window(tuple(moves)), swapped)


def _input_gradient(
    lines: Lines,
    shape: Shape,
    gradient: Plain,
    kernel: Plain,
    window: Window,
    labels: ConvolutionDimensionNumbers,
) -> Plain:
    """The gradient of the result, spread by the stride, convolved with the reversed filter."""
    swapped = ConvolutionDimensionNumbers(
        input_batch_dimension=labels.output_batch_dimension,
        input_feature_dimension=labels.output_feature_dimension,
        input_spatial_dimensions=labels.output_spatial_dimensions,
        kernel_input_feature_dimension=labels.kernel_output_feature_dimension,
        kernel_output_feature_dimension=labels.kernel_input_feature_dimension,
        kernel_spatial_dimensions=labels.kernel_spatial_dimensions,
        output_batch_dimension=labels.input_batch_dimension,
        output_feature_dimension=labels.input_feature_dimension,
        output_spatial_dimensions=labels.input_spatial_dimensions,
    )
    if not all(one.window_reversal for one in window.dimensions) and window.dimensions:
        order = ",".join(map(str, labels.kernel_spatial_dimensions))
        kernel = lines.add("reverse", kernel.shape, (kernel,), f"dimensions={{{order}}}")
    moves = []
    for number, one in enumerate(window.dimensions):
        spread = (one.size - 1) * one.window_dilation + 1
        have = (gradient.sizes[labels.output_spatial_dimensions[number]] - 1) * one.stride + 1
        low = spread - 1 - one.padding_low
        wanted = shape.dimensions[labels.input_spatial_dimensions[number]]
        moves.append(
            WindowDimension(
                one.size,
                padding_low=low,
                padding_high=wanted + spread - 1 - have - low,
                base_dilation=one.stride,
                window_dilation=one.window_dilation,
            )
        )
    return _convolved(lines, shape, gradient, kernel, Window(tuple(moves)), swapped)
