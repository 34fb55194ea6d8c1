"""Functions that values hold, on their way into another process: there they are found by their names, or not at all."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, Self


def check(function: Callable[..., Any], what: str) -> None:
    """Raises TypeError unless pickle finds a function again under its name: at the top of a module, or in a class."""
    if named(getattr(function, "__module__", None), getattr(function, "__qualname__", "")) is not function:
        raise TypeError(
            f"{what} contains a function that another process cannot find; define it at module level, or create this in "
            "that process"
        )


def named(module: str | None, path: str) -> Any:
    """Value at a dotted path in a module; None if there is none."""
    found: Any = sys.modules.get(module or "")
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def found(module: str, path: str) -> Any:
    """Value at a dotted path in a module, in a process that may not have imported the module yet."""
    importlib.import_module(module)
    return named(module, path)


class Uncopied:
    """A frozen value that copies to itself, so that it may hold functions that cannot be copied."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self


class Whole:
    """An error that survives pickling, regardless of the signature of its `__init__`."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = self.args  # type: ignore[attr-defined] # every exception has them
        return _raised, (type(self), arguments, vars(self).copy())


def _raised(error: type[BaseException], arguments: tuple[Any, ...], fields: dict[str, Any]) -> BaseException:
    made = error.__new__(error, *arguments)
    vars(made).update(fields)
    return made
