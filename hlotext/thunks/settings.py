"""The options and the device that decide about thunks and command buffers, from whatever a dump folder says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

COMMAND_DEFAULTS = (
    "CONDITIONAL",
    "CUBLAS",
    "CUBLASLT",
    "CUDNN",
    "CUSTOM_CALL",
    "DYNAMIC_SLICE_FUSION",
    "FUSION",
)
"""`xla_gpu_enable_command_buffer` where no option says otherwise (`DefaultDebugOptionsIgnoringFlags`)."""
H100 = {"threads_per_block_limit": 1024, "shared_memory_per_block": 49152}
"""Limits of every CUDA device so far, used without a gpu_target_config."""


@attrs.frozen
class ThunkSettings:
    """Debug options and device of a compilation; absent ones have XLA's defaults."""

    debug: Mapping[str, Sequence[str]] = attrs.field(factory=dict)
    """Options that differ from the default, by name; one that is repeated has several values."""
    target: Mapping[str, Any] = attrs.field(factory=dict)
    """`gpu_target_config.pbtxt`, nested; empty if there is none."""

    @classmethod
    def of(cls, options: Any) -> ThunkSettings:
        """Makes settings from `Compilation.options`, a mapping of debug options, ThunkSettings, or None for defaults.

        Raises TypeError for anything else.
        """
        if options is None:
            return cls()
        if isinstance(options, ThunkSettings):
            return options
        if isinstance(options, Mapping):
            return cls({name: _values(value) for name, value in options.items()})
        debug, target = getattr(options, "debug", None), getattr(options, "target", None)
        if isinstance(debug, Mapping):
            return cls({name: _values(value) for name, value in debug.items()}, target or {})
        raise TypeError(f"options must come from a compilation or be a mapping, not {type(options).__name__}")

    def flag(self, name: str, default: bool = False) -> bool:
        """Returns a boolean option; the default if it is absent."""
        values = self.debug.get(name)
        return values[-1].lower() in ("true", "1") if values else default

    def number(self, name: str, default: int) -> int:
        """Returns an integer option; the default if it is absent or not an integer."""
        values = self.debug.get(name)
        try:
            return int(values[-1]) if values else default
        except ValueError:
            return default

    @property
    def threads_per_block(self) -> int:
        """Maximum number of threads per block of the device; that of an H100 if it is unknown."""
        return self._of_device("threads_per_block_limit")

    @property
    def shared_memory_per_block(self) -> int:
        """Bytes of shared memory per block of the device; those of an H100 if unknown."""
        return self._of_device("shared_memory_per_block")

    def _of_device(self, name: str) -> int:
        found = _last(_inner(self.target, "gpu_device_info"), name)
        return found if isinstance(found, int) and found > 0 else H100[name]

    @property
    def is_rocm(self) -> bool:
        """True if the device is an AMD GPU."""
        return "ROCM" in str(_last(self.target, "platform_name") or "").upper()

    def version(self, name: str) -> tuple[int, int, int]:
        """Returns a version of CUDA as (major, minor, patch); zeros if it is absent.

        `name` is `runtime_version`, `driver_version` or `compile_time_toolkit_version`. The device description has
        versions as text ("12.9.0"), the enclosing message as numbers.
        """
        found = _last(_inner(self.target, "gpu_device_info"), name) or _last(self.target, name)
        if isinstance(found, Mapping):
            parts = [str(_last(found, part) or 0) for part in ("major", "minor", "patch")]
        else:
            parts = str(found or "").split(".")[:3]
        numbers = [int(part) if part.isdecimal() and len(part) < 10 else 0 for part in parts]
        major, minor, patch = (*numbers, 0, 0, 0)[:3]
        return major, minor, patch

    @property
    def command_types(self) -> frozenset[str]:
        """Command types enabled for command buffers, before the device's versions are considered."""
        values = self.debug.get("xla_gpu_enable_command_buffer")
        return frozenset(
            COMMAND_DEFAULTS if values is None else (v.strip().upper() for v in values if v.strip())
        )


def _values(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence):
        return tuple(str(part) for part in value)
    return (str(value),)


def _last(found: Mapping[str, Any], name: str) -> Any:
    """A field of a message, whose reader keeps all values of each field, as they may repeat."""
    value = found.get(name)
    if isinstance(value, tuple):
        value = value[-1] if value else None
    return value


def _inner(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = _last(found, name)
    return inner if isinstance(inner, Mapping) else {}
