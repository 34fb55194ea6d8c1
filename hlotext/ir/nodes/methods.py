"""Methods of a module that packages above provide, so that `module.` completes to what can be done with it.

`hlotext/__init__.py` registers the functions; nothing here imports them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from hlotext.ir.arguments import under_name
from hlotext.ir.nodes.bound_methods import BoundMethod

_registered: dict[str, str] = {}
"""Dotted names of functions by the names of methods."""


def register(functions: Mapping[str, str]) -> None:
    """Registers methods of `Module`: maps each name to the dotted name of a function that gets the module as first
    argument.
    """
    _registered.update(functions)


class _Provided:
    """A method that is a function of a package, with the signature and documentation of the function."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, module: object, owner: type | None = None) -> Any:
        package, _, name = _registered[self._name].rpartition(".")
        function = getattr(importlib.import_module(package), name)
        return (
            function if module is None else BoundMethod(under_name(function, f"Module.{self._name}"), module)
        )


class ModuleMethods:
    """Methods of modules that call a function of an analysis package with the module as first argument."""

    __slots__ = ()

    verify = _Provided()
    """Findings of the verifier: `hlotext.verify(module)`."""
    lint = _Provided()
    """Findings of the linter: `hlotext.lint.run(module)`."""
    memory = _Provided()
    """Buffer assignment and peak: `hlotext.memory.assign(module)`."""
    cost = _Provided()
    """FLOPs and bytes: `hlotext.cost.analyze(module)`."""
    estimate = _Provided()
    """Lower bound on run time on a chip: `hlotext.cost.estimate(module, chip)`."""
    communications = _Provided()
    """Collectives and transfers: `hlotext.analysis.communications(module)`."""
    thunks = _Provided()
    """Thunks that the runtime executes: `hlotext.thunks.predict(module)`."""
    compare = _Provided()
    """Differences from a newer module: `hlotext.diff.compare(module, other)`."""
    inspect = _Provided()
    """Assertions for tests: `hlotext.inspect(module)`."""
