"""Matrix products with their sizes: dots, fused ones too, convolutions without a window, and the libraries' calls."""

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
    """A product of `batch` pairs of matrices, m by k and k by n."""

    instruction: Instruction
    batch: int
    m: int
    n: int
    k: int
    lhs_type: str
    rhs_type: str
    result_type: str
    runs: int | None
    """Executions in one run of the module; None if unknown."""

    @property
    def flops(self) -> int:
        """Operations of one execution, `2 * batch * m * n * k`, as XLA counts a dot."""
        return 2 * self.batch * self.m * self.n * self.k


def matrix_products(module: Module) -> tuple[MatrixProduct, ...]:
    """The matrix products of a module in the order of its text; those of unknown size are left out."""
    graph = call_graph(module)
    return tuple(
        product
        for computation in module.computations
        for one in computation
        if (product := _product(one, graph.runs.get(computation))) is not None
    )


def product_sizes(product: Instruction) -> tuple[int, int, int, int] | None:
    """Batch, m, n and k of a dot, a convolution without a window, or a library's call; None for others, and where sizes do
    not fit.
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
        return _convolution_sizes(product, lhs, rhs, result)
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


def _convolution_sizes(
    product: Instruction, lhs: Shape, rhs: Shape, result: Shape
) -> tuple[int, int, int, int] | None:
    """The TPU compiler writes products as convolutions, some with a window along a batch dimension."""
    window = product.attributes.get("window")
    if window is not None and any(one.size != 1 for one in window.dimensions):
        return None
    a, b, c = (shape.element_count or 0 for shape in (lhs, rhs, result))
    # m x k, k x n, m x n.
    if not a or not b or not c:
        return None
    square = a * b / c
    k = math.isqrt(round(square))
    if k * k != round(square) or a % k or b % k:
        return None
    return 1, a // k, b // k, k


def _library_dimensions(product: Instruction) -> tuple[Sequence[int], Sequence[int]] | None:
    """Batch and contracting dimensions of the left operand as the configuration of a call says; None where it does not."""
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
