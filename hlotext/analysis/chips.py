"""The chips, one row each: what a device has. Other rooms add columns; every number names its source."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from hlotext.analysis.backend import Backend

HOST = 5
"""The memory space of the host's memory, on every platform."""


@attrs.frozen
class Chip:
    """One kind of device, as the compiler sees it: v4 and v5p are a chip with both cores, tpu7x one core of two."""

    name: str
    """The word that users and topologies say: `v5e`, `h100`."""
    backend: Backend
    aliases: tuple[str, ...] = ()
    """Other words for it, as JAX's `device_kind` and dumps say them."""
    memory_bytes: int | None = None
    """Capacity of the device's main memory (memory space 0): HBM. None where it is not known."""
    fast_memory_bytes: int | None = None
    """Capacity of the memory that the compiler itself fills before it assigns buffers: VMEM of one core; CMEM on v4."""
    fast_memory_space: int | None = None
    """The number of that memory space; None where there is none."""
    source: str = ""
    """Where the capacities come from."""

    def capacity(self, memory_space: int) -> int | None:
        """Bytes that a memory space has; None where that is not known."""
        if memory_space == 0:
            return self.memory_bytes
        return self.fast_memory_bytes if memory_space == self.fast_memory_space else None


_JAX = "JAX pallas/mosaic/tpu_info.py"
_XLA = "XLA backends/gpu/target_config/specs"
_MIB = 1 << 20


def _tpu(name: str, hbm: int, fast: int | None, space: int | None, *aliases: str) -> Chip:
    return Chip(name, Backend.TPU, aliases, hbm, fast, space, _JAX)


_ROWS = (
    _tpu("v2", 8_000_000_000, None, None, "TPU v2"),
    _tpu("v3", 17_200_000_000, None, None, "TPU v3"),
    _tpu("v4", 34_400_000_000, 134_000_000, 3, "TPU v4"),
    _tpu("v5e", 17_200_000_000, 128 * _MIB, 1, "TPU v5e", "TPU v5 lite", "v5litepod"),
    _tpu("v5p", 103_000_000_000, 64 * _MIB, 1, "TPU v5p", "TPU v5"),
    _tpu("v6e", 34_400_000_000, 128 * _MIB, 1, "TPU v6e", "TPU v6 lite", "trillium"),
    _tpu("tpu7x", 103_000_000_000, 64 * _MIB, 1, "TPU7x", "7x", "v7x", "ironwood"),
    Chip("h100", Backend.GPU, ("H100", "NVIDIA H100 80GB HBM3"), 84_900_000_000, source=_XLA),
    Chip("h200", Backend.GPU, ("H200", "NVIDIA H200"), 151_000_000_000, source=_XLA),
    Chip("b200", Backend.GPU, ("B200", "NVIDIA B200"), 191_500_000_000, source=_XLA),
    Chip("a100", Backend.GPU, ("A100", "NVIDIA A100-SXM4-80GB"), 85_100_000_000, source=_XLA),
)

CHIPS: Mapping[str, Chip] = MappingProxyType({row.name: row for row in _ROWS})
"""Every chip by name."""


def chip(name: str) -> Chip:
    """The chip of that name or alias, in any case; topologies such as `v5e:2x2x1` too.

    Raises ValueError, which lists the names, for one that is not known.
    """
    word = name.split(":")[0].strip().lower()
    for row in _ROWS:
        if word in (row.name, *(alias.lower() for alias in row.aliases)):
            return row
    raise ValueError(f"no chip is named {name!r}; known: {', '.join(CHIPS)}")
