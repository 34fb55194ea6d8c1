"""Bodies that come again with other names: fusions and reducers of a model's layers, half or more of what it holds.

Ids hold their computation's in their upper half, so bodies that were cloned from one another have the same bytes behind the
names of their instructions, but for that half. Such a body is not cut at all: its nodes are copies of the earlier ones'.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.raw import NodeHead
from hlotext.semantics.conditions import LOOK_FURTHER

if TYPE_CHECKING:
    from hlotext.proto.fast_computations import Body

LONGEST = 1 << 13
"""Bytes of a body that is remembered; longer ones hardly come twice."""
_LOWER = 4
"""Bytes of an id's varint that hold nothing of its upper half."""
_MOST = 8
"""Bodies of equal lengths that are compared with one."""

Row: TypeAlias = tuple[NodeHead, Mapping[str, Any], int, Callable[[list[Instruction]], Any] | None]
"""An instruction's head, attributes, and its operands: the place of the only one (or -1), or what takes
several of the nodes."""


class Repeated:
    """The common part of bodies that differ only in names and in the upper half of ids."""

    __slots__ = ("_rows", "begins", "between", "first", "is_in_order", "root")

    def __init__(self, between: list[str], first: list[Instruction], begins: list[str], root: int) -> None:
        self.between = between
        """Bytes after their instructions' names, without the upper halves of ids."""
        self.first = first
        """The nodes of the first one."""
        self.begins = begins
        """Common prefix of the instructions' ids."""
        self.root = root
        """The root's place."""
        self.is_in_order = False
        """True once their order is known to be XLA's print order."""
        self._rows: list[Row] = []

    def copies(self, names: list[str], computation: Computation) -> list[Instruction]:
        """Creates the nodes of another such body."""
        new = object.__new__
        nodes: list[Instruction] = []
        append = nodes.append
        if not self._rows:
            self._rows = self._taken_apart()
        for name, (head, attributes, only, several) in zip(names, self._rows):  # noqa: B905
            instruction = new(Instruction)
            instruction._name = name
            instruction._head = head
            instruction._operands = (nodes[only],) if only >= 0 else () if several is None else several(nodes)
            instruction._attributes = attributes
            instruction._computation = computation
            instruction._state = None
            append(instruction)
        return nodes

    def _taken_apart(self) -> list[Row]:
        nodes = self.first
        places = {node: place for place, node in enumerate(nodes)}
        rows: list[Row] = []
        for node in nodes:
            taken = [places[operand] for operand in node._operands]
            only = taken[0] if len(taken) == 1 else -1
            several = operator.itemgetter(*taken) if len(taken) > 1 else None
            rows.append((node._head, node._attributes, only, several))
        return rows


class Repeats:
    """Cache of the bodies of one module, keyed by their bytes."""

    def __init__(self, room: int) -> None:
        self._found: dict[tuple[int, ...], list[Repeated]] = {}
        """By the lengths of what lies behind the names."""
        self._room = room
        """Bytes of bodies that may still be remembered."""

    def find(self, pieces: list[str], root: str) -> Repeated | None:
        """Finds the cached part of a body, given the bytes after each instruction's name, and the root's id."""
        found = self._found.get(tuple(map(len, pieces)))
        if found is not None:
            body, begin, upper = "".join(pieces), root[:_LOWER], root[_LOWER:]
            for repeated in found:
                if repeated.begins[repeated.root] == begin and upper.join(repeated.between) == body:
                    return repeated
        return None

    def note(self, pieces: list[str], body: Body) -> None:
        """Caches the first of several equal bodies, unless more than operands depends on its ids."""
        nodes, upper = body.nodes, body.upper
        if body.calls or body.has_predecessors or len(upper) < 2:  # a single byte may be anything
            return
        lengths = tuple(map(len, pieces))
        size = sum(lengths)
        if size > min(LONGEST, self._room):
            return
        found = self._found.get(lengths)
        if found is not None and len(found) == _MOST:
            return
        between = "".join(pieces).split(upper)
        # Each upper half that was found must be that of an id, and not happen to stand inside of a value.
        if len(between) - 1 != len(nodes) + sum([len(node._operands) for node in nodes]):
            return
        if not LOOK_FURTHER.isdisjoint([node._head.opcode for node in nodes]):
            return
        self._room -= size
        begins = [key[:_LOWER] for key in body.ids()]
        body.like = Repeated(between, nodes, begins, nodes.index(body.root))
        if found is None:
            self._found[lengths] = [body.like]
        else:
            found.append(body.like)
