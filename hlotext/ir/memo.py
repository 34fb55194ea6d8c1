"""Memory for functions of texts, which no text can fill, and for expressions that few texts need."""

from __future__ import annotations

import functools
import re
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


def late(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> Callable[[], re.Pattern[str]]:
    """A regular expression that is compiled when it is first called for: compiling takes longer than most of its uses."""
    return functools.cache(lambda: re.compile(pattern, flags))
