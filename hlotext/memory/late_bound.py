"""Asynchronous operations whose start does not bind all operands and the result: updates do (`GetAsyncBoundOperands`).

Their body runs, and its memory begins, at the first of the operation that has everything bound (`IsFirstFullyBound`).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.memory.subshapes import SubshapeCache
from hlotext.memory.value_sets import Values, shape_of
from hlotext.semantics.infer.shapes import compatible


def is_bound_at_start(start: Instruction) -> bool:
    """Returns True for an async-start that binds all operands and the result, as most do."""
    body = start.called_computations[0] if start.called_computations else None
    return (
        body is None
        or not len(body)
        or (len(start.operands) >= len(body.parameters) and is_bound(start, body))
    )


def is_bound(instruction: Instruction, body: Computation) -> bool:
    """Returns True if a start, update or done binds all parameters and the result of the body
    (`AreOperandsAndOutputFullyBound`).
    """
    is_done = instruction.opcode == "async-done"
    state = shape_of(instruction.operands[0] if is_done else instruction).tuple_shapes
    if len(state) < 2:
        return False
    result = shape_of(instruction) if is_done else state[1]
    taken = Shape.tuple(tuple(map(shape_of, body.parameters)))
    return compatible(state[0], taken) and compatible(result, shape_of(body.root))


@attrs.define(eq=False)
class LateBound:
    """An asynchronous operation that binds operands or its result after the start, as far as it was visited."""

    start: Instruction
    members: list[Instruction] = attrs.field(factory=list)
    operands: list[Values] = attrs.field(factory=list)
    """The values of the operands that are bound so far."""
    result: Values | None = None
    """The values that the body returns; None until it was walked."""
    _taken: dict[Instruction, int] = attrs.field(factory=dict)

    @property
    def body(self) -> Computation:
        """The computation that the operation runs."""
        return self.start.called_computations[0]

    def take(self, member: Instruction, operands: Sequence[Values]) -> None:
        """Adds the next instruction of the operation, with the operands that it binds."""
        self.members.append(member)
        self.operands += operands
        self._taken[member] = len(self.operands)

    def values(self, member: Instruction, table: SubshapeCache, new: Values) -> Values:
        """Returns the values of a member, with `new` for tuples and contexts: operands as bound, the result from the
        body.

        A part of the result that is not bound yet, or whose body was not visited yet, has no value.
        """
        parts = table.of(shape_of(member))
        is_done = member.opcode == "async-done"
        root = table.of(shape_of(self.body.root))
        bound = self._bound_parameters(member)
        found = list(new)
        for number, (index, shape) in enumerate(zip(parts.indices, parts.shapes, strict=True)):
            inner = index if is_done else index[1:]
            if shape.is_tuple or (not is_done and index[0] > 1):
                continue
            found[number] = None
            if is_done or index[0] == 1:
                place = root.place.get(inner)
                if self.result is not None and place is not None and compatible(root.shapes[place], shape):
                    found[number] = self.result[place]
            elif inner and inner[0] < len(bound):
                values, whole = bound[inner[0]]
                place = table.of(whole).place.get(inner[1:])
                found[number] = values[place] if place is not None else None
        return tuple(found)

    def _bound_parameters(self, member: Instruction) -> list[tuple[Values, Shape]]:
        """Values and shapes of the operands that are bound at a member."""
        given = [o for m in self.members for o in (m.operands if m is self.start else m.operands[1:])]
        shapes = [shape_of(operand) for operand in given]
        return list(zip(self.operands, shapes, strict=False))[: self._taken[member]]
