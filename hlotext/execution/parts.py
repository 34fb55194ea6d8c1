"""Arrays cut into what devices hold, and put together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hlotext.execution.errors import NotExecutable
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.enums import ShardingType
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import OpSharding, Sharding

Array = np.ndarray[Any, Any]


def cut(array: Array, whole: Shape, sharding: Sharding | None, part: tuple[int, ...], devices: int) -> Array:
    """Returns the shard of an array on each device, stacked along a new first dimension; the last shards are padded
    with zeros.

    Args:
        array: The whole array.
        whole: Its shape, as the sharding was written for it.
        sharding: How it is distributed; None for an array that every device holds whole.
        part: The sizes of one part.
        devices: How many there are.

    Returns:
        An array with one more dimension.

    Raises:
        NotExecutable: The sharding does not determine what a device holds, or something of another size.
    """
    slices = _slices(whole, sharding, part, devices)
    found: Array = np.zeros((devices, *part), array.dtype)
    for device, where in slices.items():
        piece = array[where] if where else array
        found[device, ...][tuple(slice(0, size) for size in piece.shape)] = piece
    return found


def joined(parts: Array, whole: Shape, sharding: Sharding | None) -> Array:
    """Joins the shards of an array, which are stacked along the first dimension. Raises NotExecutable as `cut` does."""
    devices, part = parts.shape[0], parts.shape[1:]
    found: Array = np.zeros(whole.dimensions, parts.dtype)
    for device, where in _slices(whole, sharding, part, devices).items():
        inside = tuple(slice(0, one.stop - one.start) for one in where)
        found[where] = parts[device, ...][inside]
    return found


def _slices(
    whole: Shape, sharding: Sharding | None, part: tuple[int, ...], devices: int
) -> Mapping[int, tuple[slice, ...]]:
    everything = tuple(slice(0, size) for size in whole.dimensions)
    if part == whole.dimensions:
        return dict.fromkeys(range(devices), everything)
    if sharding is None:
        raise NotExecutable(f"{whole} is split into shards of {list(part)}, and the text does not show how")
    try:
        found = dict(sharding.device_indices(whole, devices).items())
    except ValueError as error:
        raise NotExecutable(str(error)) from None
    for where in found.values():
        if any(one.stop - one.start > size for one, size in zip(where, part, strict=True)):
            raise NotExecutable(f"{sharding} does not split {whole} into shards of {list(part)}")
    if len(found) != devices:
        raise NotExecutable(f"{sharding} leaves devices without a shard")
    return found


def leaves(sharding: Sharding | None, shape: Shape) -> Sequence[Sharding | None]:
    """Returns the sharding of each array of a shape, in order; None for each whose sharding is unknown."""
    count = sum(1 for _, leaf in shape.leaves() if leaf.is_array)
    if sharding is None:
        return [None] * count
    if not sharding.is_tuple:
        return [sharding] * count
    found: list[Sharding | None] = []
    pending = list(sharding.tuple_elements)
    while pending:
        one = pending.pop(0)
        if one.is_tuple:
            pending = [*one.tuple_elements, *pending]
        else:
            found.append(one)
    return found if len(found) == count else [None] * count


def pieces(parameter: Instruction, replicas: int, partitions: int) -> list[tuple[int, ...]]:
    """Returns for each array of a parameter the shard that each device holds, as a number: equal numbers, equal arrays.

    Replicas share the arrays that `parameter_replication` marks; partitions share what the sharding replicates. Without
    a sharding every device has an array of its own, except for integer and boolean scalars, which steer loops that all
    devices run alike. Devices are numbered replica by replica.
    """
    shape = parameter.shape
    assert shape is not None
    arrays = [leaf for _, leaf in shape.leaves() if leaf.is_array]
    shared = parameter.attributes.get("parameter_replication") or ()
    found = []
    for number, (array, sharding) in enumerate(zip(arrays, leaves(parameter.sharding, shape), strict=True)):
        type_ = array.element_type
        if sharding is None and not array.dimensions and not (type_.is_floating or type_.is_complex):
            found.append((0,) * (replicas * partitions))
            continue
        tiles = _tiles(sharding, array, partitions)
        has_one = number < len(shared) and shared[number]
        keys = [(0 if has_one else replica, tile) for replica in range(replicas) for tile in tiles]
        numbers = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        found.append(tuple([numbers[key] for key in keys]))
    return found


def _tiles(sharding: Sharding | None, array: Shape, partitions: int) -> Sequence[int]:
    """For each partition the number of its tile; all differ where the sharding is not known."""
    own = range(partitions)
    try:
        plain = sharding.without_mesh().canonical() if sharding is not None else None
    except ValueError:
        return own
    if not isinstance(plain, OpSharding):
        return own
    if plain.is_replicated:
        return (0,) * partitions
    assignment = plain.tile_assignment
    if assignment is None or sorted(assignment.devices()) != list(own):
        return own
    sizes = assignment.dimensions
    kinds = (*(None for _ in array.dimensions), *plain.subgroup_types)
    if len(kinds) != len(sizes):
        return own
    numbers = np.arange(partitions).reshape(sizes)
    for axis, kind in enumerate(kinds):
        if kind is ShardingType.REPLICATED:
            numbers = np.broadcast_to(numbers.take([0], axis), sizes)
    found = [0] * partitions
    for device, tile in zip(assignment.devices(), numbers.ravel().tolist(), strict=True):
        found[device] = tile
    return found
