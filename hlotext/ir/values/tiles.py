"""An array cut into tiles: how large one is, and which part of the array each device holds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hlotext.ir.values.tile_assignment import MOST_DEVICES

Slices = tuple[slice, ...]
"""The part of an array, `slice(start, stop)` in each dimension; start and stop are equal where there is nothing."""


class Everywhere(Mapping[int, Slices]):
    """Mapping from any device number to the whole array, for shardings that do not determine the number of devices.

    Iteration and `len()` raise ValueError.
    """

    def __init__(self, whole: Slices) -> None:
        self._whole = whole

    def __getitem__(self, device: int) -> Slices:
        if device < 0:
            raise KeyError(device)
        return self._whole

    def __iter__(self) -> Iterator[int]:
        raise ValueError("the sharding does not determine the number of devices")

    def __len__(self) -> int:
        raise ValueError("the sharding does not determine the number of devices")


def shard_sizes(dimensions: Sequence[int], tiles: Sequence[int]) -> tuple[int, ...]:
    """Returns the sizes of a tile, rounding up uneven dimensions (`HloSharding::TileShape`).

    Raises ValueError if `dimensions` and `tiles` have different lengths, or if a number of tiles is below 1.
    """
    if len(dimensions) != len(tiles):
        raise ValueError(
            f"a sharding of {len(tiles)} dimensions does not match an array of {len(dimensions)}"
        )
    if any(count < 1 for count in tiles):
        raise ValueError(f"a dimension cannot be split into {min(tiles)} tiles")
    return tuple(
        -(-size // count) if size > 0 else size for size, count in zip(dimensions, tiles, strict=True)
    )


def device_slices(
    dimensions: Sequence[int], tiles: Sequence[int], devices: Iterable[int]
) -> dict[int, Slices]:
    """Returns the part of an array on each device, by its number in the assignment.

    `devices` are row-major over the tiles, then over the devices that share a tile. The last tiles of a dimension may
    be smaller than the others, or empty. Raises ValueError as `shard_sizes` does, for an unbounded dimension, for the
    wrong number of devices, for a device with two tiles, and for more than 2^20 devices.
    """
    sizes = shard_sizes(dimensions, tiles)
    if any(size < 0 for size in dimensions):
        raise ValueError("an unbounded dimension has no known shards")
    ids = list(itertools.islice(devices, MOST_DEVICES + 1))
    if len(ids) > MOST_DEVICES:
        raise ValueError(f"there are more than {MOST_DEVICES:,} devices")
    count = math.prod(tiles)
    if not ids or len(ids) % count:
        raise ValueError(f"{len(ids)} devices cannot share {count} tiles")
    spans = [
        [slice(min(i * size, whole), min((i + 1) * size, whole)) for i in range(n)]
        for whole, size, n in zip(dimensions, sizes, tiles, strict=True)
    ]
    sharing = len(ids) // count
    found: dict[int, Slices] = {}
    for number, part in enumerate(itertools.product(*spans)):
        for device in ids[number * sharing : (number + 1) * sharing]:
            if found.setdefault(device, part) is not part:
                raise ValueError(f"device {device} would hold two tiles")
    return found
