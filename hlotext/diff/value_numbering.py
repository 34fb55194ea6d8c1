"""Structural identity of operations and computations: equal ones of two modules get equal numbers.

Names, ids of channels, metadata and the order of independent operations do not affect what a program does, so they are left
out. Two modules share one `ValueNumbering`, which numbers equal things equally.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import hlotext as hlo
from hlotext.ir.nodes.raw import CallAttributes
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import CALLS_NOTHING
from hlotext.ir.values.configs import BackendConfig

LEFT_OUT = traits.PROVENANCE | traits.CONTROL | traits.IDENTIFIERS | {"original_value"}
"""Attributes that are not compared: source locations, ids, and those compared elsewhere."""


def names_nodes(value: Any) -> bool:
    """Returns True if an attribute value refers to computations or instructions."""
    if isinstance(value, tuple) and value:
        value = value[0]
    return isinstance(value, hlo.Computation | hlo.Instruction)


def config_text(config: BackendConfig) -> str:
    """A text of a backend_config that is equal for equal JSON, whatever the order of keys and the spaces."""
    if not config.text.startswith("{"):
        return str(config)
    try:
        return json.dumps(config.json(), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return str(config)


class Said(NamedTuple):
    """Contents of a computation, for comparison."""

    thread: str
    root: int
    lines: tuple[tuple[Any, ...], ...]
    """Of each line the number of what it says and the places of what it reads; with these, callees and what it waits for."""


class ValueNumbering:
    """Assigns equal numbers to equal operations and to equal computations."""

    def __init__(self) -> None:
        self._locals: dict[Hashable, int] = {}
        self._known: dict[Hashable, tuple[int, bool]] = {}
        self._held: list[object] = []
        """Heads and attributes whose ids are keys of `_known`, held so that no other gets the id."""
        self._loose: dict[Hashable, int] = {}
        self._classes: dict[Said, int] = {}
        self.said: dict[hlo.Computation, Said] = {}
        """Contents of each computation whose class was asked for."""
        self._alone: dict[hlo.Computation, int] = {}
        """Classes of computations that call nothing."""
        self._texts: dict[int, tuple[Any, Hashable]] = {}

    def local(self, node: hlo.Instruction) -> int:
        """Returns a number for opcode, shape with layout, attributes, parameter number and literal."""
        return self._local(node)[0]

    def _local(self, node: hlo.Instruction) -> tuple[int, bool]:
        """That number, and whether the node may call or wait for others; asked once for all lines of equal text."""
        head, attributes = node._head, node._attributes
        if type(attributes) is CallAttributes and names_nodes(attributes.callee):
            shared: Mapping[str, Any] = attributes.common
            key: Hashable = (id(head), id(shared), attributes.called)
        else:
            shared = attributes
            key = (id(head), id(shared))
        known = self._known.get(key)
        if known is None:
            self._held += (head, shared)
            said = (node.opcode, node.shape, self._attributes(node), self._argument(node))
            may_name = node.opcode not in CALLS_NOTHING or "control-predecessors" in attributes
            known = self._known[key] = self._locals.setdefault(said, len(self._locals)), may_name
        return known

    def loose(self, node: hlo.Instruction) -> int:
        """Returns a number for opcode, parameter number and number of operands."""
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
        """Returns a text for an attribute value, equal for equal values of different classes."""
        known = self._texts.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        text = config_text(value) if type(value) is BackendConfig else str(value)
        self._texts[id(value)] = value, text  # the value is held, so that its id stays its own
        return text

    def _argument(self, node: hlo.Instruction) -> Hashable:
        literal = node.literal
        return node.parameter_number if literal is None else self.value(literal)

    def classes(self, module: hlo.Module, like: hlo.Module | None = None) -> dict[hlo.Computation, int]:
        """Returns a number for each computation, equal for computations with equal contents, order and callees.

        A computation without calls whose text equals that of the computation at the same position in `like`, a module
        that was numbered before, gets that one's number.
        """
        found: dict[hlo.Computation, int] = {}
        known = self._known
        same = _same_texts(module, like) if like is not None else {}
        for computation in module.computations:
            alone = self._alone.get(same[computation]) if computation in same else None
            if alone is not None:
                found[computation] = alone
                continue
            calls_nothing = True
            place: dict[hlo.Instruction, int] = {}
            lines: list[tuple[Any, ...]] = []
            for order, node in enumerate(computation._instructions):
                # Of what calls, `_local` makes the key; asked here first, most lines are answered without a call.
                number, may_name = known.get((id(node._head), id(node._attributes))) or self._local(node)
                operands = node._operands
                line: tuple[Any, ...]
                if len(operands) == 1:
                    line = number, place.get(operands[0], -1)
                else:
                    line = (number, *[place.get(operand, -1) for operand in operands])
                if may_name:
                    callees: list[int] = []
                    if node._head.opcode not in CALLS_NOTHING:
                        callees = [found.get(callee, -1) for callee in node.called_computations]
                    before = [place.get(other, -1) for other in node.control_predecessors]
                    calls_nothing &= not callees
                    if callees or before:
                        line = line, tuple(callees), tuple(before)
                lines.append(line)
                place[node] = order
            root = place.get(computation.root, -1) if lines else -1
            key = self.said[computation] = Said(computation.execution_thread, root, tuple(lines))
            found[computation] = self._classes.setdefault(key, len(self._classes))
            if calls_nothing:
                self._alone[computation] = found[computation]
        return found


def _same_texts(module: hlo.Module, other: hlo.Module) -> dict[hlo.Computation, hlo.Computation]:
    """The computations that have the text of the one in the same place in another module, by what was read."""
    if module.source is None or other.source is None or module.is_modified or other.is_modified:
        return {}
    text, other_text = module.source.text, other.source.text
    return {
        mine: theirs
        for mine, theirs in zip(module.computations, other.computations, strict=False)
        if mine._start >= 0 <= theirs._start  # those of an asynchronous line have no text
        and text[mine._start : mine._end] == other_text[theirs._start : theirs._end]
    }
