"""For which platform a module is compiled, also in the middle of a compilation, when less tells than in the final HLO."""

from __future__ import annotations

import re

from hlotext.analysis import Backend, backend_of
from hlotext.ir.nodes.module import Module

_CONFIGS = {
    "operation_queue_id": Backend.GPU,
    "fusion_backend_config": Backend.GPU,
    "gemm_backend_config": Backend.GPU,
    "outer_dimension_partitions": Backend.CPU,
    "__ynn_fusion": Backend.CPU,
}
"""Words in `backend_config` that only one platform writes: fields of `GpuBackendConfig`, of CPU's `BackendConfig`."""
_GPU_FUSION = re.compile(r"(loop|input)_[a-z_\-]*fusion\b|gemm_fusion")
"""Names that GPU's passes give fusions (`FusionNamePass`, `GemmFusion`)."""


def platform_of(module: Module, platform: str | Backend | None = None) -> Backend:
    """Returns the given platform, or else the one that the text shows, or CPU if it shows none.

    Raises ValueError for an unknown platform.
    """
    if isinstance(platform, Backend):
        return platform
    if platform:
        try:
            return Backend({"cuda": "gpu"}.get(platform, platform))
        except ValueError:
            raise ValueError(f"no platform is named {platform!r}; known: cpu, gpu, tpu") from None
    found = backend_of(module)
    if found in (Backend.GPU, Backend.TPU):
        return found
    for instruction in module.instructions():
        config = instruction.backend_config
        if config is not None:
            for word, backend in _CONFIGS.items():
                if word in config.text:
                    return backend
        if instruction.opcode == "fusion" and _GPU_FUSION.match(instruction.name):
            return Backend.GPU
    return found or Backend.CPU
