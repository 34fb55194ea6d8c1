"""Functions that values hold, on their way into another process: there they are found by their names, or not at all."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, Self


def check(function: Callable[..., Any], what: str) -> None:
    """Raises TypeError unless pickle can find a function by name, at the top level of a module or in a class.

    `what` names the object that holds the function in the message.
    """
    if named(getattr(function, "__module__", None), getattr(function, "__qualname__", "")) is not function:
        raise TypeError(
            f"{what} contains a function that another process cannot find; define it at module level, or create this in "
            "that process"
        )


def named(module: str | None, path: str) -> Any:
    """Returns the value at a dotted path in an imported module, or None if there is none."""
    found: Any = sys.modules.get(module or "")
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def found(module: str, path: str) -> Any:
    """Returns the value at a dotted path in a module, importing the module if necessary."""
    importlib.import_module(module)
    return named(module, path)


class Uncopied:
    """Mixin for frozen values that `copy` and `deepcopy` return as they are, since they may hold uncopyable functions."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self


class Whole:
    """Mixin for exceptions that makes them picklable, regardless of the signature of their `__init__`."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = self.args  # type: ignore[attr-defined] # every exception has them
        return _raised, (type(self), arguments, vars(self).copy())


def _raised(error: type[BaseException], arguments: tuple[Any, ...], fields: dict[str, Any]) -> BaseException:
    made = error.__new__(error, *arguments)
    vars(made).update(fields)
    return made
