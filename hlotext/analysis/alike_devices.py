"""Devices that do identical work: no sharding gives them different data, and no operation asks which device it runs on."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hlotext.analysis.census import census
from hlotext.analysis.communication import communications
from hlotext.analysis.devices import devices_of, participant_groups, shardings_of, shardy_text
from hlotext.analysis.facts import fact
from hlotext.analysis.meshes import DeviceMesh, shardy_meshes
from hlotext.analysis.shards import is_partitioned
from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.enums import ShardingType
from hlotext.ir.values.named_sharding import NamedSharding
from hlotext.ir.values.sharding import OpSharding, Sharding
from hlotext.ir.values.tile_assignment import MOST_DEVICES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = late_module("numpy")

_OWN = traits.DEVICE_IDS | traits.HOST_EFFECTS
"""Opcodes whose result, or what the host makes of it, may differ between devices with equal arguments."""
_SHARDY = "xla.sdy."
_NAME = re.compile(r'"([^"\\]*)\\*"')


@fact
def alike_devices(module: Module) -> tuple[tuple[int, ...], ...] | None:
    """Returns groups of devices, all of one size, that do identical work, or None if there are none or this is unknown.

    Before partitioning, this follows from the shardings: propagation (GSPMD, Shardy) adds no mesh axis that none of
    them uses. After partitioning, it is only known if every argument kept its sharding.
    """
    devices = devices_of(module)
    count = devices.total
    if devices.replicas != 1 or count is None or not 1 < count <= MOST_DEVICES:
        return None
    if any(opcode in census(module).by_opcode for opcode in _OWN):
        return None
    if is_partitioned(module) and any(
        parameter.sharding is None for parameter in module.entry.parameters if parameter.shape is not None
    ):
        return None
    classes = np.zeros(count, np.int64)
    for key in itertools.chain(_of_shardings(module, count), _of_axes(module, count)):
        if key is None:
            return None
        classes = np.unique(classes * (1 + int(key.max())) + key, return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(classes)
    if sizes.min() != sizes.max() or sizes[0] == 1:
        return None
    order = np.argsort(classes, kind="stable").reshape(len(sizes), -1)
    groups = tuple(sorted(tuple(map(int, row)) for row in order))
    return None if _is_joined(module, classes) else groups


def _of_shardings(module: Module, count: int) -> Iterator[NDArray[np.int64] | None]:
    """The tile that each device holds, for each sharding of the module; None if they all may hold something else."""
    for sharding in dict.fromkeys(one.without_metadata() for one in shardings_of(module)):
        yield _tiles(sharding, count)


def _tiles(sharding: Sharding, count: int) -> NDArray[np.int64] | None:
    if isinstance(sharding, NamedSharding):
        try:
            sharding = sharding.without_mesh()
        except ValueError:
            return None
    if not isinstance(sharding, OpSharding):
        return None
    if sharding.is_replicated:
        return np.zeros(count, np.int64)
    tiles = sharding.tile_assignment
    if tiles is None or math.prod(tiles.dimensions) != count or tiles.num_devices != count:
        return None
    array = len(sharding.tile_dimensions)
    kept = [
        size if n < array or sharding.subgroup_types[n - array] is not ShardingType.REPLICATED else 1
        for n, size in enumerate(tiles.dimensions)
    ]
    numbers = np.arange(math.prod(kept)).reshape(kept)
    return _by_device(tiles.devices(), np.broadcast_to(numbers, tiles.dimensions).reshape(-1))


def _by_device(order: Iterable[int], places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The place of each device, given the devices in the order of the places; None if that is no order of all devices."""
    devices = list(order)
    if sorted(devices) != list(range(places.size)):
        return None
    key = np.empty(places.size, np.int64)
    key[devices] = places
    return key


def _of_axes(module: Module, count: int) -> Iterator[NDArray[np.int64] | None]:
    """The place of each device along the axes that Shardy's notes name, by mesh."""
    notes = {
        value
        for one in census(module).attribute_sets
        for name, value in one.frontend_attributes.items()
        if name.startswith(_SHARDY) and name != f"{_SHARDY}manual_axes" and isinstance(value, str)
    }
    used = {name for note in notes for name in _NAME.findall(note)}
    for mesh in shardy_meshes(shardy_text(module)) if used else ():
        if mesh.num_devices == count:
            yield from (_places(mesh, name) for name in mesh.names if name in used)


def _places(mesh: DeviceMesh, axis: str) -> NDArray[np.int64] | None:
    along = np.indices(mesh.sizes)[mesh.names.index(axis)].reshape(-1)
    return along if mesh.device_order is None else _by_device(mesh.device_order, along)


def _is_joined(module: Module, classes: NDArray[np.int64]) -> bool:
    """True if a collective joins devices that are alike: a part written by hand, which means them to differ."""
    for one in communications(module):
        groups = one.pairs if one.pairs is not None else participant_groups(module, one.instruction)
        if groups is None:
            return True
        for group in groups:
            members = set(group)
            if len({int(classes[device]) for device in members if 0 <= device < classes.size}) < len(members):
                return True
    return False
