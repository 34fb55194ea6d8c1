"""Shortcuts for meshes with named axes, as JAX's newer partitioner (Shardy) writes them: shardings and replica groups.

What is wrong raises ValueError, or gives a value that is written otherwise; then the grammar says what.
"""

from __future__ import annotations

import re

from hlotext.ir.values.mesh import AxisRef, Mesh, MeshAxis, SubAxis, check_axes
from hlotext.ir.values.named_sharding import DimensionSharding, NamedSharding
from hlotext.ir.values.replica_groups import MeshAxesReplicaGroupList
from hlotext.ir.values.tile_assignment import DeviceList
from hlotext.syntax.fast.shortcuts.plain import iota, numbers
from hlotext.syntax.language.words import integer

_NAME = "'[A-Za-z_][A-Za-z0-9_]*+'"
_AXIS = rf"{_NAME}(?::\([0-9]++\)[0-9]++)?+"
_AXES = rf"\{{((?:{_AXIS}(?:, {_AXIS})*+)?+)\}}"
_MESH = (
    rf"mesh\[((?:{_NAME}=[0-9]++(?:,{_NAME}=[0-9]++)*+)?+)\]"
    r"(?:, device_ids=\(([0-9,]++|\[[0-9,]++\](?:T\([0-9,]++\))?+)\))?+"
)
_DIMENSION = rf"\{{(?:(?:{_AXIS}|\?)(?:, (?:{_AXIS}|\?))*+)?+\}}"
_GROUPS = re.compile(rf"{_MESH} \{{({_AXIS}(?:,{_AXIS})*+)\}}")
_SHARDING = re.compile(
    rf"\{{{_MESH}, (?:(replicated|unreduced|manual)|\[((?:{_DIMENSION}(?:, {_DIMENSION})*+)?+)\]"
    rf"(?:, replicated={_AXES})?+(?:, unreduced={_AXES})?+(?:, manual={_AXES})?+)\}}"
)

_SINGLE_DEVICE = re.compile(r"\{single_device\[device_id=([0-9]++)\]\}")


def along_axes(text: str) -> MeshAxesReplicaGroupList | None:
    """Parses `mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}`; None if the grammar must."""
    match = _GROUPS.fullmatch(text)
    if match is None:
        return None
    mesh, axes = _mesh(match[1], match[2]), _axes(match[3], ",")
    check_axes(mesh, axes)
    return MeshAxesReplicaGroupList(mesh, axes)


def named_sharding(text: str) -> NamedSharding | None:
    """Parses `{mesh['a'=2,'b'=4], [{'a'}, {?}], replicated={'b':(2)2}}` and shorter forms; None if the grammar must."""
    if (single := _SINGLE_DEVICE.fullmatch(text)) is not None:
        return NamedSharding(Mesh(device_id=integer(single[1])))
    match = _SHARDING.fullmatch(text)
    if match is None:
        return None
    axes, device_ids, word, dimensions, *lists = match.groups()
    mesh = _mesh(axes, device_ids)
    replicated, unreduced, manual = (_axes(listed or "") for listed in lists)
    every = tuple(map(AxisRef, mesh.axis_names))
    if word == "unreduced":
        unreduced = every
    elif word == "manual":
        manual = every
    if word == "manual" and not every:
        raise ValueError(f"a mesh without axes cannot be {word}")
    by_dimension = tuple(map(_dimension, dimensions[1:-1].split("}, {"))) if dimensions else ()
    sharding = NamedSharding(mesh, by_dimension, replicated, unreduced, manual)
    check_axes(mesh, sharding.all_axes())
    return sharding


def _mesh(axes: str, device_ids: str | None) -> Mesh:
    pairs = [axis.partition("=") for axis in axes.split(",")] if axes else []
    mesh = Mesh(tuple(MeshAxis(name[1:-1], integer(size)) for name, _, size in pairs))
    sizes = mesh.axis_sizes
    if min(sizes, default=1) < 1 or len(set(mesh.axis_names)) != len(sizes):
        raise ValueError("an axis without devices, or two of one name")
    if device_ids is None:
        return mesh
    if device_ids[0] == "[":
        assignment = iota(f"[{','.join(map(str, sizes))}]<={device_ids}")
        count = assignment.num_devices if assignment is not None else -1
        found = Mesh(mesh.axes, assignment)
    else:
        devices = numbers(device_ids)
        count, found = len(devices), Mesh(mesh.axes, DeviceList(sizes, devices))
    if count != mesh.num_devices:
        raise ValueError("the number of device ids does not match the mesh")
    return found


def _axes(text: str, separator: str = ", ") -> tuple[AxisRef, ...]:
    return tuple(map(_axis, text.split(separator))) if text else ()


def _axis(text: str) -> AxisRef:
    name, _, part = text.partition(":")
    pre_size, _, size = part[1:].partition(")")
    return AxisRef(name[1:-1], SubAxis(integer(pre_size), integer(size)) if part else None)


def _dimension(text: str) -> DimensionSharding:
    closed = text.removesuffix("?")
    return DimensionSharding(_axes(closed.removesuffix(", ")), is_closed=closed == text)
