"""Bytes and elements of shapes for a cost analysis, cached by shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.layout import LayoutError, allocated_bytes, host_shape_size, xla_array_size


@attrs.frozen
class Body:
    """Bytes that the body of a fusion accesses, for the fusions that call it."""

    reads: tuple[int, ...]
    """Bytes read of each parameter if the results are new buffers."""
    reads_in_place: tuple[int, ...]
    """Bytes read of each parameter if results overwrite the parameters that they update."""
    updates: Mapping[tuple[int, ...], tuple[int, int]]
    """Result leaves that update a parameter: its number, and the bytes replaced."""


SizeOf = Callable[[Shape], int]
"""Bytes of a shape. Raises LayoutError if they cannot be known."""


class ShapeSizes:
    """Bytes of shapes by one measure. Shapes of unknown size count 0 and are recorded in `unknown`."""

    counts_touched = True
    """True if bytes that fusions touch are counted beside those that XLA counts (`OpCost.touched`)."""

    def __init__(self, size_of: SizeOf = host_shape_size) -> None:
        self._size_of = size_of
        # Equal shapes of a module are nearly always one object: by identity a size is found in half the time.
        self._sizes: dict[int, int] = {}
        self._leaves: dict[int, tuple[int, ...]] = {}
        self._kept: list[Shape | None] = []
        self.unknown: set[Shape | None] = set()
        """Shapes that were asked for and have an unbounded dimension, more than 2^63 - 1 bytes, or are not given."""
        self.parameter_reads: dict[Instruction, int] = {}
        """Bytes that fusions read of their parameters, filled in by the rule of fusions, bodies first."""
        self.bodies: dict[Computation, Body] = {}
        """Bytes accessed by the bodies of fusions, filled in on demand."""
        self._counted: dict[Computation, Computation] = {}

    def note_equal_body(self, body: Computation, counted: Computation) -> None:
        """Records that the body of a fusion was counted by an equal body."""
        self._counted[body] = self.counted(counted)

    def counted(self, body: Computation) -> Computation:
        """Returns the body that was counted for a body: itself, or an equal one."""
        return self._counted.get(body, body)

    def of(self, shape: Shape | None) -> int:
        """Returns the bytes of a shape; for a tuple, those of its pointer table alone
        (`HloCostAnalysis::GetShapeSize`).
        """
        found = self._sizes.get(id(shape))
        if found is None:
            self._kept.append(shape)
            found = self._sizes[id(shape)] = self._measured(shape)
        return found

    def leaves(self, shape: Shape | None) -> tuple[int, ...]:
        """Returns the bytes of each leaf of a shape."""
        found = self._leaves.get(id(shape))
        if found is None:
            self._kept.append(shape)
            leaves = (shape,) if shape is None else tuple(leaf for _, leaf in shape.leaves())
            found = self._leaves[id(shape)] = tuple(map(self.of, leaves))
        return found

    def operand(self, operand: Instruction) -> int:
        """Returns the bytes of an operand; for a tuple, those of its pointer table alone."""
        return self.constant(operand.shape) if operand.opcode == "constant" else self.of(operand.shape)

    def constant(self, shape: Shape | None) -> int:
        """Returns the bytes of a constant, which loses `E(n)` in XLA's parser."""
        return self.of(in_whole_bytes(shape))

    def _measured(self, shape: Shape | None) -> int:
        try:
            if shape is not None:
                return self._size_of(shape)
        except LayoutError:
            pass
        self.unknown.add(shape)
        return 0


def size_with_small_tables(shape: Shape) -> int:
    """Returns the bytes of a shape as in XLA's cost analysis since 2026-08-23: 4 bytes per element of a tuple's pointer
    table.
    """
    return 4 * len(shape.tuple_shapes) if shape.is_tuple else host_shape_size(shape)


def in_whole_bytes(shape: Shape | None) -> Shape | None:
    """Returns the shape without `E(n)`, which XLA's parser drops from the layout of a literal."""
    if shape is None or not shape.is_array or shape.layout is None or not shape.layout.element_size_in_bits:
        return shape
    return shape.with_layout(attrs.evolve(shape.layout, element_size_in_bits=0))


def elements(shape: Shape | None) -> int:
    """Returns the number of elements of an array, using bounds (`ShapeUtil::ElementsIn`); 0 for an unbounded or
    non-array shape.
    """
    if shape is None or not shape.is_array:
        return 0
    count = math.prod(shape.dimensions)
    return max(0, count)


def padded_size(shape: Shape) -> int:
    """Returns the bytes of a shape with layout padding; for a tuple, those of its pointer table."""
    return host_shape_size(shape) if not shape.is_array else allocated_bytes(shape)


def device_size(shape: Shape) -> int:
    """Returns the bytes of a shape in the TPU compiler's own cost analysis, with the padding of the first tile."""
    return host_shape_size(shape) if not shape.is_array else xla_array_size(shape)
