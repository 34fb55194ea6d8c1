"""Arrays that grow by one concatenation after the other, each of which begins with all that there was before."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.alike_fusions import ENTERED, alike
from hlotext.lint.helpers import fusions_around, is_of_package
from hlotext.lint.products import SAME
from hlotext.lint.rule import Context
from hlotext.lint.taken_apart import is_base, written_in_turn
from hlotext.lint.values import Value, fetched, source

_LEAST = 4
"""Minimum number of sizes that an array goes through: fewer are branches of a network that are joined."""
_MOST_STEPS = 300
_WRITTEN_AS_IT_IS = traits.KEEPS_ELEMENTS | {"copy"}
_WRITTEN_IN_TURN = traits.UPDATES_ELEMENTS | {"fusion", "get-tuple-element"}


@attrs.frozen(eq=False)
class GrownArray:
    """An array with one part more than its predecessor."""

    array: Value
    writers: tuple[Instruction, ...]
    """The operations that write it to memory; none where it is only computed with."""
    is_in_turn: bool
    """True if its parts are written to it one after the other, as the TPU compiler does: then arrays of all sizes are held
    from the first part on."""


@attrs.frozen(eq=False)
class Growth:
    """The successive sizes of an array; several arrays per size if it is concatenated repeatedly."""

    steps: tuple[tuple[GrownArray, ...], ...]


def grown(context: Context) -> Iterator[Growth]:
    """Yields the arrays of a module that grow step by step.

    XLA merges nested concatenations, so that each has all parts of its predecessor and one more.
    """
    tree = _Tree()
    for one in context.census.by_opcode.get("concatenate", ()):
        metadata = one.metadata
        if metadata is not None and metadata.op_name.endswith("concatenate") and not is_of_package(one):
            value = Value(one, fusions_around(one, context))
            writer = _writer(value)
            tree.add(GrownArray(value, () if writer is None else (writer,), False), value.operands())
    if context.backend is Backend.TPU:
        for step, parts in _in_turn(context):
            tree.add(step, parts)
    yield from tree.chains()


def _in_turn(context: Context) -> Iterator[tuple[GrownArray, list[Value]]]:
    bodies, by_opcode = alike(context.module), context.census.by_opcode
    others = {
        made
        for opcode in ENTERED
        for made in by_opcode.get(opcode, ())
        if bodies.opcodes(made).isdisjoint(traits.UPDATES_ELEMENTS)
    }
    for one in context.graph.sequential_instructions():
        opcode = one.opcode
        if opcode not in _WRITTEN_IN_TURN:
            continue
        if (one.operands[0] if opcode == "get-tuple-element" else one) in others:
            continue
        if one.shape is None or not one.shape.is_array:
            continue
        if any(is_base(one, user) for user in one.users):
            continue
        parts, writers = written_in_turn(one)
        if len(parts) > 1:
            yield GrownArray(Value(one), writers, True), parts


class _Tree:
    """Lists of parts by their beginnings: a node for each list and each beginning of one."""

    def __init__(self) -> None:
        self._children: dict[tuple[int, Value], int] = {}
        self._before: list[int] = [0]
        self._steps: dict[int, list[GrownArray]] = {}
        self._nodes: dict[Value, int] = {}

    def add(self, step: GrownArray, parts: list[Value]) -> None:
        """Adds an array, after those that its first part may be."""
        origins = [_origin(part) for part in parts]
        node = self._nodes.get(origins[0], 0)
        for part in origins[1:] if node else origins:
            node = self._child(node, part)
        self._nodes[step.array] = node
        self._steps.setdefault(node, []).append(step)

    def _child(self, node: int, part: Value) -> int:
        child = self._children.get((node, part))
        if child is None:
            child = self._children[node, part] = len(self._before)
            self._before.append(node)
        return child

    def chains(self) -> Iterator[Growth]:
        """The longest chains of arrays that begin with one another, without common ones."""
        length: dict[int, int] = {0: 0}
        for node in range(1, len(self._before)):  # a node comes after its beginnings
            length[node] = length[self._before[node]] + (node in self._steps)
        taken: set[int] = set()
        for last in sorted(self._steps, key=lambda one: -length[one]):
            if length[last] < _LEAST:
                return
            steps, node = [], last
            while node and node not in taken:
                taken.add(node)
                if node in self._steps:
                    steps.append(tuple(self._steps[node]))
                node = self._before[node]
            if len(steps) >= _LEAST:
                yield Growth(tuple(reversed(steps)))


def _origin(value: Value) -> Value:
    for _ in range(_MOST_STEPS):
        value = source(value, SAME)
        moved = fetched(value.instruction)
        if moved is None:
            break
        value = Value(moved, value.fusions)
    return value


def _writer(joined: Value) -> Instruction | None:
    """The operation that writes a concatenation to memory as it is; None if it is only computed with."""
    one, fusions = joined.instruction, joined.fusions
    for _ in range(_MOST_STEPS):
        if not fusions:
            return one
        root = fusions[-1].called_computations[0].root
        if one is root or (root.opcode == "tuple" and len(fusions) == 1 and one in root.operands):
            one, fusions = fusions[-1], fusions[:-1]
            continue
        views = [user for user in one.users if user.opcode in _WRITTEN_AS_IT_IS]
        if len(views) != 1:
            break
        one = views[0]
    return None
