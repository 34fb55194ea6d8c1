"""Targets of custom calls that compilers and their libraries define."""

from __future__ import annotations

_KNOWN = frozenset(
    {
        "AllocateBuffer", "AssumeGatherIndicesInBound", "AsyncCollectiveDone", "AsyncCollectiveStart", "Cholesky",
        "CompactWyHelper", "ConcatBitcast", "CustomSPMDPartitioning", "EighTpu", "Eigh", "GatherScatterIndicesBitpacked",
        "HostExecute", "LuDecomposition", "LuDecompositionBlock", "MoveToDevice", "MoveToHost", "PadToStatic",
        "PartialReduce", "PrepareAsyncCallDone", "PrepareAsyncCallStart", "ProductOfElementaryHouseholderReflectors", "Qr",
        "QrDecompositionBlock", "ResizeBilinear", "ResizeNearest", "SPMDFullToShardShape", "SPMDShardToFullShape",
        "Sharding", "SliceId", "SliceToDynamic", "TopK", "X64Combine", "X64SplitHigh", "X64SplitLow", "ZeroCrop",
        "annotate_device_placement", "control_dep",
    }
)  # fmt: skip
"""Targets that XLA's compilers emit or know; seen in modules of libtpu, or named in XLA's sources."""
MARKS = frozenset(
    {
        "AssumeGatherIndicesInBound", "AsyncCollectiveDone", "AsyncCollectiveStart",
        "ConcatBitcast", "GatherScatterIndicesBitpacked", "LayoutConstraint", "MoveToDevice",
        "MoveToHost", "Pin", "PrepareAsyncCallDone", "SPMDFullToShardShape",
        "SPMDShardToFullShape", "Sharding", "Unpin", "X64SplitHigh", "X64SplitLow", "annotate_device_placement",
        "control_dep", "xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape",
    }
)  # fmt: skip
"""Targets that compute and write nothing and have no memory of their own: they mark or join what others write. Names from
XLA's source and the modules that it wrote."""
FREE_TARGETS = MARKS | {"AllocateBuffer", "CreateBuffer", "PrepareAsyncCallStart"}
"""Those, and memory that others fill or wait on: they cost nothing."""
_KNOWN_STARTS = (
    "InvertDiagBlocks", "__cublas$", "__cudnn$", "__cub$", "__cusolver$", "__gpu$", "__onednn$", "__ynn$", "blas_",
    "cusolver_", "cusparse_", "lapack_", "xla.sdy.", "xla_builder.", "hipsolver_", "cu_", "cudnn",
)  # fmt: skip
"""Beginnings of the names of libraries' calls."""
_OF_FRONT_ENDS = (
    "CallbackTo", "mosaic_gpu", "tpu_custom_call", "triton_kernel_call", "xla_ffi_", "xla_python_",
)  # fmt: skip
"""Beginnings of the names of calls that JAX and Pallas make."""


def is_compiler_target(target: str) -> bool:
    """Returns True if a custom-call target belongs to XLA or to a library that it calls, rather than to a user's
    kernel.
    """
    return target in _KNOWN or target.startswith(_KNOWN_STARTS)


def is_public_target(target: str) -> bool:
    """Returns True if a custom-call target belongs to a compiler or frontend, so that it reveals nothing about the
    user.
    """
    return is_compiler_target(target) or target.startswith(_OF_FRONT_ENDS)
