"""Packages whose modules are imported when they are first used: the one way in which start-up is kept short.

A package that is a door imports nothing. `from hlotext.syntax import reading` costs nothing, and the first
`reading.terms.read(...)` brings what that needs, with Lark. An import inside a function is for what no door can say.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


def lazy_submodules(package: str, *modules: str, **names: Sequence[str]) -> Callable[[str], Any]:
    """Returns a `__getattr__` for a package that imports submodules on first access.

    Args:
        package: Name of the package.
        modules: Submodules to import lazily.
        names: Names re-exported by the package, by the submodule that defines them. `dir()` and `help()` list the
            package's `__all__`, or all names including these if it has none.
    """
    homes = {name: module for module, owned in names.items() for name in owned}
    if (opening := sys.modules.get(package)) is not None:
        vars(opening)["__dir__"] = lambda: sorted(_listed(vars(opening), homes))

    def opened(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f"{package}.{name}")  # which makes it an attribute of the package

    return opened


def _listed(package: Mapping[str, Any], homes: Iterable[str]) -> set[str]:
    """Names of a package that `dir()` lists."""
    public = package.get("__all__")
    return {*package, *homes} if public is None else {*public, *(n for n in package if n.startswith("__"))}
