"""Arrays held by one device: arguments, results and the largest intermediate values."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from hlotext.analysis.backend import is_optimized
from hlotext.analysis.census import census
from hlotext.analysis.communication import KINDS
from hlotext.analysis.devices import devices_of
from hlotext.analysis.facts import fact
from hlotext.analysis.sizes import array_bytes, arrays_of
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import OpSharding, Sharding


@fact
def is_partitioned(module: Module) -> bool:
    """Returns True if shapes are already per device, so shardings must not be applied again.

    Inferred, since HLO text does not name its stage: a module for several partitions is partitioned if it has a
    schedule or fusions, or if it communicates and has no sharding or partitioner annotation left other than those of
    arguments and results.
    """
    partitions = devices_of(module).partitions
    if partitions == 1:
        return False
    return is_optimized(module) or _has_been_split(module)


_MARKS = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.")
"""Prefixes of custom-call targets that the partitioner removes."""


def _has_been_split(module: Module) -> bool:
    """True if there is communication that no mark of a part written by hand (`shard_map`) stands around."""
    known = census(module)
    if not any(known.by_opcode.get(opcode) for opcode in (*KINDS, "partition-id")):
        return False
    for call in known.by_opcode.get("custom-call", ()):
        if str(call.attributes.get("custom_call_target")).startswith(_MARKS):
            return False
    entry = module.entry
    return all(
        one.sharding is None or (one.computation is entry and (one.opcode == "parameter" or one.is_root))
        for one in known.instructions
    )


@attrs.frozen
class Shard:
    """An array and the part of it that one device holds."""

    instruction: Instruction
    index: tuple[int, ...]
    """Shape index of the array in the instruction's result."""
    sharding: Sharding | None
    """The sharding, or None if absent."""
    shape: Shape | None
    """Shape of the unpartitioned array, or None if the module is already partitioned."""
    shard_shape: Shape
    """Shape on one device."""
    problem: str | None
    """Reason why `shard_shape` is unknown and the whole shape is used instead, or None if it is known."""

    @property
    def global_bytes(self) -> int | None:
        """Allocated bytes of the unpartitioned array, or None if unknown."""
        size = array_bytes(self.shape) if self.shape is not None else None
        return size[0] if size is not None else None

    @property
    def device_bytes(self) -> int | None:
        """Bytes that one device allocates for its shard, or None if unknown."""
        if self.problem is not None:
            return None
        size = array_bytes(self.shard_shape)
        return size[0] if size is not None else None

    @property
    def replication(self) -> int | None:
        """Number of devices that hold each shard, or None if unknown."""
        return self.sharding.replication if self.sharding is not None else None

    @property
    def padding_fraction(self) -> float | None:
        """Fraction of all shards (0 to 1) that is padding due to uneven division.

        None if a size is unknown, if the sharding does not tile the array, or if the module is already partitioned.
        """
        return (
            padding_fraction_of(self.shape, self.sharding)
            if self.shape is not None and self.sharding is not None and self.problem is None
            else None
        )


def padding_fraction_of(shape: Shape, sharding: Sharding) -> float | None:
    """Returns the fraction (0 to 1) of all shards of an array that is padding, or None if the array is not tiled.

    Raises ValueError as `Sharding.shard_shape` does.
    """
    plain = sharding.without_mesh().canonical()
    tiles = plain.tile_dimensions if isinstance(plain, OpSharding) else ()
    if not tiles or any(size < 1 for size in shape.dimensions):
        return None
    held = math.prod(
        size * count for size, count in zip(sharding.shard_shape(shape).dimensions, tiles, strict=True)
    )
    return 1 - math.prod(shape.dimensions) / held


def argument_shards(module: Module) -> tuple[Shard, ...]:
    """Returns a `Shard` for each array among the module's arguments, in order."""
    expect_module(module)
    return tuple(shard for parameter in module.entry.parameters for shard in shards_of(module, parameter))


def result_shards(module: Module) -> tuple[Shard, ...]:
    """Returns a `Shard` for each array in the module's result, in order; empty if the entry has no instructions.

    The sharding is that of the root, or for a root tuple without one, that of each operand.
    """
    expect_module(module)
    if not len(module.entry):
        return ()
    root = module.entry.root
    if root.sharding is None and root.opcode == "tuple":
        return tuple(shard for operand in root.operands for shard in shards_of(module, operand))
    return tuple(shards_of(module, root))


_NOT_MADE = traits.TUPLES | {"parameter"}


def largest_shards(module: Module, count: int) -> tuple[Shard, ...]:
    """Returns the `count` largest shards of results that have a sharding, in descending order of bytes per device.

    Parameters and tuples are skipped.
    """
    found = [
        shard
        for instruction in census(module).instructions
        if instruction.sharding is not None and instruction.opcode not in _NOT_MADE
        for shard in shards_of(module, instruction)
    ]
    return tuple(sorted(found, key=lambda shard: -(shard.device_bytes or 0))[:count])


def shards_of(module: Module, instruction: Instruction) -> Iterator[Shard]:
    """Yields a `Shard` for each array in an instruction's result; nothing if its shape is unknown."""
    expect_module(module)
    shape = instruction.shape
    if shape is None:
        return
    written = instruction.sharding
    leaves = [index for index, _ in shape.leaves()]
    each = written.for_shape(shape).tuple_elements if written is not None else ()
    partitioned = is_partitioned(module)
    for index, array in arrays_of(shape):
        sharding = each[leaves.index(index)] if len(each) == len(leaves) else None
        problem = None
        part = array
        if written is None and not partitioned and devices_of(module).partitions != 1:
            problem = "the text does not show how it is sharded"
        elif written is not None and sharding is None:
            problem = f"{len(each)} shardings do not match {len(leaves)} arrays"
        elif sharding is not None and not partitioned:
            try:
                part = sharding.shard_shape(array)
            except ValueError as error:
                problem = str(error)
        yield Shard(instruction, index, sharding, None if partitioned else array, part, problem)
