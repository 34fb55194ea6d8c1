"""Process-wide caches: each is created here, is bounded by weight, and can be cleared.

Caches of what a module says live as long as the process, so a server that reads many modules would fill any number of entries
with long ones. Each has a bound on the memory that it may take, about; beyond it, it begins anew. What follows from the code
alone (tables, expressions, the grammar's parser) is kept by `functools.cache` where it is made, and takes what it takes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

LONGEST = 4_096
"""Characters, or entries, of an argument up to which a `text_cache` call is remembered. Longer ones hardly come twice."""
MAX_WEIGHT = 3 << 20
"""Bytes, about, of what one cache may hold."""

_clears: list[Callable[[], None]] = []
"""Functions that clear the caches, one each."""


def weighted_cache(entries: int) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """Decorator like `functools.lru_cache`, bounded also by the weight of its results, for functions of small values.

    Arguments must be hashable values, such as shapes, types and numbers. A hit costs as much as with `lru_cache`, since
    only new results are weighed.
    """

    def decorate(function: Callable[P, Result]) -> Callable[P, Result]:
        held = 0

        @functools.lru_cache(maxsize=entries)
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal held
            result = function(*arguments, **named)
            made = sum(map(_weight, arguments), _weight(result))
            held += made
            if held > MAX_WEIGHT:
                call.cache_clear()
                held = made
            return result

        def clear() -> None:
            nonlocal held
            call.cache_clear()
            held = 0

        _clears.append(clear)
        return functools.update_wrapper(call, function)  # type: ignore[return-value]

    return decorate


def text_cache(entries: int) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """Decorator like `weighted_cache` for functions of strings, or tuples of strings. Long arguments are not cached."""

    def decorate(function: Callable[P, Result]) -> Callable[P, Result]:
        short: Callable[..., Result] = weighted_cache(entries)(function)

        @functools.wraps(function)
        def call(*arguments: Any) -> Result:
            for argument in arguments:
                if isinstance(argument, str | tuple) and len(argument) > LONGEST:
                    return function(*arguments)  # type: ignore[call-arg]
            return short(*arguments)

        return call  # type: ignore[return-value]

    return decorate


class Cache:
    """Cache of results by key, bounded by number and weight of entries, and emptied by `clear`."""

    __slots__ = ("_entries", "_held", "results")

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._held = 0
        self.results: dict[Any, Any] = {}
        """Cached results by key, for reading."""
        _clears.append(self.clear)

    def put(self, key: Any, result: Any) -> None:
        """Stores a result, unless its key and value are too large. May empty the cache first to stay within its bounds."""
        made = _weight(key) + _weight(result)
        if made > MAX_WEIGHT >> 4:
            return
        if self._held + made > MAX_WEIGHT or len(self.results) >= self._entries:
            self.clear()
        self._held += made
        self.results[key] = result

    def clear(self) -> None:
        """Removes all entries."""
        self.results.clear()
        self._held = 0


def _weight(value: Any) -> int:
    """Bytes that a value takes, about: what is long counts, what is inside of it is mostly shared with others."""
    weight = 0
    waiting = [value]
    while waiting:
        value = waiting.pop()
        weight += 100
        if isinstance(value, str | bytes):
            weight += len(value)
        elif isinstance(value, tuple | list | dict | frozenset):
            weight += 16 * len(value)
            waiting += [item for item in value if isinstance(item, str | tuple)]
        else:
            # Shapes of tuples: those inside them were mostly made with them.
            inner = getattr(value, "tuple_shapes", ())
            weight += 16 * len(inner)
            waiting += [shape for shape in inner if shape.tuple_shapes]
    return weight


def clear() -> None:
    """Empties all caches of module contents. Values in use stay valid; equal values are then created again.

    Freed memory is returned to the operating system if the C library supports it (glibc).
    """
    for one in _clears:
        one()
    import ctypes  # takes milliseconds

    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def lazy_regex(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> Callable[[], re.Pattern[str]]:
    """Returns a function that compiles a regular expression on its first call, since compiling takes longer than most
    uses.
    """
    return functools.cache(lambda: re.compile(pattern, flags))
