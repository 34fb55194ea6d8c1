"""Probes compilers with a small program for their handling of registered passes.

Some accept passes but never run them (possibly on GPU), and some lose donation in the module that a pass returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hlotext.interop.jax.protos import donates
from hlotext.interop.jax.registration import numbers

_hearing: dict[tuple[str, Any], bool] = {}
"""True if a platform's compiler runs passes registered for a stage, by experiment."""


def check_heard(stage: Any, platforms: Sequence[str] | str | None) -> None:
    """Raises NotImplementedError if a platform's compiler accepts passes but never runs them, as may be the case on GPU.

    Compiles a single addition for each available platform that is named, by default for JAX's default one. The CPU
    compiler is known to run passes.
    """
    import jax

    if platforms is None:
        wanted = [jax.default_backend()]
    else:
        wanted = [platforms] if isinstance(platforms, str) else list(platforms)
    for platform in wanted:
        if platform != "cpu" and not _hears(platform, stage):
            raise NotImplementedError(
                f"the compiler of {platform} in this JAX runs no registered passes, so the program would silently be "
                "compiled without them (use platforms= to name platforms that do)"
            )


def _hears(platform: str, stage: Any) -> bool:
    """True if a platform's compiler runs registered passes; also if there is no such device."""
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

    name = f"hlotext probe {next(numbers)}"
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


_forgetting: dict[tuple[str, Any], bool] = {}


def forgets_donation(stage: Any, platforms: Sequence[str] | str | None) -> bool:
    """True if the compiler drops donation from a module that a pass returns, even if it is identical byte for byte.

    Probes the named platform, else JAX's default one, once per process.
    """
    import jax

    platform = jax.default_backend()
    if platforms is not None and platform not in platforms:
        platform = platforms if isinstance(platforms, str) else platforms[0]
    if (platform, stage) not in _forgetting:
        _forgetting[platform, stage] = _forgets(platform, stage)
    return _forgetting[platform, stage]


def _forgets(platform: str, stage: Any) -> bool:
    import jax
    import numpy as np
    from jax.extend import xla

    try:
        device = jax.local_devices(backend=platform)[0]
    except RuntimeError:
        return False
    seen: list[bool] = []

    def same(proto: bytes) -> bytes | None:
        return proto

    def look(proto: bytes) -> bytes | None:
        seen.append(donates(proto))
        return None

    names = [f"hlotext probe {next(numbers)}" for _ in range(2)]
    addend = np.float32(np.random.default_rng().normal())
    try:
        for name, function in zip(names, (same, look), strict=True):
            xla.register_hlo_module_transformation(function, name=name, stage=stage, platforms=platform)
        given = jax.ShapeDtypeStruct((8,), np.float32, sharding=jax.sharding.SingleDeviceSharding(device))
        jax.jit(lambda x: x + addend, donate_argnums=0).lower(given).compile()
    except RuntimeError:
        pass  # its plugin has no place for passes
    finally:
        for name in names:
            xla.clear_hlo_module_transformation(name, stage=stage, platforms=platform)
    return bool(seen) and not seen[-1]
