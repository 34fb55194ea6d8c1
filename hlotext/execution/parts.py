"""Arrays cut into what devices hold, and put together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hlotext.execution.errors import NotExecutable
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import Sharding

Array = np.ndarray[Any, Any]


def cut(array: Array, whole: Shape, sharding: Sharding | None, part: tuple[int, ...], devices: int) -> Array:
    """Shard of an array on each device, stacked along a new first dimension; the last shards are padded with zeros.

    Args:
        array: The whole array.
        whole: Its shape, as the sharding was written for it.
        sharding: How it is distributed; None for an array that every device holds whole.
        part: The sizes of one part.
        devices: How many there are.

    Returns:
        An array with one more dimension.

    Raises:
        NotExecutable: The sharding does not say what a device holds, or something of another size.
    """
    slices = _slices(whole, sharding, part, devices)
    found: Array = np.zeros((devices, *part), array.dtype)
    for device, where in slices.items():
        piece = array[where] if where else array
        found[device, ...][tuple(slice(0, size) for size in piece.shape)] = piece
    return found


def joined(parts: Array, whole: Shape, sharding: Sharding | None) -> Array:
    """The array with these shards. Raises NotExecutable as `cut` does."""
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
        raise NotExecutable(f"{whole} is cut into parts of {list(part)}, and the text does not say how")
    try:
        found = dict(sharding.device_indices(whole, devices).items())
    except ValueError as error:
        raise NotExecutable(str(error)) from None
    for where in found.values():
        if any(one.stop - one.start > size for one, size in zip(where, part, strict=True)):
            raise NotExecutable(f"{whole} by {sharding} has no parts of {list(part)}")
    if len(found) != devices:
        raise NotExecutable(f"{sharding} leaves devices without a part")
    return found


def leaves(sharding: Sharding | None, shape: Shape) -> Sequence[Sharding | None]:
    """The sharding of each array of a shape; None where it is not said."""
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
