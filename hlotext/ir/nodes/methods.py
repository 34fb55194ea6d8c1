"""Methods of a module that packages above provide, so that `module.` completes to what can be done with it.

`hlotext/__init__.py` registers the functions; nothing here imports them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

_registered: dict[str, str] = {}
"""Dotted names of functions by the names of methods."""


def register(functions: Mapping[str, str]) -> None:
    """Provides methods: dotted names of functions, each called with the module as its first argument."""
    _registered.update(functions)


def _call(name: str, module: object, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    package, _, function = _registered[name].rpartition(".")
    return getattr(importlib.import_module(package), function)(module, *arguments, **options)


class ModuleMethods:
    """Methods that are functions of packages; see the function for options and results."""

    __slots__ = ()

    def verify(self, **options: Any) -> Any:
        """Findings of the verifier: `hlotext.verify(module)`."""
        return _call("verify", self, (), options)

    def lint(self, *arguments: Any, **options: Any) -> Any:
        """Findings of the linter: `hlotext.lint.run(module)`."""
        return _call("lint", self, arguments, options)

    def memory(self, **options: Any) -> Any:
        """Buffer assignment and peak: `hlotext.memory.assign(module)`."""
        return _call("memory", self, (), options)

    def cost(self, **options: Any) -> Any:
        """FLOPs and bytes: `hlotext.cost.analyze(module)`."""
        return _call("cost", self, (), options)

    def estimate(self, *arguments: Any, **options: Any) -> Any:
        """Lower bound on run time on a chip: `hlotext.cost.estimate(module, chip)`."""
        return _call("estimate", self, arguments, options)

    def communications(self) -> Any:
        """Collectives and transfers: `hlotext.analysis.communications(module)`."""
        return _call("communications", self, (), {})

    def thunks(self, **options: Any) -> Any:
        """Thunks that the runtime executes: `hlotext.thunks.predict(module)`."""
        return _call("thunks", self, (), options)

    def compare(self, other: Any, **options: Any) -> Any:
        """Differences to a newer module: `hlotext.diff.compare(module, other)`."""
        return _call("compare", self, (other,), options)

    def inspect(self, mesh: Any = None) -> Any:
        """Assertions for tests: `hlotext.inspect(module)`."""
        return _call("inspect", self, (mesh,), {})
