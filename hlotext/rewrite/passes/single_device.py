"""A module for one device: collectives become what they are for a group of one."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.instruction import Instruction
from hlotext.ir.module import Module
from hlotext.ir.shape import Shape
from hlotext.ir.window import SliceDimension, SliceDimensions
from hlotext.rewrite.builder import Builder
from hlotext.rewrite.passes.base import Pass, PassResult

_VALUE = frozenset(
    {"all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter", "collective-broadcast"}
)


@attrs.frozen
class SingleDevice(Pass):
    """Replaces collectives by what keeps shapes and lets the module run on one device.

    An all-reduce, all-to-all, permute or broadcast becomes its operand; an all-gather repeats its operand, a reduce-scatter
    takes the first part; partition-id and replica-id become 0. Results differ from those of many devices: this is for
    running one device's program. Asynchronous halves are left as they are.
    """

    name: ClassVar[str] = "single-device"
    summary: ClassVar[str] = "Replaces collectives so that one device's program runs alone."
    preserves_results: ClassVar[bool] = False

    def run(self, module: Module) -> PassResult:
        counts: dict[str, int] = {}
        for instruction in tuple(module.instructions()):
            new = self._alone(instruction)
            if new is not None:
                counts[instruction.opcode] = counts.get(instruction.opcode, 0) + 1
                instruction.replace_with(new)
        for name in ("replica_count", "num_partitions"):
            if module.attributes.pop(name, 1) != 1:
                module.touch_header()
                counts[name] = 1
        return PassResult.of(counts)

    def _alone(self, i: Instruction) -> Instruction | None:
        b = Builder.before(i)
        if i.opcode in ("partition-id", "replica-id"):
            return b.constant(0, "u32")
        if i.opcode not in _VALUE:
            return None
        if i.shape is not None and i.shape.is_tuple:
            pairs = zip(i.operands, i.shape.tuple_shapes, strict=True)
            return b.tuple(*(self._fitted(b, operand, shape) for operand, shape in pairs))
        assert i.shape is not None
        return self._fitted(b, i.operands[0], i.shape)

    def _fitted(self, b: Builder, value: Instruction, shape: Shape) -> Instruction:
        """A value repeated or cut to a shape, dimension by dimension."""
        wanted = shape.dimensions
        assert value.shape is not None
        for d, size in enumerate(wanted):
            given = value.shape
            assert given is not None
            have = given.dimensions[d]
            if size > have:
                parts = [value] * (size // have)
                value = b.op("concatenate", parts, shape=_with_size(given, d, size), dimensions=(d,))
            elif size < have:
                part = _with_size(given, d, size)
                whole = SliceDimensions(tuple(SliceDimension(0, limit) for limit in part.dimensions))
                value = b.op("slice", (value,), shape=part, slice=whole)
        if value.shape is not None and str(value.shape) != str(shape):
            value = b.op("copy", (value,), shape=shape)
        return value


def _with_size(shape: Shape, dimension: int, size: int) -> Shape:
    """The shape, layout included, with another size in one dimension."""
    sizes = shape.dimensions
    return attrs.evolve(shape, dimensions=(*sizes[:dimension], size, *sizes[dimension + 1 :]))
