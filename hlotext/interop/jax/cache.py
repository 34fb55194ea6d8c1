"""Registered passes and JAX's persistent compilation cache: a part of its key, or the cache off.

An entry's key is computed from the program before compilation, options and versions (`jax._src.cache_key`). Passes are not
included, except through `custom_hook`, which exists for such additions.
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import hlotext
from hlotext.rewrite.pipeline import Pipeline

_PACKAGE = Path(__file__).parents[2]


class Entry:
    """A registered pass, as seen by the compilation cache."""

    def __init__(self, identity: str | None) -> None:
        self.identity = identity
        """Part of the cache key; None if this pass disables the cache."""

    def leave(self) -> None:
        """Removes the pass from the cache key when it is no longer registered."""
        if self in _entries:
            _entries.remove(self)
            _settle()


_entries: list[Entry] = []
"""Every registered pass, in the order in which they run."""
_turned_off: list[bool] = []
"""Holds what `jax_enable_compilation_cache` was before the cache was turned off here; empty while it is not."""
_hooked: list[Any] = []
"""Holds JAX's own hook once it is replaced."""


def enter(label: str, function: object, place: str, cache_key: str | None) -> Entry:
    """Adds a pass to the compilation cache key, or disables the cache if the pass has no stable identity."""
    identity = _identity(function, cache_key)
    if identity is not None and not _hook():
        identity = None
    entry = Entry(identity and f"{place} {identity}")
    _entries.append(entry)
    was_off = bool(_turned_off)
    _settle()
    if _turned_off and not was_off:
        _warn(label)
    return entry


def _identity(function: object, cache_key: str | None) -> str | None:
    """Identity of a pass across processes; None if it has none."""
    if cache_key is not None:
        return f"{hlotext.__version__} {cache_key!r} {_code_of(function)}"
    if isinstance(function, Pipeline) and all(
        type(p).__module__.startswith("hlotext.rewrite.passes.") for p in function.passes
    ):
        return f"{_sources()} {','.join(map(str, function.passes))}"
    return None


def _code_of(function: object) -> str:
    """Digest of a function's code, which distinguishes passes of equal name and version; empty for other objects."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return ""
    return hashlib.sha256(repr(_plain(code)).encode("utf-8", "backslashreplace")).hexdigest()


def _plain(value: object) -> object:
    """Canonical form of a constant in a function's code, equal in every process."""
    if isinstance(value, CodeType):
        return value.co_code.hex(), value.co_names, [_plain(constant) for constant in value.co_consts]
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return repr(value)


@functools.cache
def _sources() -> str:
    """Digest of hlotext's own files, which change the behavior of its passes, in development without a new version."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _hook() -> bool:
    """Adds the registered passes to JAX's cache keys; returns False if this JAX has no hook for that."""
    try:
        from jax._src import cache_key
    except ImportError:
        return False
    original: Callable[[], str] | None = getattr(cache_key, "custom_hook", None)
    if original is None:
        return False
    if not _hooked:
        _hooked.append(original)
        cache_key.custom_hook = lambda: (
            original() + "".join(f"\n{e.identity}" for e in _entries if e.identity)
        )
    return True


def _settle() -> None:
    """Disables the cache if a registered pass requires it, and restores it when none does any more."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    is_off_needed = any(entry.identity is None for entry in _entries)
    if is_off_needed and not _turned_off:
        _turned_off.append(bool(jax.config.jax_enable_compilation_cache))
        jax.config.update("jax_enable_compilation_cache", False)
        compilation_cache.reset_cache()  # JAX looks at the setting once
    elif not is_off_needed and _turned_off:
        jax.config.update("jax_enable_compilation_cache", _turned_off.pop())
        compilation_cache.reset_cache()


def _warn(label: str) -> None:
    import jax

    if _turned_off[0] and jax.config.jax_compilation_cache_dir:
        warnings.warn(
            f"JAX's compilation cache is off while the pass {label} is registered, since hlotext cannot tell when it "
            "changes; pass a cache_key to register_pass",
            RuntimeWarning,
            stacklevel=4,
        )
