"""Values of the rules in sharding.lark and replica_groups.lark."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import attrs

from hlotext.findings.errors import TermError
from hlotext.ir.values.enums import ShardingType
from hlotext.ir.values.mesh import AxisRef, Mesh, MeshAxis, SubAxis, check_axes
from hlotext.ir.values.named_sharding import DimensionSharding, NamedSharding
from hlotext.ir.values.replica_groups import (
    IotaReplicaGroupList,
    MeshAxesReplicaGroupList,
    ReplicaGroupList,
)
from hlotext.ir.values.sharding import Domain, OpSharding, ShardGroup, Sharding, TupleSharding
from hlotext.ir.values.tile_assignment import DeviceList, IotaTileAssignment
from hlotext.syntax.language.words import integer
from hlotext.syntax.reading.builders.values import Children, Field, name_of, unique_fields, unquote_at

_WORDS = (
    ShardingType.REPLICATED,
    ShardingType.MAXIMAL,
    ShardingType.MANUAL,
    ShardingType.UNKNOWN,
    ShardingType.UNREDUCED,
)
"""Words that make a whole sharding; of several the first in this order counts, as in XLA's reader."""

_SUBGROUPS = {
    member.value: member
    for member in (ShardingType.MANUAL, ShardingType.REPLICATED, ShardingType.MAXIMAL, ShardingType.UNREDUCED)
}


class _Iota(NamedTuple):
    """`[2,4]T(1,0)`."""

    reshape_dims: tuple[int, ...]
    transpose_perm: tuple[int, ...]


class _NumberList(NamedTuple):
    """`[2,4]` and where it stands."""

    numbers: tuple[int, ...]
    position: int


class _Axes(NamedTuple):
    """`{'a','b'}`, and the word in front of it: `max{'a'}`."""

    axes: tuple[AxisRef, ...]
    reduction: str


_NO_AXES = _Axes((), "")


class _Word(NamedTuple):
    """A word for a whole sharding: `replicated`, `unreduced=max`, `unreduced{'b'}`."""

    text: str
    reduction: str
    axes: tuple[AxisRef, ...] | None
    """All axes of the mesh where None."""


class _ParsedMesh(NamedTuple):
    """A mesh without its device ids, and the token that opens it."""

    mesh: Mesh
    opening: Any


class ShardingBuilder:
    """Builds the values of the rules in sharding.lark and replica_groups.lark."""

    def sharding(self, children: Children) -> Sharding:
        value: Sharding = children[0]
        return value

    single_sharding = sharding

    def tuple_sharding(self, children: Children) -> TupleSharding:
        return TupleSharding(tuple(child for child in children if child is not None))

    # ---- words and tile assignments

    def op_sharding(self, children: Children) -> OpSharding:
        opening, *parts = children
        words = {part.value for part in parts if part.name == "word"}
        fields = {part.name: part.value for part in parts}
        extra = {"shard_group": fields.get("group"), "metadata": fields.get("metadata", ())}
        word = next((word for word in _WORDS if word in words), None)
        devices, tiles = fields.get("device"), fields.get("devices")
        if word is None:
            if tiles is None:
                raise TermError("a sharding that is not a single word needs devices=[...]", opening.start_pos)
            types, rank = fields.get("last_tile_dims") or (), len(tiles.dimensions)
            if len(types) > rank:
                raise TermError(f"last_tile_dims names {len(types)} dimensions of {rank}", opening.start_pos)
            return OpSharding(
                ShardingType.OTHER,
                tile_assignment=tiles,
                replicate_on_last_tile_dim="last_tile_dim_replicate" in words
                and not fields.get("last_tile_dims"),
                last_tile_dims=fields.get("last_tile_dims"),
                **extra,
            )
        if word is ShardingType.MAXIMAL:
            if devices is None or tiles is not None:
                raise TermError("a maximal sharding needs one device=number", opening.start_pos)
            return OpSharding(word, devices, **extra)
        if devices is not None or tiles is not None:
            raise TermError(f"a {word} sharding has no devices", opening.start_pos)
        return OpSharding(word, **extra)

    def sharding_word(self, children: Children) -> Field:
        word = str(children[0])
        return Field("word", word if word == "last_tile_dim_replicate" else ShardingType(word), children[0])

    def sharding_device(self, children: Children) -> Field:
        return Field("device", integer(children[1]), children[0])

    def sharding_devices(self, children: Children) -> Field:
        return Field("devices", children[1], children[0])

    def sharding_last_tile_dims(self, children: Children) -> Field:
        token, *words = children
        types = []
        for word in words:
            if word is not None and word not in _SUBGROUPS:
                raise TermError(f"last_tile_dims takes {', '.join(_SUBGROUPS)}, not {word}", word.start_pos)
            if word is not None:
                types.append(_SUBGROUPS[word])
        return Field("last_tile_dims", tuple(types), token)

    def sharding_group(self, children: Children) -> Field:
        group = ShardGroup(integer(children[1]), shard_like=children[0] == "shard_like")
        return Field("group", group, children[0])

    def sharding_metadata(self, children: Children) -> Field:
        return Field("metadata", children[1], children[0])

    def tile_assignment(self, children: Children) -> DeviceList | IotaTileAssignment:
        dimensions, devices = children
        if not dimensions.numbers or min(dimensions.numbers) < 1:
            raise TermError("devices= needs one or more positive tile dimensions", dimensions.position)
        tiles = math.prod(dimensions.numbers)
        count = math.prod(devices.reshape_dims) if isinstance(devices, _Iota) else len(devices)
        if count != tiles and (isinstance(devices, _Iota) or count > 1):
            raise TermError(f"{tiles} tiles cannot be assigned to {count} devices", dimensions.position)
        if isinstance(devices, _Iota):
            return IotaTileAssignment(dimensions.numbers, devices.reshape_dims, devices.transpose_perm)
        if len(devices) < 2:
            raise TermError("a tiled sharding needs more than one device", dimensions.position)
        return DeviceList(dimensions.numbers, devices)

    def device_list(self, children: Children) -> tuple[int, ...]:
        return tuple([integer(token) for token in children])

    def iota(self, children: Children) -> _Iota:
        (reshape, position), *permutation = children
        perm = tuple(integer(token) for token in permutation if token is not None)
        if not reshape or min(reshape) < 1:
            raise TermError("an iota needs one or more positive sizes", position)
        if len(reshape) == 1 and not perm:
            return _Iota(reshape, (0,))
        if len(reshape) == 1 or sorted(perm) != list(range(len(reshape))):
            raise TermError(
                "an iota is written [n], or [a,b,...]T(...) with a permutation of its dimensions", position
            )
        return _Iota(reshape, perm)

    def number_list(self, children: Children) -> _NumberList:
        numbers = tuple(integer(token) for token in children[1:] if token is not None)
        return _NumberList(numbers, children[0].start_pos)

    # ---- meshes

    def mesh_axes(self, children: Children) -> _ParsedMesh:
        opening, *rest = children
        axes = tuple(axis for axis in rest if axis is not None)
        if len({axis.name for axis in axes}) != len(axes):
            raise TermError("two axes of the mesh have the same name", opening.start_pos)
        if any(axis.size < 1 for axis in axes):
            raise TermError("an axis of the mesh has a non-positive size", opening.start_pos)
        return _ParsedMesh(Mesh(axes), opening)

    def single_device(self, children: Children) -> Mesh:
        word, _, device = children
        return Mesh(device_id=integer(device), is_old_spelling=word.startswith("maximal"))

    def mesh_axis(self, children: Children) -> MeshAxis:
        name, size = children
        return MeshAxis(unquote_at(name) if name.type == "STRING" else name_of(name), integer(size))

    def device_ids(self, children: Children) -> Field:
        return Field("device_ids", children[1], children[0])

    def axis(self, children: Children) -> AxisRef:
        name, pre_size, size = children
        text = unquote_at(name) if name.type == "STRING" else str(name)
        return AxisRef(text, None if size is None else SubAxis(integer(pre_size), integer(size)))

    def axis_list(self, children: Children) -> tuple[AxisRef, ...]:
        return tuple(child for child in children if child is not None)

    def dimension_sharding(self, children: Children) -> DimensionSharding:
        *axes, mark = children
        return DimensionSharding(tuple(axes), is_closed=mark is None)

    # ---- shardings by mesh axes

    def named_sharding(self, children: Children) -> NamedSharding:
        parsed, *parts = children
        fields = unique_fields(parts, "sharding")
        _check_named_parts(parsed, parts)
        mesh = _with_devices(parsed, fields.get("device_ids"))
        axes = {name: fields.get(name, _NO_AXES) for name in ("replicated", "unreduced", "manual")}
        word, reduction, named = fields.get("word", _Word("replicated", "", None))
        if word != "replicated" and (mesh.axes or word != "unreduced"):  # nothing is unreduced over no axes
            if not mesh.axes:
                raise TermError(f"a mesh without axes cannot be {word}", parsed.opening.start_pos)
            axes[word] = _Axes(named or tuple(AxisRef(name) for name in mesh.axis_names), reduction)
        by_dimension = fields.get("dim_shardings", ())
        sharding = NamedSharding(
            mesh,
            tuple(DimensionSharding(_renamed(mesh, d.axes), d.is_closed) for d in by_dimension),
            _renamed(mesh, axes["replicated"].axes),
            _renamed(mesh, axes["unreduced"].axes),
            _renamed(mesh, axes["manual"].axes),
            fields.get("metadata", ()),
            axes["unreduced"].reduction,
            names_unreduced=word == "unreduced" and named is not None,
        )
        _check_axes(parsed, mesh, sharding.all_axes())
        return sharding

    def single_device_sharding(self, children: Children) -> NamedSharding:
        mesh, _, metadata = children
        return NamedSharding(mesh, metadata=metadata or ())

    def named_part(self, children: Children) -> Field:
        part: Field = children[0]
        return part

    def dimension_shardings(self, children: Children) -> Field:
        opening, *dimensions = children
        return Field("dim_shardings", tuple(d for d in dimensions if d is not None), opening)

    def named_word(self, children: Children) -> Field:
        return Field("word", _Word(str(children[0]), "", children[1]), children[0])

    def named_axes(self, children: Children) -> Field:
        token, reduction, axes = children
        return Field(name_of(token), _Axes(axes, _reduction(token, reduction)), token)

    def named_reduction(self, children: Children) -> Field:
        token, reduction = children
        return Field("word", _Word(name_of(token), _reduction(token, reduction), None), token)

    # ---- domain

    def domain(self, children: Children) -> Domain:
        opening, *parts = children
        fields = unique_fields(parts, "domain")
        for name in ("kind", "entry", "exit"):
            if name not in fields:
                raise TermError(
                    f"a domain needs kind, entry and exit, but {name} is missing", opening.start_pos
                )
        return Domain(fields["kind"], fields["entry"], fields["exit"])

    def domain_field(self, children: Children) -> Field:
        token, value = children
        if token != "kind=":
            return Field(name_of(token), value, token)
        kind = unquote_at(value)
        if kind != "sharding":
            raise TermError(f'a domain must be of kind "sharding", not "{kind}"', value.start_pos)
        return Field("kind", kind, token)

    # ---- replica_groups.lark

    def replica_group_list(self, children: Children) -> ReplicaGroupList:
        return ReplicaGroupList(children[0])

    def iota_replica_groups(self, children: Children) -> IotaReplicaGroupList:
        (dimensions, position), iota = children
        if len(dimensions) != 2:
            raise TermError(
                "an iota of replica groups needs two dimensions: groups, and devices in each", position
            )
        if math.prod(dimensions) != (count := math.prod(iota.reshape_dims)):
            raise TermError(
                f"{dimensions[0]} groups of {dimensions[1]} cannot hold {count} devices", position
            )
        return IotaReplicaGroupList(IotaTileAssignment(dimensions, iota.reshape_dims, iota.transpose_perm))

    def mesh_replica_groups(self, children: Children) -> MeshAxesReplicaGroupList:
        parsed, device_ids, axes = children
        mesh = _with_devices(parsed, None if device_ids is None else device_ids.value)
        renamed = _renamed(mesh, axes)
        _check_axes(parsed, mesh, renamed)
        return MeshAxesReplicaGroupList(mesh, renamed)

    def old_mesh_replica_groups(self, children: Children) -> MeshAxesReplicaGroupList:
        parsed, axes = children
        return attrs.evolve(self.mesh_replica_groups([parsed, None, axes]), has_comma=True)

    def single_device_groups(self, children: Children) -> MeshAxesReplicaGroupList:
        return MeshAxesReplicaGroupList(children[0], ())

    def source_target_pairs(self, children: Children) -> tuple[tuple[int, ...], ...]:
        opening, *lists = children
        pairs = tuple(pair for pair in lists if pair is not None)
        if any(len(pair) != 2 for pair in pairs):
            raise TermError("each of source_target_pairs must have two numbers", opening.start_pos)
        return pairs


def _check_named_parts(parsed: _ParsedMesh, parts: list[Field]) -> None:
    """Raises TermError if parts are missing, or stand where XLA's reader does not take them."""
    rest = [part for part in parts if part.name != "device_ids"]
    if len(rest) != len(parts) and parts[0].name != "device_ids":
        raise TermError("device_ids= must directly follow the mesh", parts[0].token.start_pos)
    if rest and rest[0].name == "unreduced" and rest[0].value.reduction:
        allowed = {"unreduced", "metadata"}
    elif not rest or rest[0].name not in ("word", "dim_shardings"):
        raise TermError(
            "the mesh must be followed by replicated, unreduced, manual, or [...] with the axes of each dimension",
            parsed.opening.start_pos,
        )
    elif rest[0].name == "word":
        allowed = {"word", "metadata"}
    else:
        allowed = {"dim_shardings", "replicated", "unreduced", "manual", "metadata"}
    for part in rest:
        if part.name not in allowed:
            raise TermError(f"{part.token} cannot be combined with {rest[0].token}", part.token.start_pos)


def _with_devices(parsed: _ParsedMesh, device_ids: tuple[int, ...] | _Iota | None) -> Mesh:
    """The mesh with its device ids, which must be as many as the mesh has places."""
    mesh = parsed.mesh
    if device_ids is None:
        return mesh
    sizes = mesh.axis_sizes
    assignment: DeviceList | IotaTileAssignment
    if isinstance(device_ids, _Iota):
        assignment = IotaTileAssignment(sizes, device_ids.reshape_dims, device_ids.transpose_perm)
        count = assignment.num_devices
    else:
        assignment = DeviceList(sizes, device_ids)
        count = len(device_ids)
    if count != mesh.num_devices:
        raise TermError(
            f"the mesh has {mesh.num_devices} devices, but {count} device ids", parsed.opening.start_pos
        )
    return Mesh(mesh.axes, assignment)


def _renamed(mesh: Mesh, axes: tuple[AxisRef, ...]) -> tuple[AxisRef, ...]:
    """The axes by name: the text may also number them, as `'0'`."""
    names = mesh.axis_names
    known = frozenset(names)
    return tuple(
        AxisRef(names[int(axis.name)], axis.sub_axis_info)
        if axis.name not in known
        and axis.name.isdecimal()
        and len(axis.name) < 9
        and int(axis.name) < len(names)
        else axis
        for axis in axes
    )


def _check_axes(parsed: _ParsedMesh, mesh: Mesh, axes: tuple[AxisRef, ...]) -> None:
    try:
        check_axes(mesh, axes)
    except ValueError as error:
        raise TermError(str(error), parsed.opening.start_pos) from None


def _reduction(token: Any, reduction: Any) -> str:
    if reduction is None:
        return ""
    if token != "unreduced=":
        raise TermError(f"{token} takes a list of axes, not {reduction}", reduction.start_pos)
    return str(reduction)
