"""A first look over a module: who calls whom, and what the later checks need not search for."""

from __future__ import annotations

import operator

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


@attrs.define
class Survey:
    """Contents of a module."""

    shapes: set[Shape] = attrs.field(factory=set)
    """Every result shape once."""
    calls: dict[Computation, list[Instruction]] = attrs.field(factory=dict)
    """The instructions that call each computation, as often as they call it."""
    callers: dict[Instruction, tuple[tuple[str, Computation], ...]] = attrs.field(factory=dict)
    """The instructions that call computations, in the order of the text, each with its attributes and callees."""
    asynchronous: list[Instruction] = attrs.field(factory=list)
    """Every start, update and done, in the order of the text."""
    all_reduces: list[Instruction] = attrs.field(factory=list)
    fusion_bodies: set[Computation] = attrs.field(factory=set)
    uses_host_memory: bool = False
    """True if some shape is in `HOST_SPACE`."""
    has_buffers: bool = False
    """True where some shape is, or holds, a buffer."""

    @classmethod
    def of(cls, module: Module) -> Survey:
        """Looks at every instruction once."""
        found = cls()
        # Instructions of one text share their head: most computations hold only such as were passed over before.
        passed: set[NodeHead] = set()
        taken: set[NodeHead] = set()
        for computation in module.computations:
            instructions = computation._instructions
            heads = list(map(_HEAD, instructions))
            if passed.issuperset(heads):
                continue
            for instruction, head in zip(instructions, heads, strict=True):
                if head in passed:
                    continue
                if head not in taken:
                    (passed if head.opcode in _NOTHING else taken).add(head)
                    if head.shape is not None:
                        found.shapes.add(head.shape)
                if head in taken:
                    found._take(instruction)
        for shape in found.shapes:
            for _, leaf in shape.leaves():
                found.has_buffers |= leaf.is_buffer
                found.uses_host_memory |= leaf.layout is not None and leaf.layout.memory_space == HOST_SPACE
        return found

    def _take(self, instruction: Instruction) -> None:
        opcode = instruction.opcode
        if opcode in ROLES:
            self.asynchronous.append(instruction)
        if opcode in ("all-reduce", "all-reduce-start"):
            self.all_reduces.append(instruction)
        called = tuple(instruction.callees())
        if not called:
            return
        self.callers[instruction] = called
        for _, computation in called:
            self.calls.setdefault(computation, []).append(instruction)
            if opcode == "fusion":
                self.fusion_bodies.add(computation)
