"""Meshes, shardings and replica groups to and from their protos, as `HloSharding::FromProto` and its like do it."""

from __future__ import annotations

import math
from typing import Any

from hlotext.ir.values.enums import ShardingType
from hlotext.ir.values.mesh import AxisRef, Mesh, MeshAxis, SubAxis
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.named_sharding import DimensionSharding, NamedSharding
from hlotext.ir.values.replica_groups import (
    IotaReplicaGroupList,
    MeshAxesReplicaGroupList,
    ReplicaGroupList,
    ReplicaGroups,
)
from hlotext.ir.values.sharding import OpSharding, ShardGroup, Sharding, TupleSharding
from hlotext.ir.values.tile_assignment import DeviceList, IotaTileAssignment
from hlotext.proto import pool
from hlotext.proto.errors import ProtoError
from hlotext.proto.metadata import read_metadata, write_metadata
from hlotext.proto.pool import Classes, raw
from hlotext.proto.shapes import MAX_DEPTH, decoded

REDUCTION = "sdy::reduction_op"
"""Metadata of that type in a sharding's proto is no metadata, but says how unreduced parts are reduced."""


# ---- from protos


def read_sharding(raw: bytes, classes: Classes, depth: int = 0) -> Sharding:
    """Parses an `OpSharding`. Raises ProtoError if it is invalid."""
    if depth > MAX_DEPTH:
        raise ProtoError(f"shardings nest deeper than {MAX_DEPTH} levels")
    m = decoded(classes, "OpSharding", raw)
    if m.HasField("named_sharding"):
        return _named(m.named_sharding, classes)
    type_ = _type(m.type)
    if type_ is ShardingType.TUPLE:
        return TupleSharding(tuple([read_sharding(part, classes, depth + 1) for part in m.tuple_shardings]))
    found = _metadata(m.metadata, classes)
    metadata = tuple([one for one in found if one.op_type != REDUCTION])
    # A sum goes without saying; other reductions have no place but the metadata, where text has them too.
    metadata += tuple(
        [one for one in found if one.op_type == REDUCTION and one.op_name in ("MAX", "MIN")][-1:]
    )
    group = ShardGroup(m.shard_group_id, bool(m.shard_group_type)) if m.is_shard_group else None
    if type_ is ShardingType.MAXIMAL:
        if len(m.tile_assignment_devices) != 1:
            raise ProtoError(f"a maximal sharding has {len(m.tile_assignment_devices)} devices")
        return OpSharding(type_, m.tile_assignment_devices[0], shard_group=group, metadata=metadata)
    if type_ is not ShardingType.OTHER:
        return OpSharding(type_, shard_group=group, metadata=metadata)
    devices, reshape = tuple(m.tile_assignment_devices), tuple(m.iota_reshape_dims)
    if bool(devices) == bool(reshape):
        raise ProtoError("a tiled sharding has either devices or an iota")
    if len(devices) == 1 or (reshape and all(size == 1 for size in reshape)):
        return OpSharding(ShardingType.REPLICATED, shard_group=group, metadata=metadata)
    sizes = tuple(m.tile_assignment_dimensions)
    tiles: DeviceList | IotaTileAssignment = (
        _iota(sizes, reshape, tuple(m.iota_transpose_perm)) if reshape else DeviceList(sizes, devices)
    )
    if not sizes or min(sizes) <= 0 or math.prod(sizes) != tiles_in(tiles):
        raise ProtoError(f"a sharding has tiles [{','.join(map(str, sizes))}] for {tiles_in(tiles)} devices")
    last = tuple(map(_type, m.last_tile_dims)) or None
    if last is not None and len(last) > len(sizes):
        raise ProtoError("a sharding has more subgroups than dimensions of tiles")
    return OpSharding(
        type_, None, tiles, m.replicate_on_last_tile_dim and last is None, last, group, metadata
    ).canonical()


def tiles_in(tiles: DeviceList | IotaTileAssignment) -> int:
    """Returns the number of device ids."""
    return len(tiles.device_ids) if isinstance(tiles, DeviceList) else tiles.num_devices


def _iota(sizes: tuple[int, ...], reshape: tuple[int, ...], order: tuple[int, ...]) -> IotaTileAssignment:
    if min(reshape) <= 0 or sorted(order) != list(range(len(reshape))):
        raise ProtoError(f"an iota has sizes {list(reshape)} and order {list(order)}")
    return IotaTileAssignment(sizes, reshape, order)


def _type(number: int) -> ShardingType:
    word = pool.enum_names("ShardingType").get(number)
    if word is None:
        raise ProtoError(f"unknown sharding type {number}")
    return ShardingType(word.lower())


def _metadata(raws: Any, classes: Classes) -> list[Metadata]:
    return [read_metadata(raw, classes, []) or Metadata() for raw in raws]


def read_mesh(raw: bytes, classes: Classes) -> Mesh:
    """Parses a serialized `MeshProto`. Raises ProtoError if it is invalid."""
    m = decoded(classes, "MeshProto", raw)
    axes = tuple(
        [MeshAxis(axis.name, axis.size) for axis in (decoded(classes, "MeshAxis", one) for one in m.axes)]
    )
    ids = tuple(m.device_ids)
    if not axes:
        if len(ids) > 1:
            raise ProtoError("a mesh without axes has more than one device")
        return Mesh(device_id=ids[0]) if ids else Mesh()
    if any(axis.size <= 0 for axis in axes):
        raise ProtoError("an axis of a mesh has no devices")
    sizes = tuple(axis.size for axis in axes)
    if not ids:
        if not m.HasField("iota_transform"):
            return Mesh(axes)
        iota = decoded(classes, "IotaTransform", m.iota_transform)
        tiles = _iota(sizes, tuple(iota.reshape_dims) or (0,), tuple(iota.transpose_perm))
        if tiles.num_devices != math.prod(sizes):
            raise ProtoError(f"a mesh of {math.prod(sizes)} devices names {tiles.num_devices}")
        return Mesh(axes, tiles)
    if len(ids) != math.prod(sizes):
        raise ProtoError(f"a mesh of {math.prod(sizes)} devices names {len(ids)}")
    return Mesh(axes, DeviceList(sizes, ids))


def _axes(raws: Any, mesh: Mesh, classes: Classes) -> tuple[AxisRef, ...]:
    found = []
    for serialized in raws:
        m = decoded(classes, "AxisRefProto", serialized)
        if not 0 <= m.mesh_axis_index < len(mesh.axes):
            raise ProtoError(f"the mesh has no axis {m.mesh_axis_index}")
        sub = decoded(classes, "SubAxis", m.sub_axis_info) if m.HasField("sub_axis_info") else None
        part = SubAxis(sub.pre_size, sub.size) if sub is not None else None
        if part is not None and (part.pre_size <= 0 or part.size <= 0):
            raise ProtoError("a part of an axis has no devices")
        found.append(AxisRef(mesh.axes[m.mesh_axis_index].name, part))
    return tuple(found)


def _named(raw: bytes, classes: Classes) -> NamedSharding:
    m = decoded(classes, "NamedShardingProto", raw)
    mesh = read_mesh(m.mesh, classes)
    dimensions = []
    for one in m.dim_shardings:
        part = decoded(classes, "DimensionSharding", one)
        dimensions.append(DimensionSharding(_axes(part.axes, mesh, classes), part.is_closed))
    return NamedSharding(
        mesh,
        tuple(dimensions),
        _axes(m.replicated_axes, mesh, classes),
        _axes(m.unreduced_axes, mesh, classes),
        _axes(m.manual_axes, mesh, classes),
        tuple(_metadata(m.metadata, classes)),
        {1: "max", 2: "min"}.get(m.reduction_op, ""),
    )


def read_group_list(raw: bytes, classes: Classes) -> ReplicaGroupList:
    """Parses a serialized `CollectiveDeviceListProto`. Raises ProtoError if it is invalid."""
    return read_groups(decoded(classes, "CollectiveDeviceListProto", raw).replica_groups, classes)


def read_groups(raws: Any, classes: Classes) -> ReplicaGroupList:
    """Parses serialized `ReplicaGroup` messages. Raises ProtoError if one is invalid."""
    return ReplicaGroupList(tuple([tuple(decoded(classes, "ReplicaGroup", raw).replica_ids) for raw in raws]))


def read_iota_groups(raw: bytes, classes: Classes) -> IotaReplicaGroupList:
    """Parses a serialized `IotaReplicaGroupListProto`. Raises ProtoError if it is invalid."""
    m = decoded(classes, "IotaReplicaGroupListProto", raw)
    sizes = (m.num_replica_groups, m.num_devices_per_group)
    iota = _iota(sizes, tuple(m.iota_reshape_dims) or (0,), tuple(m.iota_transpose_perm))
    if min(sizes) < 0 or math.prod(sizes) != iota.num_devices:
        raise ProtoError(f"{sizes[0]} groups of {sizes[1]} devices are not {iota.num_devices} devices")
    return IotaReplicaGroupList(iota)


def read_mesh_groups(raw: bytes, classes: Classes) -> MeshAxesReplicaGroupList:
    """Parses a serialized `MeshAxesReplicaGroupListProto`. Raises ProtoError if it is invalid."""
    m = decoded(classes, "MeshAxesReplicaGroupListProto", raw)
    mesh = read_mesh(m.mesh, classes)
    return MeshAxesReplicaGroupList(mesh, _axes(m.axes, mesh, classes))


# ---- to protos


def write_sharding(sharding: Sharding, classes: Classes) -> bytes:
    """Returns a sharding as serialized `OpSharding`.

    Raises ProtoError for an axis that the mesh lacks and for a sharding that protos cannot represent.
    """
    if isinstance(sharding, TupleSharding):
        parts = [write_sharding(part, classes) for part in sharding.elements]
        return raw(classes.OpSharding(type=_number(ShardingType.TUPLE), tuple_shardings=parts))
    if isinstance(sharding, NamedSharding):
        return raw(classes.OpSharding(named_sharding=_write_named(sharding, classes)))
    if not isinstance(sharding, OpSharding):
        raise ProtoError(f"a proto cannot represent the sharding {sharding}")
    sharding = sharding.canonical()
    m = classes.OpSharding(type=_number(sharding.type))
    m.metadata.extend([write_metadata(one, classes) for one in sharding.metadata])
    is_unreduced = (
        sharding.type is ShardingType.UNREDUCED or ShardingType.UNREDUCED in sharding.subgroup_types
    )
    if is_unreduced and not any(one.op_type == REDUCTION for one in sharding.metadata):
        m.metadata.append(write_metadata(Metadata(op_type=REDUCTION, op_name="SUM"), classes))
    if sharding.maximal_device is not None:
        m.tile_assignment_devices.append(sharding.maximal_device)
    if sharding.tile_assignment is not None:
        m.tile_assignment_dimensions.extend(sharding.tile_assignment.dimensions)
        _write_tiles(m, sharding.tile_assignment)
        m.replicate_on_last_tile_dim = sharding.replicate_on_last_tile_dim
        m.last_tile_dims.extend([_number(type_) for type_ in sharding.last_tile_dims or ()])
    if sharding.shard_group is not None:
        m.is_shard_group = True
        m.shard_group_id = sharding.shard_group.shard_group_id
        m.shard_group_type = int(sharding.shard_group.shard_like)
    return raw(m)


def _write_tiles(m: Any, tiles: DeviceList | IotaTileAssignment) -> None:
    if isinstance(tiles, IotaTileAssignment):
        m.iota_reshape_dims.extend(tiles.reshape_dims)
        m.iota_transpose_perm.extend(tiles.transpose_perm)
    else:
        m.tile_assignment_devices.extend(tiles.device_ids)


def _number(type_: ShardingType) -> int:
    return pool.enum_numbers("ShardingType")[type_.name]


def write_mesh(mesh: Mesh, classes: Classes) -> bytes:
    """Returns a mesh as serialized `MeshProto`."""
    mesh = mesh.canonical()
    m = classes.MeshProto()
    m.axes.extend([raw(classes.MeshAxis(name=axis.name, size=axis.size)) for axis in mesh.axes])
    if mesh.device_id is not None:
        m.device_ids.append(mesh.device_id)
    elif isinstance(mesh.device_assignment, DeviceList):
        m.device_ids.extend(mesh.device_assignment.device_ids)
    elif mesh.device_assignment is not None:
        iota = mesh.device_assignment
        m.iota_transform = raw(
            classes.IotaTransform(reshape_dims=iota.reshape_dims, transpose_perm=iota.transpose_perm)
        )
    return raw(m)


def _write_axes(axes: tuple[AxisRef, ...], mesh: Mesh, classes: Classes) -> list[bytes]:
    found = []
    for axis in axes:
        try:
            m = classes.AxisRefProto(mesh_axis_index=mesh.axis_number(axis.name))
        except ValueError as error:
            raise ProtoError(str(error)) from None
        if axis.sub_axis_info is not None:
            sub = axis.sub_axis_info
            m.sub_axis_info = raw(classes.SubAxis(pre_size=sub.pre_size, size=sub.size))
        found.append(raw(m))
    return found


def _write_named(sharding: NamedSharding, classes: Classes) -> bytes:
    mesh = sharding.mesh
    m = classes.NamedShardingProto(
        mesh=write_mesh(mesh, classes),
        replicated_axes=_write_axes(sharding.replicated_axes, mesh, classes),
        unreduced_axes=_write_axes(sharding.unreduced_axes, mesh, classes),
        manual_axes=_write_axes(sharding.manual_axes, mesh, classes),
        metadata=[write_metadata(one, classes) for one in sharding.metadata],
        reduction_op={"max": 1, "min": 2}.get(sharding.unreduced_kind, 0),
    )
    for dimension in sharding.dim_shardings:
        axes = _write_axes(dimension.axes, mesh, classes)
        m.dim_shardings.append(raw(classes.DimensionSharding(axes=axes, is_closed=dimension.is_closed)))
    return raw(m)


def write_replica_groups(groups: ReplicaGroups, classes: Classes) -> tuple[int, bytes]:
    """Returns the number of the field of `HloInstructionProto` that holds groups of this form, and its bytes.

    Raises ProtoError for an axis that the mesh lacks.
    """
    groups = groups.canonical()
    if isinstance(groups, IotaReplicaGroupList):
        iota = groups.iota
        m = classes.IotaReplicaGroupListProto(
            num_replica_groups=groups.group_count,
            num_devices_per_group=groups.group_size,
            iota_reshape_dims=iota.reshape_dims,
            iota_transpose_perm=iota.transpose_perm,
        )
        return 92, raw(m)
    if isinstance(groups, MeshAxesReplicaGroupList):
        axes = _write_axes(groups.axes, groups.mesh, classes)
        mesh = write_mesh(groups.mesh, classes)
        return 93, raw(classes.MeshAxesReplicaGroupListProto(mesh=mesh, axes=axes))
    assert isinstance(groups, ReplicaGroupList)
    listed = [raw(classes.ReplicaGroup(replica_ids=group)) for group in groups.replica_groups]
    return 87, raw(classes.CollectiveDeviceListProto(replica_groups=listed))
