"""Memory for functions of texts, which no text can fill: long arguments are not remembered."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

LONGEST = 4_096
"""Characters, or entries, of an argument up to which a call is remembered. Longer ones hardly come twice."""


def memoised(size: int) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Like `functools.lru_cache`, for functions whose arguments are texts or tuples that come from a module's text.

    The memory lives as long as the process, so a server that reads many texts would keep their longest lines.
    """

    def decorate(function: Callable[..., Result]) -> Callable[..., Result]:
        remembered = functools.lru_cache(maxsize=size)(function)

        @functools.wraps(function)
        def call(*arguments: object) -> Result:
            for argument in arguments:
                if isinstance(argument, str | tuple) and len(argument) > LONGEST:
                    return function(*arguments)
            return remembered(*arguments)

        return call

    return decorate
