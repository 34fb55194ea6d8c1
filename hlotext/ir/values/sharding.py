"""Distribution of a value over devices: shardings with tile assignments, and tuples of shardings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import attrs

from hlotext.ir.values.enums import ShardingType
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.shape import Shape, join_indexed
from hlotext.ir.values.tile_assignment import MOST_DEVICES, DeviceList, IotaTileAssignment
from hlotext.ir.values.tiles import Everywhere, Slices, device_slices, shard_sizes
from hlotext.ir.values.value import Value

SUBGROUP_TYPES = (
    ShardingType.MAXIMAL,
    ShardingType.MANUAL,
    ShardingType.UNREDUCED,
    ShardingType.REPLICATED,
)
"""Types of subgroup dimensions, in the order of XLA's canonical form."""

_PLAIN = frozenset({ShardingType.MANUAL, ShardingType.REPLICATED, ShardingType.UNREDUCED})
"""Subgroup types that make a plain word where nothing is tiled."""


class Sharding(Value):
    """Base class of shardings: `OpSharding`, `NamedSharding` and `TupleSharding`."""

    __slots__ = ()

    @property
    def is_tuple(self) -> bool:
        """True for a tuple sharding, with a sharding for each leaf."""
        return False

    @property
    def is_replicated(self) -> bool:
        """True if every device holds the whole value; for a tuple, if this is so for every leaf."""
        return False

    @property
    def is_maximal(self) -> bool:
        """True if a single device holds the whole value."""
        return False

    @property
    def is_manual(self) -> bool:
        """True if the program itself determines what each device holds (`manual`)."""
        return False

    @property
    def is_unreduced(self) -> bool:
        """True if each device holds a partial result that is still to be reduced (`unreduced`)."""
        return False

    @property
    def tuple_elements(self) -> tuple[Sharding, ...]:
        """Shardings of the leaves of a tuple, or this sharding alone if it is not a tuple."""
        return (self,)

    def canonical(self) -> Sharding:
        """Returns the sharding as XLA stores it after parsing."""
        return self

    def for_shape(self, shape: Shape) -> Sharding:
        """Returns the sharding that XLA's parser assigns to an instruction of this shape: for a tuple, one for each
        leaf.
        """
        if self.is_tuple or not shape.is_tuple:
            return self
        return TupleSharding((self,) * max(1, sum(1 for _ in shape.leaves())))

    def without_metadata(self) -> Sharding:
        """Returns a copy without metadata."""
        raise NotImplementedError

    # ---- what each device holds

    def without_mesh(self) -> Sharding:
        """Returns the equivalent sharding by tiles and device numbers if this one is written with mesh axes, otherwise
        itself.

        Raises ValueError for axes that the mesh does not have or that overlap.
        """
        return self

    @property
    def num_devices(self) -> int | None:
        """Number of devices that hold the value, or None if the text does not say, as for `{replicated}`."""
        return None

    @property
    def replication(self) -> int | None:
        """Number of devices that hold each tile, or None if unknown."""
        return None

    def shard_shape(self, shape: Shape) -> Shape:
        """Returns the shape on one device (`HloSharding::TileShape`), with unchanged layouts.

        Uneven dimensions are rounded up. Manual and unknown shardings return the shape itself: it is already that of
        one device, or nothing is known. The leaves of a tuple are sharded one by one. Raises ValueError if the sharding
        does not fit the shape.
        """
        if not shape.is_tuple:
            return self._shard_of(shape)
        leaves = iter(self._for_leaves(shape))
        return _with_leaves(shape, leaves)

    def _for_leaves(self, shape: Shape) -> list[Shape]:
        leaves = [leaf for _, leaf in shape.leaves()]
        shardings = self.for_shape(shape).tuple_elements
        if not leaves:
            return []
        if len(leaves) != len(shardings):
            raise ValueError(f"{len(shardings)} shardings do not match a tuple of {len(leaves)} arrays")
        return [one._shard_of(leaf) for one, leaf in zip(shardings, leaves, strict=True)]

    def _shard_of(self, shape: Shape) -> Shape:
        """`shard_shape` of what is not a tuple."""
        raise NotImplementedError

    def device_indices(self, shape: Shape, num_devices: int | None = None) -> Mapping[int, Slices]:
        """Returns the part of an array on each device, by device number, as a slice for each dimension.

        Numbers are positions in the device assignment, not device ids. Devices without a part are omitted. If the array
        is replicated and neither the text nor `num_devices` gives the number of devices, every number maps to the whole
        array, and `len` raises ValueError (`Everywhere`).

        Raises ValueError for manual and unknown shardings, for tuples, and if the sharding does not fit the shape.
        """
        raise NotImplementedError

    def devices_of(
        self, shape: Shape, index: Sequence[int], num_devices: int | None = None
    ) -> tuple[int, ...]:
        """Returns the devices that hold an element, ascending.

        Raises IndexError if there is no such element, and ValueError as `device_indices` does.
        """
        if len(index) != shape.rank or any(
            not 0 <= i < size for i, size in zip(index, shape.dimensions, strict=True)
        ):
            raise IndexError(f"{shape} has no element [{', '.join(map(str, index))}]")
        parts = self.device_indices(shape, num_devices)
        return tuple(
            sorted(
                device
                for device, part in parts.items()
                if all(one.start <= i < one.stop for one, i in zip(part, index, strict=True))
            )
        )

    def means_the_same(self, other: Sharding) -> bool:
        """Returns True if each device holds the same part under both shardings, whatever their notation.

        Raises ValueError as `without_mesh` does.
        """
        # Twice: where XLA drops a subgroup it does not ask again whether the rest is a plain word.
        mine, theirs = (one.without_mesh().canonical().canonical() for one in (self, other))
        return _meaning(mine) == _meaning(theirs)


def _with_leaves(shape: Shape, leaves: Iterator[Shape]) -> Shape:
    """A tuple shape with other leaves, from left to right."""
    parts = [_with_leaves(part, leaves) if part.is_tuple else next(leaves) for part in shape.tuple_shapes]
    return Shape.tuple(tuple(parts))


def _meaning(sharding: Sharding) -> object:
    """A key that is equal for shardings that mean the same."""
    if isinstance(sharding, TupleSharding):
        return tuple(_meaning(element) for element in sharding.elements)
    assert isinstance(sharding, OpSharding)
    tiles = sharding.tile_assignment
    return (
        sharding.type,
        sharding.maximal_device,
        sharding.tile_dimensions,
        sharding.subgroup_types,
        tiles.dimensions if tiles is not None else None,
        tuple(tiles.devices())
        if tiles is not None and math.prod(tiles.dimensions) <= MOST_DEVICES
        else tiles,
    )


@attrs.frozen(repr=False)
class ShardGroup(Value):
    """A group of values to be sharded alike (`HloSharding::ShardGroup`): `shard_as 3`, `shard_like 3`."""

    shard_group_id: int
    shard_like: bool = False
    """True for `shard_like`: compatible with the group; False for `shard_as`: equal in the group."""

    def __str__(self) -> str:
        return f"{'shard_like' if self.shard_like else 'shard_as'} {self.shard_group_id}"


@attrs.frozen(repr=False)
class OpSharding(Sharding):
    """The sharding of an array by tiles, without a mesh: `{devices=[2,1,4]<=[8] last_tile_dim_replicate}`."""

    type: ShardingType
    """`OTHER` for a tiled one."""
    maximal_device: int | None = None
    """The one device of a maximal sharding; None otherwise."""
    tile_assignment: DeviceList | IotaTileAssignment | None = None
    """Of a tiled sharding; its dimensions are the array's, then `subgroup` ones. None otherwise."""
    replicate_on_last_tile_dim: bool = False
    """True where the last tile dimension says how many devices hold the same tile."""
    last_tile_dims: tuple[ShardingType, ...] | None = None
    """Types of the last tile dimensions; None if the text has none."""
    shard_group: ShardGroup | None = None
    metadata: tuple[Metadata, ...] = ()

    @property
    def is_replicated(self) -> bool:
        return self.type is ShardingType.REPLICATED

    @property
    def is_maximal(self) -> bool:
        return self.type is ShardingType.MAXIMAL

    @property
    def is_manual(self) -> bool:
        return self.type is ShardingType.MANUAL

    @property
    def is_unreduced(self) -> bool:
        return self.type is ShardingType.UNREDUCED

    @property
    def is_tiled(self) -> bool:
        """True if the array is divided into tiles."""
        return self.type is ShardingType.OTHER

    @property
    def subgroup_types(self) -> tuple[ShardingType, ...]:
        """Types of the last tile dimensions in either notation; empty if all are dimensions of the array."""
        if self.replicate_on_last_tile_dim:
            return (ShardingType.REPLICATED,)
        return self.last_tile_dims or ()

    @property
    def tile_dimensions(self) -> tuple[int, ...]:
        """Number of tiles along each dimension of the array; empty if it is not tiled."""
        if self.tile_assignment is None:
            return ()
        dims = self.tile_assignment.dimensions
        return dims[: max(0, len(dims) - len(self.subgroup_types))]

    @property
    def num_tiles(self) -> int:
        """Number of distinct tiles of the array; 1 if it is not tiled."""
        return math.prod(self.tile_dimensions)

    @property
    def num_devices(self) -> int | None:
        return math.prod(self.tile_assignment.dimensions) if self.tile_assignment is not None else None

    @property
    def replication(self) -> int | None:
        if self.maximal_device is not None:
            return 1
        return (
            math.prod(self.tile_assignment.dimensions[len(self.tile_dimensions) :])
            if self.is_tiled and self.tile_assignment is not None
            else None
        )

    def _shard_of(self, shape: Shape) -> Shape:
        if self.tile_assignment is None or not shape.is_array:
            return shape
        tiles = self.canonical()
        if tiles.tile_assignment is None:
            return shape
        return attrs.evolve(shape, dimensions=shard_sizes(shape.dimensions, tiles.tile_dimensions))

    def device_indices(self, shape: Shape, num_devices: int | None = None) -> Mapping[int, Slices]:
        if not shape.is_array:
            raise ValueError(f"{shape} is not an array")
        tiles = self.canonical()
        whole = tuple(slice(0, size) for size in shape.dimensions)
        if tiles.maximal_device is not None:
            return {tiles.maximal_device: whole}
        if tiles.tile_assignment is not None:
            if tiles.tile_assignment.num_devices != math.prod(tiles.tile_assignment.dimensions):
                raise ValueError(f"{self} does not assign every tile to a device")
            return device_slices(shape.dimensions, tiles.tile_dimensions, tiles.devices())
        if not (tiles.is_replicated or tiles.is_unreduced):
            raise ValueError(f"{self} does not determine what a device holds")
        count = self.num_devices if num_devices is None else num_devices
        if count is None:
            return Everywhere(whole)
        if not 0 < count <= MOST_DEVICES:
            raise ValueError(f"{count} is not a valid device count")
        return dict.fromkeys(range(count), whole)

    def devices(self) -> Iterator[int]:
        """Yields the device ids in tile order; for a maximal sharding its device, and for other untiled shardings none."""
        if self.tile_assignment is not None:
            return self.tile_assignment.devices()
        return iter(() if self.maximal_device is None else (self.maximal_device,))

    def without_metadata(self) -> OpSharding:
        return attrs.evolve(self, metadata=())

    def canonical(self) -> OpSharding:
        """Returns the form that XLA stores after parsing (`HloSharding::Subgroup`, `HloSharding::PartialTile`).

        Iota dimensions are merged; subgroup dimensions of size 1 are dropped, equal ones merged and sorted with the
        replicated one last; a trivial tiling becomes the plain word.
        """
        if self.tile_assignment is None:
            return self
        tiles = self.tile_assignment.canonical()
        count = math.prod(tiles.dimensions)
        if not self.subgroup_types or tiles.num_devices != count or count > MOST_DEVICES:
            return attrs.evolve(self, tile_assignment=tiles)
        plain = attrs.evolve(self, tile_assignment=tiles, last_tile_dims=None)
        if self.replicate_on_last_tile_dim:
            return _with_replicated_last(plain, tiles)
        return _with_subgroups(plain, tiles, self.subgroup_types)

    def __str__(self) -> str:
        parts: list[str] = []
        if self.tile_assignment is not None:
            parts.append(f"devices={self.tile_assignment}")
        elif self.maximal_device is not None:
            parts.append(f"maximal device={self.maximal_device}")
        else:
            parts.append(self.type.value)
        if self.replicate_on_last_tile_dim:
            parts.append("last_tile_dim_replicate")
        elif self.last_tile_dims:
            parts.append(f"last_tile_dims={{{', '.join(self.last_tile_dims)}}}")
        if self.shard_group is not None:
            parts.append(str(self.shard_group))
        if self.metadata:
            inner = ", ".join(map(str, self.metadata))
            parts.append(f"metadata={inner}" if len(self.metadata) == 1 else f"metadata={{{inner}}}")
        return f"{{{' '.join(parts)}}}"


@attrs.frozen(repr=False)
class TupleSharding(Sharding):
    """A sharding for each leaf of a tuple shape, in order: `{{replicated}, {manual}}`."""

    elements: tuple[Sharding, ...]

    @property
    def is_tuple(self) -> bool:
        return True

    @property
    def is_replicated(self) -> bool:
        return all(element.is_replicated for element in self.elements)

    @property
    def is_manual(self) -> bool:
        return all(element.is_manual for element in self.elements)

    @property
    def tuple_elements(self) -> tuple[Sharding, ...]:
        return self.elements

    def without_mesh(self) -> TupleSharding:
        return TupleSharding(tuple(element.without_mesh() for element in self.elements))

    def _shard_of(self, shape: Shape) -> Shape:
        raise ValueError(f"{len(self.elements)} shardings do not match the single array {shape}")

    def device_indices(self, shape: Shape, num_devices: int | None = None) -> Mapping[int, Slices]:
        raise ValueError("a tuple has one sharding per array; see its tuple_elements")

    def without_metadata(self) -> TupleSharding:
        return TupleSharding(tuple(element.without_metadata() for element in self.elements))

    def canonical(self) -> TupleSharding:
        """Returns the sharding with each element in canonical form."""
        return TupleSharding(tuple(element.canonical() for element in self.elements))

    def __str__(self) -> str:
        return f"{{{join_indexed([str(element) for element in self.elements])}}}"


def _simple(sharding: OpSharding, type_: ShardingType) -> OpSharding:
    """The sharding turned into a plain word; its group and metadata stay."""
    return OpSharding(type_, shard_group=sharding.shard_group, metadata=sharding.metadata)


def _with_replicated_last(sharding: OpSharding, tiles: DeviceList | IotaTileAssignment) -> OpSharding:
    """The canonical form where the last tile dimension is a replicated one."""
    dims = tiles.dimensions
    if math.prod(dims[:-1]) == 1:
        return _simple(sharding, ShardingType.REPLICATED)
    if dims[-1] == 1:
        tiles = attrs.evolve(tiles, dimensions=dims[:-1])
        return attrs.evolve(sharding, tile_assignment=tiles, replicate_on_last_tile_dim=False)
    return attrs.evolve(sharding, tile_assignment=_sorted_groups(tiles), replicate_on_last_tile_dim=True)


def _with_subgroups(
    sharding: OpSharding, tiles: DeviceList | IotaTileAssignment, types: tuple[ShardingType, ...]
) -> OpSharding:
    """The canonical form where the last tile dimensions have these types."""
    dims = tiles.dimensions
    data = len(dims) - len(types)
    is_whole = math.prod(dims[:data]) == 1
    if is_whole and len(set(types)) == 1 and types[0] in _PLAIN:
        return _simple(sharding, types[0])
    groups: dict[ShardingType, list[int]] = {}
    for number, type_ in enumerate(types, start=data):
        if dims[number] != 1:
            groups.setdefault(type_, []).append(number)
    ordered = sorted(groups, key=SUBGROUP_TYPES.index)
    # XLA asks again here, but forgets the unreduced ones.
    if is_whole and ordered == [ShardingType.MANUAL]:
        return _simple(sharding, ShardingType.MANUAL)
    permutation = tuple(range(data)) + tuple(number for type_ in ordered for number in groups[type_])
    dropped = tuple(number for number in range(data, len(dims)) if number not in permutation)
    merged = dims[:data] + tuple(math.prod(dims[number] for number in groups[type_]) for type_ in ordered)
    moved = tiles.transposed(permutation + dropped, merged)
    if moved is None:
        assert isinstance(tiles, IotaTileAssignment)
        moved = tiles.device_list().transposed(permutation + dropped, merged)
    if ordered == [ShardingType.REPLICATED]:
        return _with_replicated_last(sharding, moved)
    if ordered and ordered[-1] is ShardingType.REPLICATED:
        moved = _sorted_groups(moved)
    return attrs.evolve(sharding, tile_assignment=moved, last_tile_dims=tuple(ordered) or None)


def _sorted_groups(tiles: DeviceList | IotaTileAssignment) -> DeviceList | IotaTileAssignment:
    """Device ids sorted inside each group of replicas, where order means nothing; written out if need be."""
    size = tiles.dimensions[-1]
    if isinstance(tiles, IotaTileAssignment):
        in_order = tiles.sorted_in_groups(size)
        if in_order is not None:
            return in_order
        tiles = tiles.device_list()
    ids: list[int] = []
    for start in range(0, len(tiles.device_ids), size):
        ids.extend(sorted(tiles.device_ids[start : start + size]))
    return attrs.evolve(tiles, device_ids=tuple(ids))


@attrs.frozen(repr=False)
class Domain(Value):
    """`domain=` (`DomainMetadata`): `{kind="sharding", entry={replicated}, exit={manual}}`."""

    kind: str
    """Always `sharding`; XLA has no other."""
    entry: Sharding
    """On the users' side."""
    exit: Sharding
    """On the operand's side."""

    def __str__(self) -> str:
        return f'{{kind="{self.kind}", entry={self.entry}, exit={self.exit}}}'
