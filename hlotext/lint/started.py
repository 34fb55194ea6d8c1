"""Thunks of a GPU module, launched singly or captured into command buffers; computed once per module."""

from __future__ import annotations

from hlotext import thunks
from hlotext.analysis import Backend, fact
from hlotext.ir.nodes.module import Module
from hlotext.lint.rule import Context, told
from hlotext.thunks.command_buffers import CATEGORIES
from hlotext.thunks.settings import ThunkSettings

KERNELS = frozenset(
    {
        "kConvolution",
        "kCublasLtMatmul",
        "kCuDnn",
        "kCustomKernel",
        "kGemm",
        "kKernel",
        "kPartitionId",
        "kReplicaId",
    }
)
"""Kinds of thunks that launch a kernel, or a library's."""
_DEVICE = {
    "gpu_device_info": ({"driver_version": ("12.9.0",), "runtime_version": ("12.9.0",)},),
    "compile_time_toolkit_version": ("12.9.0",),
}
"""Versions of CUDA that do all that command buffers ask for: the text does not name the device."""
_DEFAULTS = ThunkSettings({}, _DEVICE)
_EVERYTHING = ThunkSettings(
    {
        "xla_gpu_enable_command_buffer": tuple(sorted(set(CATEGORIES.values()))),
        "xla_gpu_graph_min_graph_size": ("1",),
        "xla_gpu_command_buffer_unroll_loops": ("true",),
    },
    _DEVICE,
)


def thunks_of(context: Context) -> thunks.Thunks | None:
    """Returns the thunks of a scheduled GPU module before command buffers; None for other modules, or if they are
    unknown.
    """
    if context.backend is not Backend.GPU or not context.module.is_scheduled:
        return None
    return _predicted(context.module)


@fact
def _predicted(module: Module) -> thunks.Thunks | None:
    try:
        return thunks.predict(module, platform="gpu", memory=told(module))
    except thunks.ThunkError:
        return None


def as_by_default(context: Context) -> thunks.Thunks | None:
    """Returns the thunks with command buffers of XLA's default options; None as `thunks_of`."""
    found = thunks_of(context)
    return found.with_command_buffers(_DEFAULTS) if found is not None else None


def if_all_were_captured(context: Context) -> thunks.Thunks | None:
    """Returns the thunks with command buffers around everything that can be captured; None as `thunks_of`."""
    found = thunks_of(context)
    return found.with_command_buffers(_EVERYTHING) if found is not None else None


def bodies(loop: thunks.Thunk) -> tuple[thunks.Thunk, ...]:
    """Returns the thunks of a loop body."""
    return next((inner for label, inner in loop.children if label == "body"), ())
