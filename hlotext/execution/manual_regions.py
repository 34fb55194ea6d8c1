"""Regions of `shard_map` in programs before partitioning: whole arrays cut into what devices take, and joined again.

What stands outside of regions every device computes with whole arrays, all alike.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from hlotext.analysis.devices import shardy_text
from hlotext.analysis.meshes import DeviceMesh, shardy_meshes
from hlotext.execution.errors import NotExecutable
from hlotext.execution.lines import Lines, Plain
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import element_type

_TO_LOCAL = frozenset({"xla.sdy.GlobalToLocalShape", "SPMDFullToShardShape"})
_TO_WHOLE = frozenset({"xla.sdy.LocalToGlobalShape", "SPMDShardToFullShape"})
_MESH = re.compile(r'([\w.$\-]+|"[^"]*")\s*=\s*(#sdy\.mesh<.*?>)(?=\s*[,}])')
_VALUE = re.compile(r"<@(?P<mesh>[\w.$\-]+), \[(?P<dimensions>[^\]]*)\][^<>]*>")
_DIMENSION, _AXIS = re.compile(r"\{([^{}]*)\}"), re.compile(r'"([^"]*)"(:\(\d+\)\d+)?')
_S32, _U32 = element_type("s32"), element_type("u32")

Starts = Sequence[tuple[int, ...]]
"""For each device, where its part of an array begins."""


def is_edge(i: Instruction) -> bool:
    """True for the custom calls that begin or end a manual region (shard_map)."""
    return i.attributes.get("custom_call_target") in _TO_LOCAL | _TO_WHOLE


def has_regions(module: Module) -> bool:
    """True if the module has manual regions, so that it is unpartitioned outside of them."""
    return any(i.opcode == "custom-call" and is_edge(i) for i in module.instructions())


def edge(lines: Lines, i: Instruction, operands: Sequence[Plain], shape: Shape, devices: int) -> Plain:
    """Emits lines that cut arrays into each device's shards where a region begins, or join them where it ends.

    Raises NotExecutable on one device, and if the shardings do not determine the shards.
    """
    if devices == 1:
        raise NotExecutable("a shard_map runs on the devices of its mesh, not with devices=1")
    is_local = i.attributes["custom_call_target"] in _TO_LOCAL
    parts = shape.tuple_shapes if shape.is_tuple else (shape,)
    found = []
    for number, (value, part) in enumerate(zip(operands, parts, strict=True)):
        whole, local = (value.shape, part) if is_local else (part, value.shape)
        starts = _starts(i, number, whole, local, devices)
        found.append(_cut(lines, value, local, starts) if is_local else _joined(lines, value, whole, starts))
    return lines.tuple(found) if shape.is_tuple else found[0]


def _cut(lines: Lines, value: Plain, local: Shape, starts: Starts) -> Plain:
    if value.sizes == local.dimensions:
        return value
    offsets = [_by_device(lines, numbers) for numbers in zip(*starts, strict=True)]
    sizes = ",".join(map(str, local.dimensions))
    shape = Shape(value.type, local.dimensions)
    return lines.add("dynamic-slice", shape, (value, *offsets), f"dynamic_slice_sizes={{{sizes}}}")


def _by_device(lines: Lines, numbers: Sequence[int]) -> Plain:
    """A number that each device has of its own."""
    if len(set(numbers)) == 1:
        return lines.scalar(_S32, str(numbers[0]))
    table = lines.add("constant", Shape(_S32, (len(numbers),)), (f"{{{', '.join(map(str, numbers))}}}",))
    device = lines.convert(lines.add("replica-id", Shape(_U32)), _S32)
    one = lines.add("dynamic-slice", Shape(_S32, (1,)), (table, device), "dynamic_slice_sizes={1}")
    return lines.reshape(one, ())


def _joined(lines: Lines, value: Plain, whole: Shape, starts: Starts) -> Plain:
    """The array of all parts; of devices with the same part the first one's counts."""
    if value.sizes == whole.dimensions:
        return value
    devices = len(starts)
    group = ",".join(map(str, range(devices)))
    gathered = lines.add(
        "all-gather", Shape(value.type, (devices, *value.sizes)), (lines.reshape(value, (1, *value.sizes)),),
        "dimensions={0}", f"replica_groups={{{{{group}}}}}",
    )  # fmt: skip
    found = lines.zeros(Shape(value.type, whole.dimensions))
    for start, device in {start: device for device, start in reversed([*enumerate(starts)])}.items():
        ranges = ", ".join([f"[{device}:{device + 1}]", *(f"[0:{size}]" for size in value.sizes)])
        one = lines.add("slice", Shape(value.type, (1, *value.sizes)), (gathered,), f"slice={{{ranges}}}")
        offsets = [lines.scalar(_S32, str(offset)) for offset in start]
        part = lines.reshape(one, value.sizes)
        found = lines.add("dynamic-update-slice", found.shape, (found, part, *offsets))
    return found


# ---- where parts begin


def _starts(i: Instruction, number: int, whole: Shape, local: Shape, devices: int) -> Starts:
    """For each device the first element of its part. Raises NotExecutable if the text does not say it."""
    if str(i.attributes["custom_call_target"]).startswith("SPMD"):
        return _of_sharding(i, whole, local, devices)
    notes = i.frontend_attributes
    axes = re.findall(r'"([^"]*)"', notes.get("xla.sdy.manual_axes", ""))
    values = [*_VALUE.finditer(notes.get("xla.sdy.in_shardings", notes.get("xla.sdy.out_shardings", "")))]
    if number >= len(values):
        raise NotExecutable("it does not specify how its arrays are sharded")
    mesh = _meshes(i).get(values[number]["mesh"])
    if mesh is None or mesh.num_devices != devices:
        raise NotExecutable(f"its mesh {values[number]['mesh']} does not have {devices} devices")
    dimensions = [
        _AXIS.findall(text) for text in _DIMENSION.findall(values[number]["dimensions"].replace("\\", ""))
    ]
    if any(part for dimension in dimensions for _, part in dimension):
        raise NotExecutable("it shards an array along part of an axis")
    kept = [[name for name, _ in dimension if name in axes] for dimension in dimensions]
    return [
        _start([_tile(names, mesh, place) for names in kept], whole, local)
        for _, place in sorted(zip(mesh.device_order or range(devices), _places(mesh), strict=True))
    ]


def _meshes(i: Instruction) -> Mapping[str, DeviceMesh]:
    assert i.computation is not None
    assert i.computation.module is not None
    text = shardy_text(i.computation.module).replace("\\", "")
    return {match[1].strip('"'): mesh for match in _MESH.finditer(text) for mesh in shardy_meshes(match[2])}


def _places(mesh: DeviceMesh) -> Iterator[tuple[int, ...]]:
    return itertools.product(*map(range, mesh.sizes))


def _tile(names: Sequence[str], mesh: DeviceMesh, place: Sequence[int]) -> int:
    """The number of the tile of a device along a dimension that these axes cut, the first one most major."""
    found = 0
    for name in names:
        axis = mesh.names.index(name)
        found = found * mesh.sizes[axis] + place[axis]
    return found


def _start(tiles: Sequence[int], whole: Shape, local: Shape) -> tuple[int, ...]:
    found = tuple(tile * size for tile, size in zip(tiles, local.dimensions, strict=True))
    if any(a + b > c for a, b, c in zip(found, local.dimensions, whole.dimensions, strict=True)):
        raise NotExecutable(f"{whole} cannot be split into shards of {list(local.dimensions)}")
    return found


def _of_sharding(i: Instruction, whole: Shape, local: Shape, devices: int) -> Starts:
    """By a sharding: of the whole array, which stands in front of the region, or on what puts it together."""
    holder = i.operands[0] if i.attributes["custom_call_target"] in _TO_LOCAL else i
    if holder.sharding is None:
        raise NotExecutable("it does not specify how its array is sharded")
    try:
        parts = holder.sharding.device_indices(whole, devices)
    except ValueError as error:
        raise NotExecutable(str(error)) from None
    if len(parts) != devices or any(
        one.stop - one.start != size
        for where in parts.values()
        for one, size in zip(where, local.dimensions, strict=True)
    ):
        raise NotExecutable(
            f"{holder.sharding} does not split {whole} into shards of {list(local.dimensions)}"
        )
    return [tuple(one.start for one in parts[device]) for device in range(devices)]
