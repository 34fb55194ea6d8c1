"""Units of layout assignment: buffers, their sources, and the constraints on them.

A buffer is an array that an instruction makes; tuples, get-tuple-elements and the like hand buffers on
(`TuplePointsToAnalysis`, `BufferLayoutConstraint`, `OperandLayoutConstraint`, `ComputationLayoutConstraint`).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from hlotext.analysis import arrays_of
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.aliasing import OutputOperandAlias, OutputToOperandAliasing
from hlotext.ir.values.shape import Layout, Shape
from hlotext.layout.permutations import descending
from hlotext.memory.value_sets import shape_of

Index = tuple[int, ...]
Order = tuple[int, ...]
"""Dimensions from minor to major."""
Orders = dict[Index, Order]
"""The orders of the arrays of a shape."""

HANDED_ON = traits.FORWARDS_BUFFER
"""Opcodes whose result is their first operand."""

MOST_CHANGES = 2
"""Number of times an optional layout may change (`kMaxLayoutProp`), so that propagation ends."""


@attrs.define(eq=False, repr=False)
class Buffer:
    """An array that an instruction defines."""

    instruction: Instruction
    index: Index
    rank: int
    number: int
    """Its place in the order in which XLA numbers buffers."""
    aliases: list[Instruction] = attrs.field(factory=list)
    """Instructions whose whole result it is."""
    constraint: BufferConstraint | None = None


@attrs.define(eq=False, repr=False)
class BufferConstraint:
    """A layout constraint on an array."""

    buffer: Buffer
    order: Order
    is_mandatory: bool
    is_dfs: bool
    priority: int
    because: str
    changes: int = 1


@attrs.define(eq=False, repr=False)
class OperandConstraint:
    """A layout constraint of an instruction on an operand."""

    instruction: Instruction
    number: int
    orders: Orders
    is_mandatory: bool
    is_dfs: bool
    priority: int
    because: str

    @property
    def operand(self) -> Instruction:
        """The operand."""
        return self.instruction.operands[self.number]

    @property
    def order(self) -> Order:
        """The dimension order required of an array operand."""
        return self.orders[()]


@attrs.define(eq=False, repr=False)
class Interface:
    """Layouts of a computation's parameters and result, as seen by its callers."""

    computation: Computation
    parameters: list[Orders]
    result: Orders
    priority: int
    has_parameters: bool = False
    has_result: bool = False
    is_mandatory: bool = True
    is_dfs: bool = True
    result_shape: Shape | None = None
    """Of the program: its result with all that the header says of layouts."""
    operands: dict[tuple[Instruction, int], OperandConstraint] = attrs.field(factory=dict)
    """Constraints of its instructions, by instruction and operand number."""


Constraint = BufferConstraint | OperandConstraint | Interface


# ---- shapes and orders


def order_of(shape: Shape) -> Order:
    """Returns the dimension order of an array, or the descending one if it has no layout."""
    return shape.layout.minor_to_major if shape.layout is not None else descending(shape.rank)


def orders_of(shape: Shape) -> Orders:
    """Returns the dimension orders of all arrays of a shape, by index."""
    return {index: order_of(leaf) for index, leaf in arrays_of(shape)}


def default_orders(shape: Shape) -> Orders:
    """Returns the descending order of all arrays of a shape, by index."""
    return {index: descending(leaf.rank) for index, leaf in arrays_of(shape)}


def with_orders(shape: Shape, orders: Orders) -> Shape:
    """Returns the shape with these dimension orders."""
    return with_layouts(shape, {index: Layout(order) for index, order in orders.items()})


def with_layouts(shape: Shape, given: Mapping[Index, Layout | None], index: Index = ()) -> Shape:
    """Returns the shape with these layouts."""
    if shape.is_tuple:
        parts = tuple(with_layouts(part, given, (*index, n)) for n, part in enumerate(shape.tuple_shapes))
        return shape if parts == shape.tuple_shapes else Shape.tuple(parts)
    layout = given.get(index)
    return shape.with_layout(layout) if shape.is_array and shape.rank and layout is not None else shape


def without(order: Order, deleted: tuple[int, ...]) -> Order:
    """Returns the order after deleting dimensions (`LayoutUtil::DeleteDimension`)."""
    gone = frozenset(deleted)
    kept = sorted(d for d in order if d not in gone)
    places = {d: n for n, d in enumerate(kept)}
    return tuple(places[d] for d in order if d not in gone)


def at_most_rank_1(shape: Shape) -> bool:
    """Returns True if all arrays of a shape have at most one dimension (`IsAtMostRank1`)."""
    return all(leaf.rank <= 1 for _, leaf in arrays_of(shape))


# ---- where arrays come from


class Sources:
    """The buffer of every array of every instruction."""

    def __init__(self, module: Module, computations: list[Computation]) -> None:
        self.buffers: list[Buffer] = []
        self._of: dict[Instruction, dict[Index, Buffer]] = {}
        for computation in computations:
            for i in computation.instructions:
                self.add(i)

    def add(self, i: Instruction) -> None:
        """Determines the buffers of an instruction, whose operands have been added."""
        found = self._of[i] = self._find(i)
        if shape_of(i).is_array and () in found:
            found[()].aliases.append(i)

    def of(self, i: Instruction) -> dict[Index, Buffer]:
        """Returns the buffers of an instruction, by index."""
        return self._of[i]

    def is_own(self, i: Instruction, index: Index) -> bool:
        """Returns True if an instruction defines the array at an index."""
        buffer = self._of[i].get(index)
        return buffer is not None and buffer.instruction is i

    def is_handed_on(self, i: Instruction, number: int) -> bool:
        """Returns True if a buffer of an operand is also one of the result (`AnyOperandBufferForwarded`)."""
        if i.opcode not in _MAY_HAND_ON:
            return False
        if i.opcode != "copy":
            return True
        own = set(map(id, self._of[i].values()))
        return any(id(buffer) in own for buffer in self._of[i.operands[number]].values())

    def _find(self, i: Instruction) -> dict[Index, Buffer]:
        opcode = i.opcode
        shape = shape_of(i)
        if opcode in HANDED_ON and i.operands:
            return dict(self._of[i.operands[0]])
        if opcode == "tuple":
            return {
                (n, *index): buffer for n, o in enumerate(i.operands) for index, buffer in self._of[o].items()
            }
        if opcode == "get-tuple-element":
            number = i.attributes["index"]
            given = self._of[i.operands[0]]
            found = {index: given.get((number, *index)) for index, _ in arrays_of(shape)}
            if None in found.values():
                raise ValueError(f"{i.name} selects an element that {i.operands[0].name} does not have")
            return {index: buffer for index, buffer in found.items() if buffer is not None}
        if opcode == "copy" and shape.is_tuple:
            return dict(self._of[i.operands[0]])
        own: dict[Index, Buffer] = {}
        for index, leaf in arrays_of(shape):
            own[index] = Buffer(i, index, leaf.rank, len(self.buffers))
            self.buffers.append(own[index])
        return own


_MAY_HAND_ON = HANDED_ON | traits.TUPLES | {"copy"}


def aliases_of(i: Instruction) -> tuple[OutputOperandAlias, ...]:
    """Returns the aliases of a custom call's or fusion's result to operands, from its attribute."""
    said = i.attributes.get("output_to_operand_aliasing")
    return said.aliases if isinstance(said, OutputToOperandAliasing) else ()
