"""Undoing edits: the state of a module's nodes, taken before and put back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module

_CACHES: dict[type, frozenset[str]] = {
    Instruction: frozenset({"_users"}),
    Computation: frozenset({"_by_name", "_order", "_successors"}),
    Module: frozenset({"_callers", "_place_of", "_by_name", "_facts", "revision"}),
}
"""What follows from the rest and is derived again."""
_FIELDS = {
    kind: tuple(field.name for field in attrs.fields(kind) if field.name not in caches)
    for kind, caches in _CACHES.items()
}


def _state(node: Any) -> tuple[Any, ...]:
    """The values of a node's fields, with lists and dicts that are changed in place copied."""
    values = [getattr(node, name) for name in _FIELDS[type(node)]]
    if type(node) is Instruction:  # its dict is replaced, never changed
        return tuple(values)
    return tuple(value.copy() if isinstance(value, list | dict) else value for value in values)


def _restore(node: Any, state: tuple[Any, ...]) -> None:
    kind = type(node)
    for name, value in zip(_FIELDS[kind], state, strict=True):
        setattr(node, name, value)
    for name in _CACHES[kind]:
        if name != "revision":
            setattr(node, name, None)


class Snapshot:
    """The whole state of a module, in time and memory proportional to its instructions."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._states = [
            (node, _state(node))
            for node in (module, *module._computations, *module.removed, *module.instructions())
        ]

    def restore(self) -> None:
        """Puts everything back as it was; nodes made since are no longer part of the module."""
        module = self._module
        for instruction in module.instructions():
            instruction.computation = None
        for computation in module._computations:
            computation.module = None
        for node, state in self._states:
            _restore(node, state)
        module.revision += 1


@contextmanager
def transaction(module: Module) -> Iterator[Module]:
    """See `Module.transaction`."""
    before = Snapshot(module)
    try:
        yield module
    except BaseException:
        before.restore()
        raise
