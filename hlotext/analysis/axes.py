"""Along which axes of a mesh the communication of a module goes, and where the mesh is taken from."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

import attrs

from hlotext.analysis.census import census
from hlotext.analysis.communication import Communication, communications
from hlotext.analysis.devices import devices_of, participant_groups, shardings_of, shardy_text
from hlotext.analysis.facts import fact
from hlotext.analysis.meshes import DeviceMesh, inferred_mesh, is_invented, shardy_meshes
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.named_sharding import NamedSharding
from hlotext.ir.values.replica_groups import MeshAxesReplicaGroupList, ReplicaGroupList


class MeshSource(enum.Enum):
    """Origin of a mesh, most reliable first."""

    GIVEN = "as given"
    SHARDY = "the module's xla.sdy.meshes"
    SHARDINGS = "the module's shardings"
    PROGRAM = "the program before optimization"
    GROUPS = "from replica groups"
    INFERRED = "inferred from replica groups"


@attrs.frozen
class FoundMesh:
    """The device mesh of a module, and where it was found."""

    mesh: DeviceMesh
    source: MeshSource

    @property
    def has_names(self) -> bool:
        """True if the axes are named by the program; False for generated names such as `axis_0`."""
        if self.source is MeshSource.GROUPS:
            return not all(map(is_invented, self.mesh.names))
        return self.source is not MeshSource.INFERRED


def mesh_of(module: Module, given: DeviceMesh | FoundMesh | None = None) -> FoundMesh | None:
    """Returns the mesh of a module: `given`, the first mesh in the text, or one inferred from replica groups.

    Returns None if there is no mesh. Raises ValueError if `given` and the module have different numbers of devices.
    """
    if given is None:
        return _own_mesh(module)
    found = given if isinstance(given, FoundMesh) else FoundMesh(given, MeshSource.GIVEN)
    total = devices_of(module).total
    if total is not None and total != found.mesh.num_devices:
        raise ValueError(
            f"the mesh {found.mesh} has {found.mesh.num_devices} devices, but the module has {total}"
        )
    return found


@fact
def _own_mesh(module: Module) -> FoundMesh | None:
    total = devices_of(module).total
    fitting = [
        FoundMesh(named, source)
        for named, source in _meshes(module)
        if named.num_devices > 1 and total in (None, named.num_devices)
    ]
    if fitting:  # a partitioned text may have groups with XLA's names of axes before those with the program's
        return next((one for one in fitting if one.has_names), fitting[0])
    begun = communications(module)
    joined = [found for one in begun if (found := participant_groups(module, one.instruction)) is not None]
    count = total or 1 + max((device for found in joined for group in found for device in group), default=0)
    if count < 2 or not (joined or any(one.pairs for one in begun)):
        return None
    lists = dict.fromkeys(map(ReplicaGroupList, joined))
    rings = [found for one in begun if one.pairs and (found := _joined_by(one.pairs, count)) is not None]
    mesh = inferred_mesh(count, dict.fromkeys((*lists, *map(ReplicaGroupList, rings))))
    mesh = mesh or inferred_mesh(count, lists)
    return FoundMesh(mesh, MeshSource.INFERRED) if mesh is not None else None


def _joined_by(pairs: Iterable[tuple[int, ...]], count: int) -> tuple[tuple[int, ...], ...] | None:
    """The groups of devices that the pairs of a permute join; None if they are not of one size, or not all devices."""
    group_of: dict[int, list[int]] = {}
    for pair in pairs:
        groups = [group_of.setdefault(device, [device]) for device in pair]
        less, more = sorted((groups[0], groups[-1]), key=len)
        if less is not more:
            more += less
            group_of.update(dict.fromkeys(less, more))
    found = {id(group): tuple(sorted(group)) for group in group_of.values()}
    sizes = {len(group) for group in found.values()}
    return tuple(found.values()) if len(sizes) == 1 and len(group_of) == count else None


def _meshes(module: Module) -> Iterator[tuple[DeviceMesh, MeshSource]]:
    yield from ((mesh, MeshSource.SHARDY) for mesh in shardy_meshes(shardy_text(module)))
    named = [
        (one.mesh, MeshSource.SHARDINGS) for one in shardings_of(module) if isinstance(one, NamedSharding)
    ]
    for instruction in census(module).attribute_sets:
        groups = instruction.attributes.get("replica_groups")
        if isinstance(groups, MeshAxesReplicaGroupList):
            named.append((groups.mesh, MeshSource.GROUPS))
    for mesh, source in dict.fromkeys(named):
        try:
            yield DeviceMesh.of(mesh), source
        except ValueError:
            continue


def axes_of(module: Module, one: Communication, mesh: DeviceMesh | None) -> tuple[str, ...] | None:
    """Returns the mesh axes along which the participants of a communication differ, most major first.

    The result is empty if every device communicates only with itself. Returns None if `mesh` is None, if the
    participants are unknown, or if they do not form a grid along the axes.

    Args:
        module: The module.
        one: A communication of the module.
        mesh: The device mesh, or None if there is none.
    """
    expect_module(module)
    if mesh is None:
        return None
    if one.pairs is not None:
        if all(len(set(pair)) == 1 for pair in one.pairs):
            return ()
        shift = mesh.shift_of(one.pairs)
        if shift is not None:
            return (shift[0],)
        return mesh.axes_of_pairs(one.pairs)
    joined = participant_groups(module, one.instruction)
    return mesh.axes_of(ReplicaGroupList(joined)) if joined is not None else None
