"""A first look over a module: who calls whom, and what the later checks need not search for."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.raw import NodeHead
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.shape import Shape
from hlotext.semantics.host_memory import HOST_SPACE

CALLING = frozenset(row.name for row in OPCODES.values() if row.stored_called_names)
"""Opcodes that may call computations."""

_NOTHING = frozenset(OPCODES) - CALLING - set(ROLES)
"""Opcodes that the survey passes over; an unknown one may call computations."""

_HEAD = operator.attrgetter("_head")

_Called = tuple[tuple[str, Computation], ...]


class Part(NamedTuple):
    """The part of a survey from one computation, valid until the computation is edited."""

    taken: Sequence[tuple[Instruction, _Called]] = ()
    """Instructions that belong to asynchronous operations, or call computations, and what they call."""
    shapes: frozenset[Shape] = frozenset()
    """A result shape of each kind."""
    users: Mapping[Instruction, list[Instruction]] = {}
    """The users of the asynchronous ones, each once."""


@attrs.define
class Survey:
    """Facts that the checks of a whole module need, collected in one pass."""

    shapes: set[Shape] = attrs.field(factory=set)
    """A result shape of each kind: with tiles and without, of buffers, in the memory of the host."""
    calls: dict[Computation, list[Instruction]] = attrs.field(factory=dict)
    """The instructions that call each computation, as often as they call it."""
    callers: dict[Instruction, tuple[tuple[str, Computation], ...]] = attrs.field(factory=dict)
    """The instructions that call computations, in the order of the text, each with its attributes and callees."""
    asynchronous: list[Instruction] = attrs.field(factory=list)
    """Every start, update and done, in the order of the text."""
    users: dict[Instruction, list[Instruction]] = attrs.field(factory=dict)
    """The users of each of these."""
    all_reduces: list[Instruction] = attrs.field(factory=list)
    fusion_bodies: set[Computation] = attrs.field(factory=set)
    uses_host_memory: bool = False
    """True if some shape is in `HOST_SPACE`."""
    has_buffers: bool = False
    """True where some shape is, or holds, a buffer."""

    @classmethod
    def of(cls, module: Module) -> Survey:
        """Collects the survey of a module. Later calls visit only computations that were edited since."""
        found = cls()
        parts = _Parts()
        known = module._surveyed = module._surveyed or {}
        for computation in module.computations:
            part = known.get(computation)
            if part is None or computation._is_modified:
                part = parts.of(computation)
                if not computation._is_modified and computation._start >= 0:
                    known[computation] = part
            found.shapes |= part.shapes
            found.users.update(part.users)
            for instruction, called in part.taken:
                found._take(instruction, called)
        for shape in found.shapes:
            _, has_buffers, in_host_memory = _kind(shape)
            found.has_buffers |= has_buffers
            found.uses_host_memory |= in_host_memory
        return found

    def _take(self, instruction: Instruction, called: _Called) -> None:
        opcode = instruction._head.opcode
        if opcode in ROLES:
            self.asynchronous.append(instruction)
        if opcode in ("all-reduce", "all-reduce-start"):
            self.all_reduces.append(instruction)
        if not called:
            return
        self.callers[instruction] = called
        for _, computation in called:
            self.calls.setdefault(computation, []).append(instruction)
            if opcode == "fusion":
                self.fusion_bodies.add(computation)


class _Parts:
    """Surveys computations one after the other. Instructions of one text share their head, and are told by it."""

    def __init__(self) -> None:
        self._kinds: dict[NodeHead, tuple[bool, bool, bool] | None] = {}
        self._taken: set[NodeHead] = set()
        self._first: dict[tuple[bool, bool, bool], Shape] = {}
        self._known: dict[frozenset[Shape], Part] = {}
        """Parts of the computations of which nothing is taken."""

    def of(self, computation: Computation) -> Part:
        instructions = computation._instructions
        heads = set(map(_HEAD, instructions))
        kinds, first = self._kinds, self._first
        for head in heads.difference(kinds):
            self._meet(head)
        shapes = frozenset([first[kind] for kind in {kinds[head] for head in heads} if kind is not None])
        if self._taken.isdisjoint(heads):
            return self._known.setdefault(shapes, Part((), shapes))
        taken = [(one, tuple(one.callees())) for one in instructions if one._head in self._taken]
        return Part(taken, shapes, _users(computation, {one: [] for one, _ in taken if one.opcode in ROLES}))

    def _meet(self, head: NodeHead) -> None:
        if head.opcode not in _NOTHING:
            self._taken.add(head)
        kind = self._kinds[head] = _kind(head.shape) if head.shape is not None else None
        if kind is not None and head.shape is not None:
            self._first.setdefault(kind, head.shape)


def _users(
    computation: Computation, users: dict[Instruction, list[Instruction]]
) -> dict[Instruction, list[Instruction]]:
    """The users of some instructions, found in one look at their computation."""
    is_apart = users.keys().isdisjoint
    for user in computation._instructions if users else ():
        if not is_apart(user._operands):
            for operand in dict.fromkeys(user._operands):
                if operand in users:
                    users[operand].append(user)
    return users


def _kind(shape: Shape) -> tuple[bool, bool, bool]:
    """Flags of a shape: something in it has tiles, is a buffer, lies in the memory of the host."""
    leaves = [leaf for _, leaf in shape.leaves()]
    layouts = [leaf.layout for leaf in leaves if leaf.layout is not None]
    return (
        any(layout.tiles for layout in layouts),
        any(leaf.is_buffer for leaf in leaves),
        any(layout.memory_space == HOST_SPACE for layout in layouts),
    )
