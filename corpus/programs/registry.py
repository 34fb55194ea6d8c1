"""How a program of the corpus is written down: a function that builds it, and where it is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding

PLATFORMS = ("cpu", "tpu", "gpu")

# The topology that stands for a number of devices where a program asks for no other. JAX knows the TPU ones
# by these names; a GPU one is slices x hosts x devices.
TOPOLOGY_OF_COUNT = {
    "tpu": {
        1: "v5e:2x2x1",
        4: "v5e:2x2x1",
        8: "v6e:2x4",
        32: "v4:2x2x4",
        128: "tpu7x:4x4x4",
        256: "v5e:16x16",
    },
    "gpu": {n: f"h100:1x{max(1, n // 8)}x{min(n, 8)}" for n in (1, 4, 8, 32, 128, 256)},
}

# What the GPU compiler must know of a device that is not there: a stream_executor.GpuTargetConfigProto.
H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132
  fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
  block_dim_limit_z: 65535 memory_bandwidth: 3352320000000 l2_cache_size: 52428800
  clock_rate_ghz: 1.98 device_memory_size: 84942979072
  shared_memory_per_block_optin: 232448 cuda_compute_capability { major: 9 minor: 0 }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 }
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
B200 = (
    H100.replace("major: 9 minor: 0", "major: 10 minor: 0")
    .replace("core_count: 132", "core_count: 148")
    .replace("NVIDIA H100 80GB HBM3", "NVIDIA B200")
)
GPU_TARGETS = {"h100": H100, "b200": B200}


class Work(NamedTuple):
    """What a program hands to jax.jit: the function, the arguments to lower it for, and options of jit."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    options: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Program:
    """One program and the places it is compiled for."""

    name: str
    build: Callable[[Place], Work]
    platforms: Sequence[str] = PLATFORMS
    devices: int = 1
    topologies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By platform, where the usual topology of so many devices is not what is wanted."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Settings of jax.config."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Compiler options, those that decide how the dump is written among them."""

    def topologies_on(self, platform: str) -> Sequence[str]:
        """The topologies this program is compiled for on a platform, `KIND:SHAPE` each."""
        if platform not in self.platforms:
            return ()
        if platform == "cpu":
            return (f"cpu:{self.devices}",)
        return self.topologies.get(platform) or (TOPOLOGY_OF_COUNT[platform][self.devices],)


REGISTRY: dict[str, Program] = {}


def add(entry: Program) -> None:
    """Registers a program under its name."""
    assert entry.name not in REGISTRY, entry.name
    REGISTRY[entry.name] = entry


def program(**details: Any) -> Callable[[Callable[[Place], Work]], Callable[[Place], Work]]:
    """Registers the decorated function as a program of the same name."""

    def register(build: Callable[[Place], Work]) -> Callable[[Place], Work]:
        add(Program(name=build.__name__, build=build, **details))
        return build

    return register


class Place:
    """What a program may ask about the place it is compiled for."""

    def __init__(self, platform: str, topology: str) -> None:
        self.platform = platform
        self.devices = devices_of(topology)
        self.one = SingleDeviceSharding(self.devices[0])

    def array(
        self, shape: Sequence[int], dtype: Any = "float32", sharding: Any = None
    ) -> jax.ShapeDtypeStruct:
        """An argument; on the first device unless a sharding says otherwise."""
        return jax.ShapeDtypeStruct(tuple(shape), jax.numpy.dtype(dtype), sharding=sharding or self.one)

    def mesh(self, **axes: int) -> Mesh:
        """A mesh of the first devices: `place.mesh(data=2, model=4)`."""
        count = int(np.prod(list(axes.values())))
        grid = np.array(self.devices[:count]).reshape(*axes.values())
        return Mesh(grid, tuple(axes), axis_types=(AxisType.Auto,) * len(axes))

    def sharded(
        self, mesh: Mesh, shape: Sequence[int], spec: Any, dtype: Any = "float32"
    ) -> jax.ShapeDtypeStruct:
        """An argument that is spread over a mesh."""
        return self.array(shape, dtype, NamedSharding(mesh, spec))


def devices_of(topology: str) -> list[Any]:
    """The devices of a topology. Only CPU ones exist; the others are descriptions to compile for."""
    kind, _, shape = topology.partition(":")
    if kind == "cpu":
        return jax.devices("cpu")[: int(shape)]
    if kind in GPU_TARGETS:
        description = topologies.get_topology_desc(
            platform="cuda", topology_name=shape, topology=shape, target_config=GPU_TARGETS[kind]
        )
    else:
        description = topologies.get_topology_desc(platform="tpu", topology_name=topology)
    return list(description.devices)
