"""Structural identity of operations and computations: equal ones of two modules get equal numbers.

Names, ids of channels, metadata and the order of independent operations do not affect what a program does, so they are left
out. Two modules share one `ValueNumbering`, which numbers equal things equally.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import hlotext as hlo
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import CALLS_NOTHING

LEFT_OUT = traits.PROVENANCE | traits.CONTROL | traits.IDENTIFIERS | {"original_value"}
"""Attributes that are not compared: source locations, ids, and those compared elsewhere."""


def names_nodes(value: Any) -> bool:
    """True if an attribute names computations or instructions, which are compared by what they are."""
    if isinstance(value, tuple) and value:
        value = value[0]
    return isinstance(value, hlo.Computation | hlo.Instruction)


class ValueNumbering:
    """Numbers for what operations and computations say."""

    def __init__(self) -> None:
        self._locals: dict[Hashable, int] = {}
        self._known: dict[hlo.Instruction, int] = {}
        self._loose: dict[Hashable, int] = {}
        self._classes: dict[Hashable, int] = {}
        self._texts: dict[int, tuple[Any, Hashable]] = {}

    def local(self, node: hlo.Instruction) -> int:
        """A number for opcode, shape with layout, attributes, parameter number and literal."""
        known = self._known.get(node)
        if known is None:
            key = (node.opcode, node.shape, self._attributes(node), self._argument(node))
            known = self._known[node] = self._locals.setdefault(key, len(self._locals))
        return known

    def loose(self, node: hlo.Instruction) -> int:
        """A number for opcode, parameter number and how many operands there are."""
        key = (node.opcode, len(node.operands), node.parameter_number)
        return self._loose.setdefault(key, len(self._loose))

    def _attributes(self, node: hlo.Instruction) -> Hashable:
        attributes = node.attributes
        if not attributes:
            return ()
        found: list[tuple[str, Hashable]] = []
        for name in attributes:
            if name in LEFT_OUT:
                if name == "channel_id":
                    found.append((name, ""))
            elif not names_nodes(value := attributes[name]):
                found.append((name, self.value(value)))
        if len(found) > 1:
            found.sort(key=lambda pair: pair[0])
        return tuple(found)

    def value(self, value: Any) -> Hashable:
        """A text for a value of an attribute: equal values may have different classes in versions of a language."""
        known = self._texts.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        text = str(value)
        self._texts[id(value)] = value, text  # the value is held, so that its id stays its own
        return text

    def _argument(self, node: hlo.Instruction) -> Hashable:
        literal = node.literal
        return node.parameter_number if literal is None else self.value(literal)

    def classes(self, module: hlo.Module) -> dict[hlo.Computation, int]:
        """A number for each computation: the same for those that hold the same, in the same order, and call the same."""
        found: dict[hlo.Computation, int] = {}
        for computation in module.computations:
            place: dict[hlo.Instruction, int] = {}
            lines = []
            for node in computation.instructions:
                callees = () if node.opcode in CALLS_NOTHING else node.called_computations
                before = node.control_predecessors
                lines.append(
                    (
                        self.local(node),
                        tuple([place.get(operand, -1) for operand in node.operands]),
                        tuple([found.get(callee, -1) for callee in callees]) if callees else (),
                        tuple([place.get(other, -1) for other in before]) if before else (),
                    )
                )
                place[node] = len(place)
            root = place.get(computation.root, -1) if lines else -1
            key = (computation.execution_thread, root, tuple(lines))
            found[computation] = self._classes.setdefault(key, len(self._classes))
        return found
