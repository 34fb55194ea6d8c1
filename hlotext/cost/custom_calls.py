"""Cost of custom calls, which XLA does not know: a table of targets with counting rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hlotext.analysis.mosaic import MOSAIC, MosaicKernel
from hlotext.cost.op_cost import NOTHING, CannotCountError, OpCost
from hlotext.cost.rules.contraction import convolution_flops
from hlotext.cost.sizes import elements
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.targets import FREE_TARGETS
from hlotext.ir.values.shape import Shape


def known_work(instruction: Instruction, work: OpCost) -> OpCost | None:
    """Returns the cost of a custom call with a known target, or that states its own cost; None for others.

    `work` supplies the bytes, as if operands were read and results written once.
    """
    target = instruction.attributes.get("custom_call_target")
    count = _TARGETS.get(target) if isinstance(target, str) else None
    try:
        return count(instruction, work._replace(is_unknown=False)) if count is not None else None
    except (CannotCountError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None


def kernel_work(kernel: MosaicKernel, work: OpCost) -> OpCost | None:
    """Returns the cost of a Mosaic kernel, computed from its body; None if it cannot be read.

    `work` supplies the bytes, as if operands were read and results written once.
    """
    if kernel.error:
        return None
    products = dict(kernel.products)
    return work._replace(
        flops=kernel.flops + sum(products.values()),
        transcendentals=kernel.transcendentals,
        is_unknown=False,
        products=products,
        is_at_most=kernel.is_at_most,
        left_open=kernel.open,
    )


def _free(instruction: Instruction, work: OpCost) -> OpCost | None:
    return NOTHING


def _moved(instruction: Instruction, work: OpCost) -> OpCost | None:
    """Everything read and written once, as XLA counts its own opcode of the same meaning."""
    return work


def _matrix_product(instruction: Instruction, work: OpCost) -> OpCost | None:
    """`2 * M * N * K` by the dimension numbers in the configuration; the workspace does not count."""
    config = _config(instruction, "gemm_backend_config")
    contracted = config["dot_dimension_numbers"]["lhs_contracting_dimensions"]
    lhs = _shape(instruction.operands[0])
    summed = 1
    for dimension in contracted:
        summed *= lhs.dimensions[int(dimension)]
    return work._replace(flops=2 * elements(_result(instruction)) * summed, written=work.written[:1])


def _onednn_product(instruction: Instruction, work: OpCost) -> OpCost | None:
    """oneDNN's product sums over the last dimension of the left operand, or the last but one where it is transposed."""
    config = _config(instruction, "onednn_matmul_config")
    lhs = _shape(instruction.operands[0])
    summed = lhs.dimensions[-2 if config.get("transpose_a") else -1]
    return work._replace(flops=2 * elements(_result(instruction)) * summed, written=work.written[:1])


def _convolution(places: str) -> Callable[[Instruction, OpCost], OpCost | None]:
    """A convolution of cuDNN. `places` says which of the forward convolution's input, kernel and output the first operand,
    the second one and the result are.
    """

    def count(instruction: Instruction, work: OpCost) -> OpCost | None:
        first, second = (_shape(operand) for operand in instruction.operands[:2])
        shapes = dict(zip(places, (first, second, _result(instruction)), strict=True))
        flops = convolution_flops(instruction, shapes["i"], shapes["k"], shapes["o"])
        return work._replace(flops=flops, written=work.written[:1])

    return count


def _attention(products: int) -> Callable[[Instruction, OpCost], OpCost | None]:
    """cuDNN's attention (`CudnnfMHABackendConfig`): so many matrix products of the scores' shape by the head's size.

    Causal masks let half of square scores count; other masks and the softmax itself are left out.
    """

    def count(instruction: Instruction, work: OpCost) -> OpCost | None:
        config = _config(instruction, "cudnn_fmha_backend_config")
        sizes = [int(size) for size in config["intermediate_tensor_shape"]["dimensions"]]
        if len(sizes) != 4:
            raise CannotCountError("its scores do not have four dimensions")
        flops = 2 * products * _shape(instruction.operands[0]).dimensions[-1]
        for size in sizes:
            flops *= size
        is_half = str(config.get("mask_type")) == "CAUSAL" and sizes[2] == sizes[3]
        return work._replace(flops=flops // 2 if is_half else flops)

    return count


def _as_said(instruction: Instruction, work: OpCost) -> OpCost | None:
    """The kernel author's estimate (`pl.CostEstimate`); None if there is none."""
    config = _config(instruction, "custom_call_config").get("cost_estimate")
    if config is None:
        return None
    return OpCost(
        int(config.get("flops", 0)),
        int(config.get("transcendentals", 0)),
        written=(int(config.get("bytes_accessed", 0)),),
    )


def _factorization(count: Callable[[int, int], float]) -> Callable[[Instruction, OpCost], OpCost | None]:
    """A factorization of matrices: the operations of one with so many rows and columns, after LAPACK's working note 41."""

    def of(instruction: Instruction, work: OpCost) -> OpCost | None:
        shape = _shape(instruction.operands[0])
        rows, columns = shape.dimensions[-2:]
        matrices = elements(shape) // max(1, rows * columns)
        return work._replace(flops=round(count(rows, columns)) * matrices)

    return of


def _lu(rows: int, columns: int) -> float:
    least, most = sorted((rows, columns))
    return most * least**2 - least**3 / 3


def _qr(rows: int, columns: int) -> float:
    return 2 * _lu(rows, columns)


def _cholesky(rows: int, columns: int) -> float:
    return rows**3 / 3


def _triangular_solve(instruction: Instruction, work: OpCost) -> OpCost | None:
    """A multiplication and a sum for each element of a triangle and each column of the right sides."""
    triangle, right = _shape(instruction.operands[0]), _shape(instruction.operands[1])
    return work._replace(flops=elements(right) * triangle.dimensions[-1])


def _config(instruction: Instruction, name: str) -> Mapping[str, Any]:
    config = instruction.backend_config
    if config is None:
        raise CannotCountError("it has no backend_config")
    found = config.json()[name]
    if not isinstance(found, dict):
        raise CannotCountError(f"its {name} is not an object")
    return found


def _shape(operand: Instruction) -> Shape:
    if operand.shape is None or not operand.shape.is_array:
        raise CannotCountError("an operand is not an array")
    return operand.shape


def _result(instruction: Instruction) -> Shape:
    """The result proper: the first element of a tuple, behind which the workspace stands."""
    shape = instruction.shape
    if shape is not None and shape.is_tuple:
        shape = shape.tuple_shapes[0]
    if shape is None or not shape.is_array:
        raise CannotCountError("the result is not an array")
    return shape


_ATTENTIONS = (
    "Softmax",
    "SoftmaxDropout",
    "ScaleBiasSoftmax",
    "ScaleBiasSoftmaxDropout",
)
"""Ends of the names of cuDNN's attention (`cublas_cudnn.cc`)."""

LU_FACTORIZATIONS = frozenset(
    {"lapack_sgetrf_ffi", "lapack_dgetrf_ffi", "cublas_getrf_batched_ffi", "cusolver_getrf_ffi"}
)
CHOLESKY_FACTORIZATIONS = frozenset(
    {"lapack_spotrf_ffi", "lapack_dpotrf_ffi", "cusolver_potrf_ffi", "cusolver_potrf_batched_ffi"}
)
TRIANGULAR_SOLVES = frozenset({"lapack_strsm_ffi", "lapack_dtrsm_ffi", "__cublas$triangularSolve"})

_TARGETS: dict[str, Callable[[Instruction, OpCost], OpCost | None]] = {
    **dict.fromkeys(FREE_TARGETS, _free),
    "PartialReduce": _moved,
    "TopK": _moved,
    "X64Combine": _moved,
    "__gpu$TopK": _moved,
    # XLA's GPU compiler: `gemm_backend_config`, `cudnn_conv_backend_config`.
    "__cublas$gemm": _matrix_product,
    "__cublas$lt$matmul": _matrix_product,
    "__cublas$lt$matmul$f8": _matrix_product,
    "__cudnn$convBackwardFilter": _convolution("iok"),
    "__cudnn$convBackwardInput": _convolution("oki"),
    "__cudnn$convBiasActivationForward": _convolution("iko"),
    "__cudnn$convForward": _convolution("iko"),
    **{f"__cudnn$fmha{kind}": _attention(2) for kind in _ATTENTIONS},
    **{f"__cudnn$fmha{kind}Backward": _attention(5) for kind in _ATTENTIONS},
    # XLA's CPU compiler: `onednn_matmul_config`. From its source alone: no module with one was at hand.
    "__onednn$matmul": _onednn_product,
    # JAX's linear algebra on CPU and GPU; XLA's own for GPU.
    **dict.fromkeys(LU_FACTORIZATIONS, _factorization(_lu)),
    **dict.fromkeys(TRIANGULAR_SOLVES, _triangular_solve),
    **dict.fromkeys(CHOLESKY_FACTORIZATIONS, _factorization(_cholesky)),
    **{f"lapack_{kind}{name}_ffi": _factorization(_qr) for kind in "sd" for name in ("geqrf", "orgqr")},
    "cusolver_geqrf_ffi": _factorization(_qr),
    "cublas_geqrf_batched_ffi": _factorization(_qr),
    "cusolver_orgqr_ffi": _factorization(_qr),
    "__cusolver$cholesky": _factorization(_cholesky),
    # Pallas and Mosaic: `custom_call_config.cost_estimate`.
    MOSAIC: _as_said,
}
