"""Shardings: the structure of the shape, tiles for each dimension, devices and axes that exist."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.mesh import Mesh, check_axes
from hlotext.ir.values.named_sharding import NamedSharding
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import OpSharding, Sharding
from hlotext.ir.values.tile_assignment import DeviceList, IotaTileAssignment
from hlotext.layout.errors import shorten
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.message_text import plural
from hlotext.semantics.problems import Problem


def check_sharding(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks `sharding` against the result's shape and the module's devices (`HloSharding::Validate`)."""
    sharding, shape = instruction.attributes.get("sharding"), instruction.shape
    if not isinstance(sharding, Sharding) or shape is None:
        return
    for message in dict.fromkeys(_uneven(sharding)):
        yield Problem("V511", message, "sharding")
    if shape.is_token:
        return
    leaves = [leaf for _, leaf in shape.leaves()]
    if sharding.is_tuple and shape.is_tuple:
        elements = sharding.tuple_elements
        # XLA demands nothing of the sharding of an empty tuple.
        if leaves and len(elements) != len(leaves):
            yield Problem(
                "V509",
                f"{plural(len(elements), 'sharding')} for the {len(leaves)} leaves of {shorten(str(shape))}",
                "sharding",
            )
        if len(elements) != len(leaves):
            return
    elif sharding.is_tuple:
        yield Problem("V509", f"a tuple of shardings does not match {shorten(str(shape))}", "sharding")
        return
    else:
        # One sharding holds for all leaves: XLA's reader spreads it over them.
        elements = (sharding,) * len(leaves)
    found: dict[tuple[str, str], None] = {}
    for element, leaf in zip(elements, leaves, strict=True):
        found.update(dict.fromkeys(_problems(element, leaf, facts.num_partitions)))
    for code, message in found:
        yield Problem(code, message, "sharding")


def _uneven(sharding: Sharding) -> Iterator[str]:
    """Tiles and the device numbers given to them, where they differ in number (`HloSharding::FromProto`)."""
    for element in sharding.tuple_elements if sharding.is_tuple else (sharding,):
        tiles = element.tile_assignment if isinstance(element, OpSharding) else None
        if not isinstance(tiles, IotaTileAssignment):
            continue
        count = math.prod(tiles.dimensions)
        if count != tiles.num_devices:
            yield f"{shorten(str(element))} has {plural(count, 'tile')} for {plural(tiles.num_devices, 'device')}"
        elif any(size < 1 for size in tiles.dimensions):
            yield f"{shorten(str(element))} has a dimension with zero tiles"


def _problems(sharding: Sharding, shape: Shape, devices: int) -> Iterator[tuple[str, str]]:
    """Code and message for what is wrong with the sharding of one leaf; 1 device says nothing."""
    if isinstance(sharding, OpSharding):
        yield from _op_sharding(sharding, shape, devices)
    elif isinstance(sharding, NamedSharding):
        yield from _named(sharding, shape, devices)


def _op_sharding(sharding: OpSharding, shape: Shape, devices: int) -> Iterator[tuple[str, str]]:
    device = sharding.maximal_device
    if device is not None and (device < 0 or (devices != 1 and device >= devices)):
        yield "V511", f"no device {device} in a module with {plural(devices, 'partition')}"
    tiles = sharding.tile_assignment
    if tiles is None:
        return
    if len(sharding.tile_dimensions) != shape.rank:
        yield (
            "V510",
            f"{sharding} splits {plural(len(sharding.tile_dimensions), 'dimension')}, but {shape} has {shape.rank}",
        )
    if tiles.num_devices != devices and devices != 1:
        yield (
            _several(tiles.num_devices, devices),
            f"{sharding} is for {plural(tiles.num_devices, 'device')}, but the module has {plural(devices, 'partition')}",
        )
    if isinstance(tiles, DeviceList):
        yield from _listed(tiles, max(devices, _slices(tiles.num_devices, devices)), str(sharding))


def _several(count: int, devices: int) -> str:
    """The code for a sharding over another number of devices: a note where it may be over several slices."""
    return "V511" if _slices(count, devices) == 1 else "V515"


def _slices(count: int, devices: int) -> int:
    """`count` where it is a multiple of the module's devices; else 1."""
    return count if count > devices > 1 and count % devices == 0 else 1


def _listed(tiles: DeviceList, devices: int, text: str) -> Iterator[tuple[str, str]]:
    """Devices that are written out: as many as there are tiles, each once, each of the module."""
    ids = tiles.device_ids
    if len(ids) != tiles.num_devices:
        yield (
            "V511",
            f"{shorten(text)} lists {plural(len(ids), 'device')} for {plural(tiles.num_devices, 'tile')}",
        )
        return
    twice = next((device for device, count in Counter(ids).items() if count > 1), None)
    if twice is not None:
        yield "V511", f"device {twice} appears more than once in {shorten(text)}"
    beyond = next((device for device in ids if device < 0 or (devices != 1 and device >= devices)), None)
    if beyond is not None:
        yield "V511", f"no device {beyond} in a module with {plural(devices, 'partition')}"


def _named(sharding: NamedSharding, shape: Shape, devices: int) -> Iterator[tuple[str, str]]:
    mesh = sharding.mesh
    try:
        check_axes(mesh, sharding.all_axes())
    except ValueError as error:
        yield "V512", str(error)
        return
    is_whole = (
        sharding.is_maximal
        or sharding.is_unreduced
        or sharding.is_manual
        or not (sharding.replicated_axes or sharding.unreduced_axes or sharding.manual_axes)
    )
    if (sharding.dim_shardings or not is_whole) and len(sharding.dim_shardings) != shape.rank:
        yield (
            "V510",
            f"{sharding} splits {plural(len(sharding.dim_shardings), 'dimension')}, but {shape} has {shape.rank}",
        )
    yield from _mesh(mesh, devices)


def _mesh(mesh: Mesh, devices: int) -> Iterator[tuple[str, str]]:
    if mesh.device_id is not None and devices == 1 and mesh.device_id < 0:
        yield "V511", f"no device {mesh.device_id}"
    if devices == 1:
        return
    if mesh.device_id is not None:
        if not 0 <= mesh.device_id < devices:
            yield "V511", f"no device {mesh.device_id} in a module with {plural(devices, 'partition')}"
    elif mesh.axes and mesh.num_devices != devices:
        code = _several(mesh.num_devices, devices)
        yield (
            code,
            f"{mesh} has {plural(mesh.num_devices, 'device')}, but the module has {plural(devices, 'partition')}",
        )
    elif isinstance(mesh.device_assignment, DeviceList):
        yield from _listed(mesh.device_assignment, devices, str(mesh))
