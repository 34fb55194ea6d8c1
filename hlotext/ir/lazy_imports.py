"""Packages whose modules are imported when they are first used: the one way in which start-up is kept short.

A package that is a door imports nothing. `from hlotext.syntax import reading` costs nothing, and the first
`reading.terms.read(...)` brings what that needs, with Lark. An import inside a function is for what no door can say.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any


def lazy_submodules(package: str, *modules: str, **names: Sequence[str]) -> Callable[[str], Any]:
    """Returns a `__getattr__` for a package that imports submodules on first access.

    Args:
        package: Name of the package.
        modules: Submodules to import lazily.
        names: Names re-exported by the package, by the submodule that defines them. A name shared with a submodule
            is the re-exported one. `dir()` and `help()` list the package's `__all__`, or all names including these if
            it has none.
    """
    homes = {name: module for module, owned in names.items() for name in owned}
    if (opening := sys.modules.get(package)) is not None:
        vars(opening)["__dir__"] = lambda: sorted(_listed(vars(opening), homes))
        if names.keys() & homes.keys():
            vars(opening)["_homes"] = homes
            opening.__class__ = _Door

    def opened(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f"{package}.{name}")  # which makes it an attribute of the package

    return opened


def late_module(name: str) -> Any:
    """Returns a stand-in for a module of another package that imports it on first attribute access.

    Importing numpy takes as long as everything a small text needs. Types still import it, under `TYPE_CHECKING`.
    """
    return _Late(name)


class _Late(ModuleType):
    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self.__name__), name)
        self.__dict__[name] = found
        return found


class _Door(ModuleType):
    """A package that re-exports names which its submodules have too: importing a submodule must not rebind them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in self.__dict__["_homes"]):
            super().__setattr__(name, value)


def _listed(package: Mapping[str, Any], homes: Iterable[str]) -> set[str]:
    """Names of a package that `dir()` lists."""
    public = package.get("__all__")
    return {*package, *homes} if public is None else {*public, *(n for n in package if n.startswith("__"))}
