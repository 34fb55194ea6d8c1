"""Shardings that name the axes of a mesh."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from hlotext.ir.values.enums import ShardingType
from hlotext.ir.values.mesh import AxisRef, Mesh, MeshAxis, check_axes, split_axes
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import OpSharding, Sharding
from hlotext.ir.values.tile_assignment import MOST_DEVICES, DeviceList, IotaTileAssignment
from hlotext.ir.values.tiles import Slices
from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class DimensionSharding(Value):
    """The mesh axes that shard one dimension, most major first (`DimensionSharding`)."""

    axes: tuple[AxisRef, ...] = ()
    is_closed: bool = True
    """False where the compiler may add axes, printed `?`."""

    def __str__(self) -> str:
        parts = [str(axis) for axis in self.axes]
        if not self.is_closed:
            parts.append("?")
        return f"{{{', '.join(parts)}}}"


@attrs.frozen(repr=False)
class NamedSharding(Sharding):
    """A sharding by mesh axes: `{mesh['a'=2,'b'=4], [{'a'}, {'b':(1)2, ?}], replicated={'b':(2)2}}`.

    Without dimensions it is a single word for the whole value: `{mesh['a'=2], replicated}`.
    """

    mesh: Mesh
    dim_shardings: tuple[DimensionSharding, ...] = ()
    """One for each dimension of the array; empty for the short forms."""
    replicated_axes: tuple[AxisRef, ...] = ()
    """Axes that the compiler may not use to cut a dimension."""
    unreduced_axes: tuple[AxisRef, ...] = ()
    """Axes along which each device holds a part of a result that is not yet reduced."""
    manual_axes: tuple[AxisRef, ...] = ()
    """Axes that the program shards manually."""
    metadata: tuple[Metadata, ...] = ()
    unreduced_kind: str = ""
    """`max` or `min` where `unreduced_axes` are not summed; for a sum `sum`, or empty if the text has no word."""
    names_unreduced: bool = attrs.field(default=False, eq=False)
    """A short `unreduced` names its axes where the mesh has others, of size 1: XLA does since July 2026, and before
    does not read it."""

    @property
    def is_replicated(self) -> bool:
        return not (
            self.is_maximal
            or any(dimension.axes for dimension in self.dim_shardings)
            or self.unreduced_axes
            or self.manual_axes
        )

    @property
    def is_maximal(self) -> bool:
        return self.mesh.is_maximal

    @property
    def is_manual(self) -> bool:
        return self._covers_mesh(self.manual_axes)

    @property
    def is_unreduced(self) -> bool:
        return self._covers_mesh(self.unreduced_axes)

    def _covers_mesh(self, axes: tuple[AxisRef, ...]) -> bool:
        """True if these are all axes of the mesh in order; axes of size 1 may be missing."""
        wanted = [axis.name for axis in self.mesh.axes if axis.size != 1 or AxisRef(axis.name) in axes]
        return bool(axes) and [AxisRef(name) for name in wanted] == list(axes)

    @property
    def tile_dimensions(self) -> tuple[int, ...]:
        """Number of tiles along each dimension of the array; empty for the short forms."""
        return tuple(math.prod(self.mesh.axis_size(axis) for axis in d.axes) for d in self.dim_shardings)

    @property
    def num_tiles(self) -> int:
        """Number of distinct tiles of the array."""
        return math.prod(self.tile_dimensions)

    def all_axes(self) -> tuple[AxisRef, ...]:
        """Returns all axes that the sharding refers to, in text order."""
        cut = tuple(axis for dimension in self.dim_shardings for axis in dimension.axes)
        return cut + self.replicated_axes + self.unreduced_axes + self.manual_axes

    @property
    def num_devices(self) -> int | None:
        return self.mesh.num_devices or None

    @property
    def replication(self) -> int | None:
        return self.without_mesh().replication if not self.is_replicated else self.num_devices

    def without_mesh(self) -> OpSharding:
        """Returns the equivalent tile sharding, with unused axes replicated (`HloSharding::V3ToV2Sharding`).

        Manual and unreduced axes become subgroups, in this order. Raises ValueError for axes that the mesh does not
        have or that overlap, and for a mesh with the wrong number of device ids.
        """
        mesh = self.mesh
        if mesh.device_id is not None:
            return OpSharding(ShardingType.MAXIMAL, mesh.device_id, metadata=self.metadata)
        if self.is_replicated:
            return OpSharding(ShardingType.REPLICATED, metadata=self.metadata)
        cut = tuple(axis for dimension in self.dim_shardings for axis in dimension.axes)
        named = cut + self.manual_axes + self.unreduced_axes
        check_axes(mesh, named)
        sizes, places = split_axes(mesh, named)
        others = tuple(place for place in range(len(sizes)) if place not in places)
        dimensions = list(self.tile_dimensions)
        types = []
        for axes, type_ in (
            (self.manual_axes, ShardingType.MANUAL),
            (self.unreduced_axes, ShardingType.UNREDUCED),
        ):
            if axes:
                dimensions.append(math.prod(mesh.axis_size(axis) for axis in axes))
                types.append(type_)
        sharing = math.prod(sizes[place] for place in others)
        if sharing > 1:
            dimensions.append(sharing)
            types.append(ShardingType.REPLICATED)
        positions = IotaTileAssignment(tuple(dimensions), sizes, places + others)
        tiles: DeviceList | IotaTileAssignment = positions
        if mesh.device_assignment is not None:
            tiles = _assigned(positions, mesh.device_assignment)
        sharding = OpSharding(
            ShardingType.OTHER, None, tiles, last_tile_dims=tuple(types) or None, metadata=self.metadata
        )
        return sharding.canonical()

    def _shard_of(self, shape: Shape) -> Shape:
        if not shape.is_array or self.is_replicated or self.is_maximal:
            return shape
        return self.without_mesh()._shard_of(shape)

    def device_indices(self, shape: Shape, num_devices: int | None = None) -> Mapping[int, Slices]:
        if (
            self.num_devices is not None
            and num_devices not in (None, self.num_devices)
            and not self.is_maximal
        ):
            raise ValueError(f"{self.mesh} has {self.num_devices} devices, not {num_devices}")
        count = num_devices if num_devices is not None else self.num_devices
        return self.without_mesh().device_indices(shape, count)

    def without_metadata(self) -> NamedSharding:
        return attrs.evolve(self, metadata=())

    def canonical(self) -> NamedSharding:
        """Returns the sharding with a canonical mesh, and without the word `sum`, the default for unreduced axes."""
        kind = "" if self.unreduced_kind == "sum" else self.unreduced_kind
        return attrs.evolve(self, mesh=self.mesh.canonical(), unreduced_kind=kind)

    def __str__(self) -> str:
        parts = [str(self.mesh), *self._shardings_text()]
        if self.metadata:
            parts.append(f"metadata={{{', '.join(map(str, self.metadata))}}}")
        return f"{{{', '.join(parts)}}}"

    def _shardings_text(self) -> list[str]:
        """Text between mesh and metadata, one string for each part."""
        if self.is_maximal:
            return []
        if not self.dim_shardings:
            if not (self.replicated_axes or self.unreduced_axes or self.manual_axes):
                return ["replicated"]
            if self.is_unreduced:
                return [self._unreduced_text()]
            if self.is_manual:
                return ["manual"]
        parts = [f"[{', '.join(map(str, self.dim_shardings))}]"]
        for name, axes in (
            ("replicated=", self.replicated_axes),
            (f"unreduced={self.unreduced_kind}", self.unreduced_axes),
            ("manual=", self.manual_axes),
        ):
            if axes:
                parts.append(f"{name}{{{', '.join(map(str, axes))}}}")
        return parts

    def _unreduced_text(self) -> str:
        word = f"unreduced={self.unreduced_kind}" if self.unreduced_kind else "unreduced"
        is_partial = len(self.unreduced_axes) < len(self.mesh.axes)
        if not is_partial or not (self.unreduced_kind or self.names_unreduced):
            return word
        return f"{word}{{{', '.join(map(str, self.unreduced_axes))}}}"


def with_mesh(sharding: OpSharding) -> NamedSharding:
    """Returns the equivalent sharding by mesh axes, named `axis_0`, `axis_1`, ... from the most major one.

    Each part of an iota with its own stride becomes an axis; an explicit device list becomes the mesh's device ids.
    Raises ValueError for unknown shardings, if the numbers of tiles and devices differ, and for an explicit list of
    more than 2^20 devices.
    """
    tiles = sharding.tile_assignment
    if sharding.maximal_device is not None:
        return NamedSharding(Mesh(device_id=sharding.maximal_device), metadata=sharding.metadata)
    if tiles is None:
        return _without_tiles(sharding)
    if tiles.num_devices != math.prod(tiles.dimensions):
        raise ValueError(f"{sharding} does not assign every tile to a device")
    pieces = tiles.pieces() if isinstance(tiles, IotaTileAssignment) else None
    assignment = None
    if pieces is None:
        if tiles.num_devices > MOST_DEVICES:
            raise ValueError(f"there are more than {MOST_DEVICES:,} devices")
        ids = tiles.devices()
        strides = [1]
        for size in tiles.dimensions[:0:-1]:
            strides.append(strides[-1] * size)
        pieces = [
            [(size, stride)] if size > 1 else []
            for size, stride in zip(tiles.dimensions, reversed(strides), strict=True)
        ]
        assignment = DeviceList((math.prod(tiles.dimensions),), tuple(ids))
    axes = sorted({piece for part in pieces for piece in part}, key=lambda piece: -piece[1])
    names = {piece: AxisRef(f"axis_{number}") for number, piece in enumerate(axes)}
    mesh = Mesh(tuple(MeshAxis(names[piece].name, piece[0]) for piece in axes), assignment)
    rank = len(sharding.tile_dimensions)
    cut = tuple(DimensionSharding(tuple(names[piece] for piece in part)) for part in pieces[:rank])
    subgroups: dict[ShardingType, tuple[AxisRef, ...]] = {}
    for type_, part in zip(sharding.subgroup_types, pieces[rank:], strict=True):
        subgroups[type_] = subgroups.get(type_, ()) + tuple(names[piece] for piece in part)
    return NamedSharding(
        mesh,
        cut,
        unreduced_axes=subgroups.get(ShardingType.UNREDUCED, ()),
        manual_axes=subgroups.get(ShardingType.MANUAL, ()),
        metadata=sharding.metadata,
    )


def _without_tiles(sharding: OpSharding) -> NamedSharding:
    if not sharding.is_replicated:
        raise ValueError(f"{sharding} does not name devices")
    return NamedSharding(Mesh(), metadata=sharding.metadata)


def _assigned(
    positions: IotaTileAssignment, assignment: DeviceList | IotaTileAssignment
) -> DeviceList | IotaTileAssignment:
    """The device ids of a mesh in the order of positions in it. Raises ValueError if there are not as many."""
    count = positions.num_devices
    if assignment.num_devices != count or count > MOST_DEVICES:
        raise ValueError(f"{assignment.num_devices} device ids do not match a mesh of {count} devices")
    if isinstance(assignment, IotaTileAssignment):
        grid = attrs.evolve(assignment, dimensions=positions.reshape_dims)
        moved = grid.transposed(positions.transpose_perm, positions.dimensions)
        if moved is not None:
            return moved
    ids = tuple(assignment.devices())
    if len(ids) != count:
        raise ValueError(f"{len(ids)} device ids do not match a mesh of {count} devices")
    return DeviceList(positions.dimensions, tuple(ids[place] for place in positions.devices()))
