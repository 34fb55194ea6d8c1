"""Matrix products with their sizes: dots, fused ones too, convolutions whose windows only select, the libraries' calls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from hlotext.analysis import call_graph
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape

_CALLS = ("__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8")
"""Custom calls with a `gemm_backend_config`."""


@attrs.frozen
class MatrixProduct:
    """`batch` matrix products, each m by k times k by n."""

    instruction: Instruction
    batch: int
    m: int
    n: int
    k: int
    lhs_type: str
    rhs_type: str
    result_type: str
    runs: int | None
    """Executions in one run of the module, or None if unknown."""

    @property
    def flops(self) -> int:
        """FLOPs per execution, `2 * batch * m * n * k`, as XLA counts a dot."""
        return 2 * self.batch * self.m * self.n * self.k


def matrix_products(module: Module) -> tuple[MatrixProduct, ...]:
    """Finds the matrix products of a module, in text order, omitting those of unknown size."""
    graph = call_graph(module)
    return tuple(
        product
        for computation in module.computations
        for one in computation
        if (product := _product(one, graph.runs.get(computation))) is not None
    )


def product_sizes(product: Instruction) -> tuple[int, int, int, int] | None:
    """Returns batch, m, n and k of a dot, a matmul library call, or a convolution that is a matrix product.

    Returns None for any other instruction, and if a size is unknown or 0 or an attribute names no dimension.
    """
    if len(product.operands) < 2:
        return None
    lhs, rhs, result = product.operands[0].shape, product.operands[1].shape, _result(product)
    if (
        lhs is None
        or rhs is None
        or result is None
        or not (lhs.is_array and rhs.is_array and result.is_array)
        or any(shape.is_unbounded for shape in (lhs, rhs, result))
    ):
        return None
    if product.opcode == "convolution":
        return _convolution_sizes(product, lhs, rhs)
    if product.opcode in traits.DOTS:
        attributes = product.attributes
        batch, contracted = attributes.get("lhs_batch_dims", ()), attributes.get("lhs_contracting_dims", ())
    elif product.opcode == "custom-call" and product.attributes.get("custom_call_target") in _CALLS:
        found = _library_dimensions(product)
        if found is None:
            return None
        batch, contracted = found
    else:
        return None
    if any(not 0 <= d < len(lhs.dimensions) for d in (*batch, *contracted)):
        return None  # verify says so
    pairs = math.prod(lhs.dimensions[d] for d in batch)
    k = math.prod(lhs.dimensions[d] for d in contracted)
    if not pairs or not k:
        return None
    return pairs, (lhs.element_count or 0) // (pairs * k), (rhs.element_count or 0) // (pairs * k), k


def _result(product: Instruction) -> Shape | None:
    """The result proper: of a call the first element, behind which its workspace stands."""
    shape = product.shape
    return shape.tuple_shapes[0] if shape is not None and shape.is_tuple and shape.tuple_shapes else shape


@attrs.frozen
class ConvolutionDimensions:
    """Dimension numbers of a convolution that is a matrix product, for both operands and the result."""

    batch: tuple[tuple[int, int, int], ...]
    """Batch dimensions, as numbers in lhs, rhs and result."""
    lhs: tuple[tuple[int, int], ...]
    """Dimensions only in lhs, as numbers in lhs and result."""
    rhs: tuple[tuple[int, int], ...]
    """Dimensions only in rhs, as numbers in rhs and result."""
    summed: tuple[tuple[int, int], ...]
    """Contracted dimensions, as numbers in lhs and rhs."""


def convolution_dimensions(product: Instruction) -> ConvolutionDimensions | None:
    """Returns the dimension numbers of a convolution that is a matrix product, as emitted for TPU, or None for others.

    In such a convolution, a spatial dimension is a batch dimension (a full-size window over dilated elements), a
    dimension only in lhs (a window of size 1), a dimension only in rhs (a reversed window over one padded element), or
    contracted (the result has size 1).
    """
    labels, window = product.attributes.get("dim_labels"), product.attributes.get("window")
    groups = (product.attributes.get(f"{name}_group_count", 1) for name in ("feature", "batch"))
    if len(product.operands) < 2 or labels is None or any(count != 1 for count in groups):
        return None
    lhs, rhs, result = product.operands[0].shape, product.operands[1].shape, product.shape
    if (
        lhs is None
        or rhs is None
        or result is None
        or not (lhs.is_array and rhs.is_array and result.is_array)
    ):
        return None
    batch: list[tuple[int, int, int]] = []
    left = [(labels.input_batch_dimension, labels.output_batch_dimension)]
    right = [(labels.kernel_output_feature_dimension, labels.output_feature_dimension)]
    summed = [(labels.input_feature_dimension, labels.kernel_input_feature_dimension)]
    spatial = (
        labels.input_spatial_dimensions,
        labels.kernel_spatial_dimensions,
        labels.output_spatial_dimensions,
    )
    windows = window.dimensions if window is not None else ()
    if any(len(each) != len(windows) for each in spatial):
        return None
    for one, a, b, c in zip(windows, *spatial, strict=True):
        sizes = lhs.dimensions[a], rhs.dimensions[b], result.dimensions[c]
        padding, dilations = (one.padding_low, one.padding_high), (one.base_dilation, one.window_dilation)
        n, is_forward = one.size, not one.window_reversal
        if (
            sizes == (n, n, n)
            and padding == (0, 0)
            and is_forward
            and (one.stride, *dilations) == (max(1, n - 1), n, 1)
        ):
            batch.append((a, b, c))
        elif n == 1 and sizes[0] == sizes[2] and padding == (0, 0) and (one.stride, dilations[0]) == (1, 1):
            left.append((a, c))
        elif sizes == (1, n, n) and padding == (n - 1, n - 1) and not is_forward and one.stride == 1:
            right.append((b, c))
        elif sizes == (n, n, 1) and padding == (0, 0) and dilations == (1, 1) and is_forward:
            summed.append((a, b))
        else:
            return None
    return ConvolutionDimensions(tuple(batch), tuple(left), tuple(right), tuple(summed))


def _convolution_sizes(product: Instruction, lhs: Shape, rhs: Shape) -> tuple[int, int, int, int] | None:
    found = convolution_dimensions(product)
    if found is None:
        return None
    batch = math.prod(lhs.dimensions[a] for a, _, _ in found.batch)
    m = math.prod(lhs.dimensions[a] for a, _ in found.lhs)
    n = math.prod(rhs.dimensions[b] for b, _ in found.rhs)
    k = math.prod(lhs.dimensions[a] for a, _ in found.summed)
    return (batch, m, n, k) if batch and m and n and k else None


def _library_dimensions(product: Instruction) -> tuple[Sequence[int], Sequence[int]] | None:
    """Batch and contracting dimensions of the left operand as the configuration of a call says; None if it does not."""
    config = product.backend_config
    try:
        numbers: Mapping[str, Any] = config.json()["gemm_backend_config"]["dot_dimension_numbers"]  # type: ignore[union-attr]
        names = ("lhs_batch_dimensions", "lhs_contracting_dimensions")
        batch, contracted = (tuple(int(one) for one in numbers.get(name, ())) for name in names)
    except (AttributeError, LookupError, TypeError, ValueError):
        return None
    return (batch, contracted) if contracted else None


def _product(one: Instruction, runs: int | None) -> MatrixProduct | None:
    sizes = product_sizes(one)
    if sizes is None:
        return None
    lhs, rhs, result = (
        str(shape.element_type) if shape is not None else ""
        for shape in (one.operands[0].shape, one.operands[1].shape, _result(one))
    )
    return MatrixProduct(one, *sizes, lhs, rhs, result, runs)
