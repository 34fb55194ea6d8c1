"""For which kind of device a module is, and how far the compiler has come with it."""

from __future__ import annotations

import enum

from hlotext.analysis.census import distinct_shapes
from hlotext.analysis.facts import fact
from hlotext.analysis.sizes import arrays_of
from hlotext.ir.nodes.module import Module


class Backend(enum.Enum):
    """The platform of a module. HLO text does not state it; `backend_of` infers it."""

    TPU = "tpu"
    GPU = "gpu"
    CPU = "cpu"


_GPU_TARGETS = ("__cublas", "__cudnn", "__gpu$", "__cub$", "__triton", "__nv", "triton_kernel_call")
GPU_FINGERPRINT = "fingerprint_before_lhs"
"""A frontend attribute that the GPU compiler writes on every module: a hash of the module, its name included."""


@fact
def backend_of(module: Module) -> Backend | None:
    """Infers the platform that a module was compiled for, or returns None if the text does not show it.

    TPU modules have tiled layouts. The GPU compiler leaves a fingerprint in the header and has its own custom-call
    targets. An optimized module with neither is for CPU. An unoptimized one usually has none of these signs.
    """
    has_gpu_sign = GPU_FINGERPRINT in module.attributes.get("frontend_attributes", {})
    if any(shape.layout is not None and shape.layout.tiles for shape in distinct_shapes(module)):
        return Backend.TPU
    for call in module.instructions():
        if call._head.opcode == "custom-call":
            has_gpu_sign |= str(call.attributes.get("custom_call_target")).startswith(_GPU_TARGETS)
    for parameter in module.entry.parameters if module.computations else ():
        if any(array.layout is not None and array.layout.tiles for _, array in arrays_of(parameter.shape)):
            return Backend.TPU
    if has_gpu_sign:
        return Backend.GPU
    return Backend.CPU if is_optimized(module) else None


@fact
def is_optimized(module: Module) -> bool:
    """Returns True if the module is scheduled or has fusions, so the compiler has optimized it."""
    return module.is_scheduled or any(one._head.opcode == "fusion" for one in module.instructions())
