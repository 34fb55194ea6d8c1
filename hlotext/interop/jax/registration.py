"""Registrations of passes with JAX: one object per registered pass, independent of names."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

import attrs

from hlotext.analysis.formatting import pluralize
from hlotext.interop.jax import cache

Transformation = Callable[[bytes], "bytes | None"]

numbers = itertools.count(1)
"""Numbers that no registered transformation has yet."""
_MOST_OUTCOMES = 10_000


@attrs.frozen
class PassOutcome:
    """One module on its way through a pass."""

    module: str
    what: str
    """`changed`, `unchanged` or `skipped`."""
    reason: str = ""
    """The error because of which it was skipped, else empty."""


def summary(outcomes: Iterable[PassOutcome]) -> str:
    """The outcomes in one line.

    >>> summary([Outcome("jit_f", "changed"), Outcome("jit_g", "skipped", "KeyError: 1")])
    'changes 1 of 2 modules, skips 1'
    """
    counts = Counter(outcome.what for outcome in outcomes)
    skipped = f", skips {counts['skipped']:,}" if counts["skipped"] else ""
    return f"changes {counts['changed']:,} of {pluralize(counts.total(), 'module')}{skipped}"


class Registration:
    """A pass that runs in JAX's compiler until it is removed: by `remove()`, or at the end of a `with` block.

    JAX knows transformations by name and takes them off by name. Each registration has a name of its own, so that removing
    one leaves every other, be it of the same function.
    """

    def __init__(
        self, label: str, stage: Any, platforms: Sequence[str] | str | None, entry: cache.Entry
    ) -> None:
        self.label = label
        """Name of the pass in messages."""
        self.outcomes: deque[PassOutcome] = deque(maxlen=_MOST_OUTCOMES)
        """The modules that the pass has seen, the last ten thousand of them, with what became of each."""
        self._stage = stage
        self._platforms = platforms
        self._entry = entry
        self._number = next(numbers)
        self._names: list[str] = []
        self._lock = threading.Lock()
        self._is_active = True

    def __reduce__(self) -> tuple[Any, ...]:
        """Raises TypeError: there is no copy of it, nor can it be sent."""
        raise TypeError(
            "a registration refers to a pass in this process's compiler; register the pass in the other process"
        )

    def summary(self) -> str:
        """The count of the modules that the pass changed, or would have changed in a dry run, in one line."""
        return summary(self.outcomes)

    @property
    def is_active(self) -> bool:
        """True if the pass runs in later compilations."""
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
            "calling a registration is deprecated and will be removed in hlotext 0.2; use its remove(), or `with`",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.remove()

    def __repr__(self) -> str:
        state = "" if self._is_active else ", removed"
        return f"<Registration {self._number} of {self.label}{state}>"
