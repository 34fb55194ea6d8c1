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
    """Outcome of a pass for one module: changed, unchanged or skipped."""

    module: str
    """Name of the module."""
    what: str
    """`changed`, `unchanged` or `skipped`."""
    reason: str = ""
    """The error, if the module was skipped; else empty."""


def summary(outcomes: Iterable[PassOutcome]) -> str:
    """Summarizes outcomes in one line.

    >>> summary([PassOutcome("jit_f", "changed"), PassOutcome("jit_g", "skipped", "KeyError: 1")])
    'changes 1 of 2 modules, skips 1'
    """
    counts = Counter(outcome.what for outcome in outcomes)
    skipped = f", skips {counts['skipped']:,}" if counts["skipped"] else ""
    return f"changes {counts['changed']:,} of {pluralize(counts.total(), 'module')}{skipped}"


class Registration:
    """A pass that runs in JAX's compiler until it is removed, by `remove()` or at the end of a `with` block.

    JAX identifies transformations by name. Each registration uses a unique name, so removing it affects no other, not even
    one of the same function.
    """

    def __init__(
        self, label: str, stage: Any, platforms: Sequence[str] | str | None, entry: cache.Entry
    ) -> None:
        self.label = label
        """Name of the pass in messages."""
        self.outcomes: deque[PassOutcome] = deque(maxlen=_MOST_OUTCOMES)
        """Outcome for each module that the pass was given; the last 10,000."""
        self._stage = stage
        self._platforms = platforms
        self._entry = entry
        self._number = next(numbers)
        self._names: list[str] = []
        self._lock = threading.Lock()
        self._is_active = True

    def __reduce__(self) -> tuple[Any, ...]:
        """Raises TypeError, since a registration can neither be copied nor sent to another process."""
        raise TypeError(
            "a registration refers to a pass in this process's compiler; register the pass in the other process"
        )

    def summary(self) -> str:
        """Returns one line with the number of modules that the pass changed, or would have changed in a dry run."""
        return summary(self.outcomes)

    @property
    def is_active(self) -> bool:
        """True until the pass is removed."""
        return self._is_active

    def remove(self) -> bool:
        """Removes the pass, also from the compilation-cache key. Returns False if it was already removed."""
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
        """Registers one more transformation with JAX, which does nothing once this registration is removed.

        Args:
            function: Maps a serialized `HloModuleProto` to the changed one, or to None if it is unchanged.
            what: Appended to the name by which JAX knows the transformation.
        """
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
        """Deprecated alias of `remove`, from when `register_pass` returned a function."""
        warnings.warn(
            "calling a registration is deprecated and will be removed in hlotext 0.2; use its remove(), or `with`",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.remove()

    def __repr__(self) -> str:
        state = "" if self._is_active else ", removed"
        return f"<Registration {self._number} of {self.label}{state}>"
