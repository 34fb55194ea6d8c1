"""Registrations of passes with JAX: objects, each of which stands for one pass, whatever others are called."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from hlotext.interop.jax import cache

Transformation = Callable[[bytes], "bytes | None"]

_numbers = itertools.count(1)


class Registration:
    """A pass that runs in JAX's compiler until it is removed: by `remove()`, or at the end of a `with` block.

    JAX knows transformations by name and takes them off by name. Each registration has a name of its own, so that removing
    one leaves every other, be it of the same function.
    """

    def __init__(
        self, label: str, stage: Any, platforms: Sequence[str] | str | None, entry: cache.Entry
    ) -> None:
        self.label = label
        """What messages call the pass."""
        self._stage = stage
        self._platforms = platforms
        self._entry = entry
        self._number = next(_numbers)
        self._names: list[str] = []
        self._lock = threading.Lock()
        self._is_active = True

    def __reduce__(self) -> tuple[Any, ...]:
        """Raises TypeError: there is no copy of it, nor can it be sent."""
        raise TypeError(
            "a registration stands for a pass in this process's compiler; register the pass in the other process"
        )

    @property
    def is_active(self) -> bool:
        """Whether the pass runs in what JAX compiles from now on."""
        return self._is_active

    def remove(self) -> bool:
        """Takes the pass off; whether it was still on. What it was in the cache's key goes with it. May be called again."""
        with self._lock:
            if not self._is_active:
                return False
            self._is_active = False
            from jax.extend import xla

            try:
                for name in self._names:
                    xla.clear_hlo_module_transformation(name, stage=self._stage, platforms=self._platforms)
            finally:
                self._entry.leave()
            return True

    def add(self, function: Transformation, what: str = "") -> None:
        """Registers a transformation as a part of this. It does nothing once this is removed, whoever still calls it."""
        from jax.extend import xla

        name = f"{self.label} {self._number}{what and f': {what}'}"
        self._names.append(name)

        def transform(proto: bytes) -> bytes | None:
            return function(proto) if self._is_active else None

        xla.register_hlo_module_transformation(
            transform, name=name, stage=self._stage, platforms=self._platforms
        )

    def __enter__(self) -> Registration:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __call__(self) -> bool:
        """As `remove`: what `register_pass` gave before was called."""
        warnings.warn(
            "calling a registration is deprecated and goes with hlotext 0.2: use its remove(), or `with`",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.remove()

    def __repr__(self) -> str:
        state = "" if self._is_active else ", removed"
        return f"<Registration {self._number} of {self.label}{state}>"


# ---- compilers that run no registered passes

_hearing: dict[tuple[str, Any], bool] = {}
"""Whether the compiler of a platform runs what is registered for a stage, as was found out."""


def check_heard(stage: Any, platforms: Sequence[str] | str | None) -> None:
    """Raises NotImplementedError where a compiler that is to run a pass takes it and never calls it, as the GPU's may.

    Asked are the compilers of the platforms named that are there, or of the one that JAX takes by default: a program of one
    addition is compiled. The CPU's is known to run passes.
    """
    import jax

    if platforms is None:
        wanted = [jax.default_backend()]
    else:
        wanted = [platforms] if isinstance(platforms, str) else list(platforms)
    for platform in wanted:
        if platform != "cpu" and not _hears(platform, stage):
            raise NotImplementedError(
                f"the compiler of {platform} in this JAX runs no registered passes: the program would be compiled "
                f"without a word as if there were none (platforms= names those that do)"
            )


def _hears(platform: str, stage: Any) -> bool:
    """Whether the compiler of a platform runs what is registered; so it is where there is no such device."""
    known = _hearing.get((platform, stage))
    if known is not None:
        return known
    import jax
    import numpy as np
    from jax.extend import xla

    try:
        device = jax.local_devices(backend=platform)[0]
    except RuntimeError:
        return True
    heard: list[int] = []

    def probe(proto: bytes) -> bytes | None:
        heard.append(len(proto))
        return None

    name = f"hlotext probe {next(_numbers)}"
    # A number that no cache has seen, so that it is compiled.
    addend = np.float32(np.random.default_rng().normal())
    try:
        xla.register_hlo_module_transformation(probe, name=name, stage=stage, platforms=platform)
        jax.jit(lambda x: x + addend).lower(jax.device_put(np.float32(1), device)).compile()
    except RuntimeError:
        pass  # its plugin has no place for passes
    finally:
        xla.clear_hlo_module_transformation(name, stage=stage, platforms=platform)
    _hearing[platform, stage] = bool(heard)
    return bool(heard)
