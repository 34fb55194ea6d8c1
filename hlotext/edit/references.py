"""Copies of attributes that name other nodes: what every copy of a module is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.raw import CallAttributes


class Reference(NamedTuple):
    """A node by position: the index of its computation and, for an instruction, its index there."""

    computation: int
    instruction: int = -1


_NODES = (Computation, Instruction, Reference)


class MappedAttributes:
    """Replaces the nodes that attributes refer to by those of a copy of the module.

    Instructions with the same attribute text share one mapping, and so do their copies, so that each is processed once.
    """

    def __init__(self, nodes: Mapping[Any, Any]) -> None:
        self._nodes = nodes
        self._done: dict[int, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        """By id, with the original, which is held so that no other gets its id."""

    def of(self, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns attributes with references replaced; the same mapping if there are none."""
        if not attributes:
            return attributes
        if type(attributes) is CallAttributes:
            common: Any = self.of(attributes.common)
            return CallAttributes(
                common, attributes.called, self._nodes.get(attributes.callee, attributes.callee)
            )
        known = self._done.get(id(attributes))
        if known is None:
            new = mapped(attributes, self._nodes)
            known = self._done[id(attributes)] = attributes, new
        return known[1]

    def parts(self, parts: Sequence[tuple[str, str, Any, bool]]) -> list[tuple[str, str, Any, bool]]:
        """Returns parts of op lines (`Module._parts`) for the copy."""
        return [
            (text, opcode, self.of(value) if isinstance(value, dict) else value, is_written)
            for text, opcode, value, is_written in parts
        ]


def mapped(attributes: Mapping[str, Any], nodes: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Returns attributes with the nodes that they refer to replaced; the same mapping if there are none."""
    found: dict[str, Any] = {}
    for name, value in attributes.items():
        if type(value) is tuple and any(isinstance(item, _NODES) for item in value):
            found[name] = tuple(nodes.get(item, item) for item in value)
        elif isinstance(value, Computation | Reference):
            found[name] = nodes.get(value, value)
    return {**attributes, **found} if found else attributes


__all__ = ["MappedAttributes", "Reference", "mapped"]
