"""Reshapes and transposes moved behind the elementwise operations that take them."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.builder import Builder, retyped
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.passes.properties import NOT_SCHEDULED
from hlotext.rewrite.rewriter import remove_dead_operands


@attrs.frozen
class Rearrangement:
    """What a reshape or a transpose does to sizes; equal for those that do the same."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    order: tuple[int, ...] | None
    """The dimension of the operand that each dimension of the result is; None for a reshape."""

    @classmethod
    def of(cls, i: Instruction) -> Rearrangement | None:
        """That of an instruction; None for one that is neither, or does nothing, or whose sizes vary."""
        if i.opcode not in ("reshape", "transpose"):
            return None
        source = i.operands[0].shape
        if source is None or i.shape is None or not (source.is_static and i.shape.is_static):
            return None
        order = tuple(i.attributes["dimensions"]) if i.opcode == "transpose" else None
        if source.dimensions == i.shape.dimensions and (order is None or order == tuple(sorted(order))):
            return None
        return cls(source.dimensions, i.shape.dimensions, order)

    def place(self, dimension: int) -> int | None:
        """Where a dimension of `after` was in `before`; None where a reshape made it of several, or of a part of one."""
        if self.order is not None:
            return self.order[dimension]
        elements = int(np.prod(self.after[:dimension]))
        for place, size in enumerate(self.before):
            if size == self.after[dimension] != 1 and int(np.prod(self.before[:place])) == elements:
                return place
        return None


@attrs.frozen
class ReshapeMover(Pass):
    """Moves reshapes and transposes behind elementwise operations (XLA's `ReshapeMover`).

    `add(reshape(x), reshape(y))` becomes `reshape(add(x, y))`, again and again, so that they meet and cancel one another.
    An operation is taken where all its operands are rearranged in one way, or are what can be made in the other sizes as
    cheaply: constants, broadcasts. Whatever uses one of those rearranged operands must be taken too, else nothing would be
    saved. New operations have no sharding, which would be one for other dimensions. Random numbers stay as they are made.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[2,3] parameter(0)  y = f32[2,3] parameter(1)  a = f32[6] reshape(x)"
    ...     "  b = f32[6] reshape(y)  ROOT r = f32[6] add(a, b) }")
    >>> ReshapeMover().run(m).statistics
    {'instructions': 1}
    >>> print(m.entry.root, m.entry.root.operands[0], sep="; ")
    ROOT reshape = f32[6] reshape(add); add = f32[2,3] add(x, y)
    """

    name: ClassVar[str] = "reshape-mover"
    summary: ClassVar[str] = "Moves reshapes and transposes behind elementwise operations."
    requires = (NOT_SCHEDULED,)

    reshape_of_1d_broadcast_is_cheap: bool = False
    """Also reshapes broadcasts of more than a number, where their dimensions stay whole."""

    def run(self, module: Module) -> PassResult:
        return PassResult.of({"instructions": sum(map(self._move_all, nonfusion_computations(module)))})

    def _move_all(self, computation: Computation) -> int:
        count = 0
        while found := self._movable(computation):
            for i, rearrangement in found.items():
                self._move(i, rearrangement)
            count += len(found)
        return count

    def _movable(self, computation: Computation) -> dict[Instruction, Rearrangement]:
        """The operations to take, such that nothing else uses their rearranged operands."""
        found = {i: way for i in computation if (way := self._way(i)) is not None}
        moved = {o for i in found for o in i.operands if Rearrangement.of(o) is not None}
        while shared := [o for o in moved if not found.keys() >= set(o.users) or o.is_root]:
            for operand in shared:
                moved.discard(operand)
                for user in operand.users:
                    found.pop(user, None)
            moved = {o for o in moved if not found.keys().isdisjoint(o.users)}
        return found

    def _way(self, i: Instruction) -> Rearrangement | None:
        """How all operands of an elementwise operation are rearranged; None where they are not, or in several ways."""
        if i.opcode not in ELEMENTWISE or i.shape is None or not i.shape.is_static:
            return None
        if i.control_predecessors or i.control_successors:
            return None
        for operand in i.operands:
            way = Rearrangement.of(operand)
            if way is not None and not _is_cheap(operand.operands[0]):
                return way if all(self._fits(o, way) for o in i.operands) else None
        return None

    def _fits(self, operand: Instruction, way: Rearrangement) -> bool:
        own = Rearrangement.of(operand)
        return own == way if own is not None else self._can_be_made(operand, way)

    def _can_be_made(self, operand: Instruction, way: Rearrangement) -> bool:
        """Whether a value costs nothing to have in the other sizes."""
        if operand.shape is None or operand.shape.dimensions != way.after:
            return (
                operand.shape is not None and not operand.shape.rank
            )  # the predicate of a select, bounds of a clamp
        if operand.opcode == "constant":
            return operand.literal is not None and operand.literal.known_array is not None
        if operand.opcode != "broadcast":
            return False
        dimensions = operand.attributes.get("dimensions", ())
        if way.order is None and dimensions and not self.reshape_of_1d_broadcast_is_cheap:
            return False
        places = [way.place(d) for d in dimensions]
        known = [place for place in places if place is not None]
        return len(known) == len(places) and known == sorted(known)

    def _move(self, i: Instruction, way: Rearrangement) -> None:
        """Computes in the sizes before the rearrangement, and rearranges the result."""
        assert i.shape is not None
        b = Builder.before(i)
        source = next(o for o in i.operands if Rearrangement.of(o) == way).operands[0].shape
        assert source is not None
        operands = [self._undone(b, o, way, source) for o in i.operands]
        own = {k.replace("-", "_"): v for k, v in i._attributes.items() if k not in ("sharding", "metadata")}
        new = b.op(i.opcode, operands, shape=retyped(source, i.shape.element_type), **own)
        opcode = "reshape" if way.order is None else "transpose"
        old = i.operands
        i.replace_with(b.op(opcode, (new,), shape=i.shape, dimensions=way.order))
        remove_dead_operands(old)

    def _undone(self, b: Builder, operand: Instruction, way: Rearrangement, source: Shape) -> Instruction:
        """An operand in the sizes before the rearrangement."""
        assert operand.shape is not None
        if Rearrangement.of(operand) == way:
            return operand.operands[0]
        if operand.shape.dimensions != way.after:
            return operand
        shape = retyped(source, operand.shape.element_type)
        if operand.opcode == "broadcast":
            places = [way.place(d) for d in operand.attributes.get("dimensions", ())]
            dimensions = tuple(place for place in places if place is not None)
            return b.op("broadcast", operand.operands, shape=shape, dimensions=dimensions)
        values = operand.literal.known_array if operand.literal is not None else None
        assert values is not None
        inverse = np.argsort(way.order) if way.order is not None else None
        values = values.transpose(inverse) if inverse is not None else values.reshape(way.before)
        return b.op("constant", shape=shape, argument=Literal.from_array(np.ascontiguousarray(values), shape))


def _is_cheap(i: Instruction) -> bool:
    """Whether a rearrangement of a value is none worth moving, since the value itself can have any sizes."""
    return i.opcode == "constant" or (i.opcode == "broadcast" and not i.operands[0].shape.dimensions)  # type: ignore[union-attr]
