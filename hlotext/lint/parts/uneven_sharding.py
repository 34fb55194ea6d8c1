"""A sharding that does not divide a dimension evenly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import byte_text, is_partitioned
from hlotext.ir.values.named_sharding import NamedSharding
from hlotext.ir.values.sharding import OpSharding
from hlotext.lint.helpers import size_of
from hlotext.lint.rule import Context, Report, Rule


class UnevenSharding(Rule):
    needs_partitions = True
    share: ClassVar[float] = 0.05
    """Share of the elements on all devices that are padding, from which on it is worth a finding."""
    min_bytes: ClassVar[int] = 1 << 16
    """Bytes of padding on all devices from which on it is worth a finding."""

    def applies_to(self, context: Context) -> bool:
        # After partitioning shapes are those of one device, and shardings still those of the whole.
        return (
            super().applies_to(context)
            and not context.module.is_scheduled
            and not context.is_optimized
            and not is_partitioned(context.module)
        )

    def check_module(self, context: Context) -> Iterator[Report]:
        if int(context.module.attributes.get("num_partitions", 1)) < 2:  # the module has one partition
            return
        for instruction in context.census.instructions:
            sharding, shape = instruction.sharding, instruction.shape
            if (
                shape is None or not shape.is_array or not shape.is_static
            ):  # it is not an array of static shape
                continue
            if not isinstance(sharding, OpSharding | NamedSharding):  # it has no sharding
                continue
            tiles = sharding.tile_dimensions
            if len(tiles) != shape.rank or 0 in tiles:  # its sharding is not by dimension
                continue
            padded = 1
            for size, count in zip(shape.dimensions, tiles, strict=True):
                padded *= -(-size // count) * count
            if not shape.element_count or padded <= shape.element_count:  # its sharding divides it evenly
                continue
            size = size_of(shape.without_layout())
            waste = size * (padded - shape.element_count) // shape.element_count
            uneven = [f"{d} over {n}" for d, n in zip(shape.dimensions, tiles, strict=True) if d % n]
            if (
                padded - shape.element_count >= self.share * padded and waste >= self.min_bytes
            ):  # its padding is too small
                yield Report(
                    instruction,
                    f"{shape.without_layout()} is sharded unevenly ({', '.join(uneven)}): "
                    f"devices store and compute {byte_text(waste)} of padding",
                    "make the dimension a multiple of the mesh axis size, or shard another dimension",
                    waste,
                )
