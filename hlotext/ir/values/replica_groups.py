"""Groups of devices of a collective: the three forms of `replica_groups=`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import attrs

from hlotext.ir.values.mesh import AxisRef, Mesh, check_axes, split_axes
from hlotext.ir.values.text import braced
from hlotext.ir.values.tile_assignment import MOST_DEVICES, DeviceList, IotaTileAssignment
from hlotext.ir.values.value import Value


class ReplicaGroups(Value):
    """Groups of devices (XLA's `CollectiveDeviceListBase`): an explicit list, an iota, or mesh axes.

    All forms have `group_count`, `group_size` and `groups()`; only `groups()` enumerates devices.
    """

    __slots__ = ()

    @property
    def group_count(self) -> int:
        """Number of groups; 0 if omitted, which means a single group of all devices."""
        raise NotImplementedError

    @property
    def group_size(self) -> int | None:
        """Number of devices per group, or None if there are no groups or their sizes differ."""
        raise NotImplementedError

    def groups(self) -> Iterator[tuple[int, ...]]:
        """Yields the ids in each group, whose meaning (devices, replicas or partitions) depends on the instruction.

        Raises ValueError for axes that the mesh does not have or that overlap.
        """
        raise NotImplementedError

    def canonical(self) -> ReplicaGroups:
        """Returns the groups as XLA stores them after parsing."""
        return self

    def full_list(self) -> ReplicaGroups:
        """Returns the groups as an explicit list, as with XLA's option `print_full_replica_group_list`.

        Groups of more than `MOST_DEVICES` devices, or with negative sizes, are returned unchanged.
        """
        count, size = self.group_count, self.group_size or 0
        if min(count, size) < 0 or count * size > MOST_DEVICES:
            return self
        return ReplicaGroupList(tuple(self.groups()))


@attrs.frozen(repr=False)
class ReplicaGroupList(ReplicaGroups):
    """Groups as an explicit list (`CollectiveDeviceList`): `{{0,1},{2,3}}`. `{}` means all devices."""

    replica_groups: tuple[tuple[int, ...], ...] = ()

    @property
    def group_count(self) -> int:
        return len(self.replica_groups)

    @property
    def group_size(self) -> int | None:
        sizes = {len(group) for group in self.replica_groups}
        return sizes.pop() if len(sizes) == 1 else None

    def groups(self) -> Iterator[tuple[int, ...]]:
        return iter(self.replica_groups)

    def full_list(self) -> ReplicaGroupList:
        return self

    def __str__(self) -> str:
        return braced(braced(group) for group in self.replica_groups)


@attrs.frozen(repr=False)
class IotaReplicaGroupList(ReplicaGroups):
    """Groups as a reshaped and transposed iota (`IotaReplicaGroupList`): `[2,4]<=[4,2]T(1,0)`."""

    iota: IotaTileAssignment
    """Its two dimensions are the number of groups and the devices in each."""

    @property
    def group_count(self) -> int:
        return self.iota.dimensions[0]

    @property
    def group_size(self) -> int:
        return self.iota.dimensions[1]

    def groups(self) -> Iterator[tuple[int, ...]]:
        return _batches(self.iota.devices(), self.group_size)

    def canonical(self) -> IotaReplicaGroupList:
        """Returns the equivalent groups with the fewest reshape dimensions."""
        return IotaReplicaGroupList(self.iota.canonical())

    def __str__(self) -> str:
        return str(self.iota)


@attrs.frozen(repr=False)
class MeshAxesReplicaGroupList(ReplicaGroups):
    """Groups along mesh axes: `mesh['a'=2,'b'=4] {'b'}` has two groups of four devices."""

    mesh: Mesh
    axes: tuple[AxisRef, ...]
    """Devices that differ only along these are one group; the last one varies fastest in it."""
    has_comma: bool = attrs.field(default=False, eq=False, repr=False)
    """True if the text had a comma before the axes, as older XLA wrote them."""

    @property
    def group_count(self) -> int:
        return self.mesh.num_devices // max(1, self.group_size)

    @property
    def group_size(self) -> int:
        return math.prod(self.mesh.axis_size(axis) for axis in self.axes)

    def groups(self) -> Iterator[tuple[int, ...]]:
        if self.mesh.device_id is not None:
            return iter([(self.mesh.device_id,)])
        check_axes(self.mesh, self.axes)
        sizes, grouped = split_axes(self.mesh, self.axes)
        order = tuple(i for i in range(len(sizes)) if i not in grouped) + grouped
        shape = (self.group_count, self.group_size)
        positions = IotaTileAssignment(shape, sizes, order)
        assignment = self.mesh.device_assignment
        if assignment is None:
            return _batches(positions.devices(), self.group_size)
        # Positions in the mesh are looked up in its device ids, which are as many as there are devices.
        ids = assignment.device_ids if isinstance(assignment, DeviceList) else tuple(assignment.devices())
        return _batches((ids[i] for i in positions.devices()), self.group_size)

    def canonical(self) -> MeshAxesReplicaGroupList:
        """Returns the equivalent groups with a canonical mesh."""
        return attrs.evolve(self, mesh=self.mesh.canonical())

    def __str__(self) -> str:
        return f"{self.mesh} {braced(self.axes)}"


def _batches(devices: Iterator[int], size: int) -> Iterator[tuple[int, ...]]:
    while size > 0 and (group := tuple(itertools.islice(devices, size))):
        yield group
