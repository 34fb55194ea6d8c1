"""The table of chips: capacities and rates of each device. Every number names its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from hlotext.analysis.backend import Backend
from hlotext.ir import toml
from hlotext.ir.spelling import did_you_mean, suggestion

HOST = 5
"""The memory space of the host's memory, on every platform."""


@attrs.frozen
class Figure:
    """A number and where it comes from."""

    value: float
    source: str

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.source})"


JAX = "JAX, tpu_info.py"
LIBTPU = "measured from libtpu 0.0.42.1's optimal_seconds"
XLA = "XLA, gpu target_config specs"
COMMON = "common knowledge, unchecked"
USER = "as given"


@attrs.frozen
class CompilerLimits:
    """Additional parameters of the TPU compiler's own cost analysis."""

    transcendentals: float
    """Transcendental operations (exponentials, logarithms, etc.) per second."""
    clock: float
    """Cycles per second; every operation that computes takes at least one cycle."""
    accesses: float | None
    """Memory accesses per second; every operation that moves data takes at least one. None if this was never the limit."""


@attrs.frozen
class Rates:
    """Peak rates of one device, each None if unknown."""

    peaks: Mapping[str, Figure] = attrs.field(factory=dict, hash=False)
    """Dense products, operations per second, by type: `bf16`, `int8`, `fp8`, `f64`; for f32 by JAX's precision:
    `tf32` (the default), `f32x3` (high), `f32` (highest). A type without a peak uses another: see `rate`."""
    bandwidth: Figure | None = None
    """Bandwidth of main memory in bytes per second."""
    cache_bytes: Figure | None = None
    """Capacity in bytes of a last-level cache that keeps arrays between operations and runs; None if not modeled."""
    cache_bandwidth: Figure | None = None
    """Bandwidth of that cache in bytes per second."""
    compiler_peak: Figure | None = None
    """Peak operations per second in the TPU compiler's own model, for every type."""
    compiler_bandwidth: Figure | None = None
    """Bytes per second in the TPU compiler's own model."""
    compiler_limits: CompilerLimits | None = None
    link: Figure | None = None
    """Bytes per second of one link to another device, in one direction."""
    links: Figure | None = None
    """Number of links of a device."""
    links_per_axis: Figure | None = None
    """Number of links that one collective uses at a time: on TPU both directions of one axis of the torus, on GPU all."""
    host_link: Figure | None = None
    """Bytes per second between device and host, in one direction."""
    dcn: Figure | None = None
    """Bytes per second between slices over the data-center network, in one direction."""
    clock: Figure | None = None
    """Clock rate in cycles per second, for `estimated_cycles`."""
    vector: Figure | None = None
    """Operations per second of everything except matrix products; None to use the peak of matrix products."""
    launch: Figure | None = None
    """Seconds to launch a kernel; None if launches cost nothing."""
    collective_launch: Figure | None = None
    """Seconds to launch a collective; None if launches cost nothing."""

    def peak(self, kind: str) -> Figure | None:
        """Returns the peak operations per second for a kind of product, as `rate` does without the name, or None if
        unknown.
        """
        found = self.rate(kind)
        return found[1] if found is not None else None

    def rate(self, kind: str) -> tuple[str, Figure] | None:
        """Returns the peak for a kind of product with the name of the peak used, or None if unknown.

        A kind without a peak uses that of the type that its passes multiply: `bf16x6` takes six passes of bf16, `f32x3`
        on GPU is tf32. All others use the peak of `bf16`, or else of `f32`, the only one on CPU.
        """
        if kind in self.peaks:
            return kind, self.peaks[kind]
        base, _, passes = kind.partition("x")
        if kind == "f32x3":
            base, passes = "tf32", ""
        name = next((one for one in (base, "bf16", "f32") if one in self.peaks), "")
        found = self.peaks.get(name)
        if found is None:
            return None
        if not passes:
            return name, found
        return f"{name}x{passes}", Figure(found.value / int(passes), f"{found.source}, by {passes} passes")

    def with_working_set(self, size: int) -> Rates:
        """Returns the rates for a program with a working set of `size` bytes: with cache bandwidth if it fits in the
        cache.
        """
        cache, memory = self.cache_bandwidth, self.bandwidth
        if cache is None or memory is None or self.cache_bytes is None or size > self.cache_bytes.value:
            return self
        return attrs.evolve(self, bandwidth=cache) if cache.value > memory.value else self

    @property
    def axis_bandwidth(self) -> float | None:
        """Bytes per second that a device sends along one mesh axis, or None if unknown."""
        if self.link is None or self.links_per_axis is None:
            return None
        return self.link.value * self.links_per_axis.value


@attrs.frozen
class Chip:
    """A kind of device as the compiler sees it: v4 and v5p are a chip with both cores, tpu7x is one of its two cores."""

    name: str
    """Name used by users and in topologies: `v5e`, `h100`."""
    backend: Backend
    """Platform of the chip."""
    aliases: tuple[str, ...] = ()
    """Other names, as in JAX's `device_kind` and in dumps."""
    memory_bytes: int | None = None
    """Capacity of the device's main memory (memory space 0, HBM) in bytes; None if unknown."""
    fast_memory_bytes: int | None = None
    """Capacity in bytes of the memory that the compiler fills before buffer assignment: VMEM of one core; CMEM on v4."""
    fast_memory_space: int | None = None
    """Number of that memory space; None if there is none."""
    source: str = ""
    """Source of the capacities."""
    rates: Rates = Rates()
    base: str = ""
    """For a user-defined chip, the chip whose rules it follows; empty for others."""
    usable: Figure | None = None
    """Bytes of main memory that the compiler lets a program use, fewer than its capacity; None if unknown."""

    def usable_bytes(self, memory_space: int) -> int | None:
        """Returns the bytes of a memory space that a program may use: the compiler's limit, or else the capacity; None
        if unknown.
        """
        if memory_space == 0 and self.usable is not None:
            return int(self.usable.value)
        return self.capacity(memory_space)

    def capacity(self, memory_space: int) -> int | None:
        """Returns the capacity of a memory space in bytes, or None if unknown."""
        if memory_space == 0:
            return self.memory_bytes
        return self.fast_memory_bytes if memory_space == self.fast_memory_space else None


_MIB = 1 << 20
_GIB = 1 << 30


def _available(gib: float) -> Figure:
    """Main memory available to a program according to libtpu, given in GiB with two decimals."""
    return Figure(gib * _GIB, "available HBM in libtpu 0.0.42.1's out-of-memory message")


def _peaks(
    source: str, bf16: float, int8: float | None = None, fp8: float | None = None
) -> dict[str, Figure]:
    found = {"bf16": bf16, "int8": int8, "fp8": fp8}
    return {name: Figure(value, source) for name, value in found.items() if value is not None}


def _wide(tf32: float, f32: float, f64: float) -> dict[str, Figure]:
    """Peaks of wider types on a GPU: f32 rounded to TF32 on tensor cores, and plain f32 and f64."""
    found = {"tf32": tf32, "f32": f32, "f64": f64}
    return {name: Figure(value, COMMON) for name, value in found.items()}


def _passes(bf16: float) -> dict[str, Figure]:
    """Peaks of f32 products on a TPU, which computes them as three or six bf16 products, depending on the precision."""
    source = "bf16 peak divided by the passes of jax.lax.Precision"
    return {"f32x3": Figure(bf16 / 3, source), "f32": Figure(bf16 / 6, source)}


_LAUNCHED: dict[str, Any] = {
    "launch": Figure(1e-6, "XLA, kKernelLaunchOverhead of gpu_performance_model_base.h"),
    "collective_launch": Figure(5e-6, "XLA, kNcclKernelLaunchOverhead of gpu_performance_model_base.h"),
}


def _lanes(clock: float) -> Figure:
    """Operations per second of a TPU core's vector unit: four units of 8 x 128 lanes."""
    return Figure(clock * 4 * 8 * 128, COMMON)


def _torus(link: float, links: int) -> dict[str, Any]:
    """The links of a TPU, two for each axis of its torus."""
    return {
        "link": Figure(link, COMMON),
        "links": Figure(links, COMMON),
        "links_per_axis": Figure(2, COMMON),
        "host_link": Figure(16e9, COMMON),
        "dcn": Figure(6e9, COMMON),
    }


def _switched(link: float, links: int, host_link: Figure | None = None) -> dict[str, Any]:
    """The links of a GPU, all of which lead to a switch."""
    return {
        "link": Figure(link, COMMON),
        "links": Figure(links, COMMON),
        "links_per_axis": Figure(links, COMMON),
        "host_link": host_link,
    }


def _compiler(peak: float, bandwidth: float, *limits: Any) -> dict[str, Any]:
    return {
        "compiler_peak": Figure(peak, LIBTPU),
        "compiler_bandwidth": Figure(bandwidth, LIBTPU),
        "compiler_limits": CompilerLimits(*limits),
    }


_ROWS = (
    Chip(
        "v2", Backend.TPU, ("TPU v2", "TPU_VERSION_JELLYFISH"), 8 * _GIB, source=COMMON,
        rates=Rates(**_compiler(2.28e13, 295 * _GIB, 7.17e11, 0.70e9, None)),
        usable=_available(7.48),
    ),
    Chip(
        "v3", Backend.TPU, ("TPU v3", "TPU_VERSION_DRAGONFISH"), 17_200_000_000, source=JAX,
        rates=Rates(**_compiler(6.14e13, 400 * _GIB, 9.63e11, 0.94e9, None)),
        usable=_available(15.48),
    ),
    Chip(
        "v4", Backend.TPU, ("TPU v4", "TPU_VERSION_PUFFERFISH"), 34_400_000_000, 134_000_000, 3, JAX,
        Rates(
            {**_peaks(JAX, 2.75e14), **_passes(2.75e14)}, Figure(1.23e12, JAX),
            **_compiler(1.37e14, 457.5 * _GIB, 5.3775e11, 1.05e9, None),
            vector=_lanes(2 * 1.05e9),
            **_torus(45e9, 6),
            clock=Figure(1.05e9, COMMON),
        ),
        usable=_available(30.75),
    ),
    Chip(
        "v5e", Backend.TPU, ("TPU v5e", "TPU v5 lite", "v5litepod", "TPU_VERSION_VIPERFISH lite"),
        17_200_000_000, 128 * _MIB, 1, JAX,
        Rates(
            {**_peaks(JAX, 1.97e14, 3.94e14), **_passes(1.97e14)}, Figure(8.20e11, JAX),
            **_compiler(1.97e14, 687 * _GIB, 1.536e12, 1.5e9, None),
            vector=_lanes(1.5e9),
            **_torus(45e9, 4),
            clock=Figure(1.5e9, "peak divided by 4 units of 128 x 128 products per cycle"),
        ),
        usable=_available(15.75),
    ),
    Chip(
        "v5p", Backend.TPU, ("TPU v5p", "TPU v5", "TPU_VERSION_VIPERFISH"), 103_000_000_000, 64 * _MIB, 1, JAX,
        Rates(
            {**_peaks(JAX, 4.59e14, 9.18e14), **_passes(4.59e14)}, Figure(2.46e12, JAX),
            **_compiler(3.94e14, 2_189 * _GIB, 3.072e12, 1.75e9, 3.6e9),
            vector=_lanes(2 * 1.75e9),
            **_torus(90e9, 6),
            clock=Figure(1.75e9, LIBTPU),
        ),
        usable=_available(95.73),
    ),
    Chip(
        "v6e", Backend.TPU, ("TPU v6e", "TPU v6 lite", "trillium", "TPU_VERSION_GHOSTLITE"),
        34_400_000_000, 128 * _MIB, 1, JAX,
        Rates(
            {**_peaks(JAX, 9.20e14, 1.84e15), **_passes(9.20e14)}, Figure(1.64e12, JAX),
            **_compiler(9.18e14, 1.638e12, 1.792e12, 1.75e9, 6.4e9),
            vector=_lanes(1.75e9),
            **_torus(90e9, 4),
            clock=Figure(1.75e9, COMMON),
        ),
        usable=_available(31.24),
    ),
    Chip(
        "tpu7x", Backend.TPU, ("TPU7x", "7x", "v7x", "ironwood", "TPU_VERSION_6acc60406"), 103_000_000_000, 64 * _MIB, 1, JAX,
        Rates(
            {**_peaks(JAX, 1.155e15, fp8=2.3e15), **_passes(1.155e15)}, Figure(3.7e12, JAX),
            **_compiler(9.96e14, 3.686e12, 1.9456e12, 1.9e9, 7.2e9),
            vector=_lanes(1.9e9),
            **_torus(100e9, 6),
            clock=Figure(1.9e9, LIBTPU),
        ),
        usable=_available(94.74),
    ),
    Chip(
        "h100", Backend.GPU, ("H100", "NVIDIA H100 80GB HBM3"), 84_900_000_000, source=XLA,
        rates=Rates(
            {**_peaks(XLA, 9.89e14, 1.98e15, 1.98e15), **_wide(4.94e14, 6.7e13, 6.7e13)}, Figure(3.35e12, XLA),
            vector=Figure(6.7e13, COMMON), **_LAUNCHED, **_switched(25e9, 18),
        ),
    ),
    Chip(
        "h200", Backend.GPU, ("H200", "NVIDIA H200"), 151_000_000_000, source=XLA,
        rates=Rates(
            {**_peaks(XLA, 9.89e14, 1.98e15, 1.98e15), **_wide(4.94e14, 6.7e13, 6.7e13)}, Figure(4.80e12, XLA),
            vector=Figure(6.7e13, COMMON), **_LAUNCHED, **_switched(25e9, 18, Figure(32 * 2**30, XLA)),
        ),
    ),
    Chip(
        "b200", Backend.GPU, ("B200", "NVIDIA B200"), 191_500_000_000, source=XLA,
        rates=Rates(
            {**_peaks(XLA, 2.23e15, 4.45e15, 4.45e15), **_wide(1.1e15, 8e13, 4e13)}, Figure(7.67e12, XLA),
            vector=Figure(8e13, COMMON), **_LAUNCHED, **_switched(50e9, 18),
        ),
    ),
    Chip(
        "a100", Backend.GPU, ("A100", "NVIDIA A100-SXM4-80GB"), 85_100_000_000, source=XLA,
        rates=Rates(
            {**_peaks(COMMON, 3.12e14, 6.24e14), **_wide(1.56e14, 1.95e13, 1.95e13)}, Figure(2.04e12, XLA),
            vector=Figure(1.95e13, COMMON), **_LAUNCHED, **_switched(25e9, 12),
        ),
    ),
    Chip(
        "mi300x", Backend.GPU, ("MI300X", "AMD Instinct MI300X"), 192_000_000_000, source=COMMON,
        rates=Rates(
            {**_peaks(COMMON, 1.31e15, 2.61e15, 2.61e15), **_wide(6.54e14, 1.63e14, 1.63e14)}, Figure(5.3e12, COMMON),
            vector=Figure(1.63e14, COMMON), **_LAUNCHED, **_switched(64e9, 7),
        ),
    ),
    Chip(
        "cpu", Backend.CPU, ("host",), source=COMMON,
        rates=Rates(
            {"f32": Figure(5e11, COMMON)}, bandwidth=Figure(5e10, COMMON),
            cache_bytes=Figure(32 * _MIB, COMMON), cache_bandwidth=Figure(2e11, COMMON),
            link=Figure(1e10, COMMON), links=Figure(1, COMMON), links_per_axis=Figure(1, COMMON),
        ),
    ),
)  # fmt: skip

CHIPS: Mapping[str, Chip] = MappingProxyType({row.name: row for row in _ROWS})
"""Every chip by name."""


_SLICE = re.compile(r"^(v\d[a-z]*)-\d+$")
"""A slice as Cloud TPU names it, by its number of cores or chips: `v5litepod-8`."""
_MAKER = re.compile(r"^(?:google|cloud|tpu|nvidia|amd|instinct|tesla)[\s_-]*(?=\w)")
"""A maker or kind before the name of a chip."""


def chip(name: str) -> Chip:
    """Returns the chip with this name or alias, ignoring case.

    Topologies such as `v5e:2x2x1` and slices such as `v5litepod-8` are accepted too. Raises ValueError for an unknown
    name, with the closest known name or all of them, and TypeError for anything but a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"a chip is named by a string, not {type(name).__name__}")
    word = name.split(":")[0].strip().lower()
    word = _SLICE.sub(r"\1", word)
    for row in _ROWS:
        if word in (row.name, *(alias.lower() for alias in row.aliases)):
            return row
    of_kind = [row.name for row in _ROWS if row.backend.value == word]
    if of_kind:  # the kind of a chip; only the CPU's is a chip too
        raise ValueError(f"no chip is named {name!r}; give one of {', '.join(of_kind)}")
    if "," in word:
        raise ValueError(f"one chip at a time, not {name!r}")
    held = [known for known in CHIPS if known in word]  # tpu-v4, nvidia-h100-80gb
    # The first letter is a family of products, and no slip: v100 is neither a100 nor h100.
    family = [known for known in CHIPS if known[0] == _MAKER.sub("", word)[:1]]
    meant = suggestion(held[:1]) or did_you_mean(_MAKER.sub("", word), family) or f"known: {', '.join(CHIPS)}"
    raise ValueError(f"no chip is named {name!r}; {meant}")


_SETTABLE = (
    "bandwidth", "cache_bytes", "cache_bandwidth", "link", "links", "links_per_axis", "host_link", "dcn", "clock", "vector",
    "launch", "collective_launch",
)  # fmt: skip
_PEAKS = ("bf16", "int8", "fp8", "tf32", "f32x3", "f32", "f64")


def with_figures(base: Chip, figures: Mapping[str, Any], source: str = USER) -> Chip:
    """Returns a chip with user-defined figures: peaks by type (`bf16`, `f32` ...), fields of `Rates`, `memory_bytes`.

    The compiler's own rates are dropped if a peak or the bandwidth is given. Raises ValueError for other names, and for
    anything but a positive number.
    """
    rates, memory, usable = base.rates, base.memory_bytes, base.usable
    for name, value in figures.items():
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < float("inf"):
            raise ValueError(f"{name} must be a positive number, not {value!r}")
        figure = Figure(float(value), source)
        if name in _PEAKS:
            rates = attrs.evolve(rates, peaks={**rates.peaks, name: figure}, compiler_peak=None)
        elif name == "memory_bytes":
            memory, usable = int(value), None
        elif name in _SETTABLE:
            changes: dict[str, Any] = {name: figure}
            if name == "bandwidth":
                changes["compiler_bandwidth"] = None
            rates = attrs.evolve(rates, **changes)
        else:
            names = (*_PEAKS, *_SETTABLE, "memory_bytes")
            raise ValueError(
                f"a chip has no property {name!r}; {did_you_mean(name, names) or 'known: ' + ', '.join(names)}"
            )
    return attrs.evolve(base, rates=rates, memory_bytes=memory, usable=usable)


def read_chip(text: str, name: str = "chip") -> Chip:
    """Parses a chip from TOML: optional `base = "v5e"` and `name`, and figures as for `with_figures`.

    Raises ValueError for invalid TOML, an unknown base, and invalid figures.
    """
    try:
        table = toml.loads(text)
    except toml.TomlError as error:
        raise ValueError(f"{name} is not valid TOML: {error}") from None
    base = table.pop("base", None)
    own = table.pop("name", name)
    start = chip(str(base)) if base is not None else Chip(str(own), Backend.TPU)
    return attrs.evolve(with_figures(start, table), name=str(own), aliases=(), base=start.name)
