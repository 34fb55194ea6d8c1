"""Meshes of devices with named axes, and the axes that shardings and replica groups name."""

from __future__ import annotations

import math

import attrs

from hlotext.ir.values.tile_assignment import DeviceList, IotaTileAssignment
from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class MeshAxis(Value):
    """An axis of a mesh (`MeshProto::MeshAxis`)."""

    name: str
    size: int
    """Number of devices along the axis."""

    def __str__(self) -> str:
        # XLA escapes nothing in axis names.
        return f"'{self.name}'={self.size}"


@attrs.frozen(repr=False)
class Mesh(Value):
    """A grid of devices with named axes (`Mesh`): `mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0))`.

    A mesh of a single device is `single_device[device_id=3]`.
    """

    axes: tuple[MeshAxis, ...] = ()
    """The first is the most major; none for an empty or a maximal mesh."""
    device_assignment: DeviceList | IotaTileAssignment | None = None
    """Device ids over the grid; None for 0, 1, 2, ... in row-major order."""
    device_id: int | None = None
    """The one device of a maximal mesh; None otherwise."""
    is_old_spelling: bool = attrs.field(default=False, eq=False)
    """True if one device is written `maximal_mesh[device_id=3]`, as XLA did until the autumn of 2026; the same mesh."""

    @property
    def is_maximal(self) -> bool:
        """True for a single device, `single_device[device_id=3]` (`maximal_mesh[device_id=3]` in older text)."""
        return self.device_id is not None

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Axis names, most major first."""
        return tuple(axis.name for axis in self.axes)

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Axis sizes, most major first."""
        return tuple(axis.size for axis in self.axes)

    @property
    def num_devices(self) -> int:
        """Number of devices of the grid; 1 for a single-device mesh, 0 for an empty one."""
        return math.prod(self.axis_sizes) if self.axes else int(self.is_maximal)

    def axis_number(self, name: str) -> int:
        """Returns the index of the axis with this name. Raises ValueError if there is none."""
        try:
            return self.axis_names.index(name)
        except ValueError:
            known = ", ".join(f"'{known}'" for known in self.axis_names) or "none"
            raise ValueError(f"the mesh has no axis '{name}' (its axes: {known})") from None

    def axis_size(self, axis: AxisRef) -> int:
        """Returns the number of devices along an axis or sub-axis. Raises ValueError if the mesh has no such axis."""
        size = self.axes[self.axis_number(axis.name)].size
        return size if axis.sub_axis_info is None else axis.sub_axis_info.size

    def canonical(self) -> Mesh:
        """Returns the form that XLA stores: device ids as an iota with the fewest dimensions, or omitted if row-major."""
        if self.device_assignment is None:
            return self
        assignment = self.device_assignment.canonical()
        if isinstance(assignment, IotaTileAssignment) and len(assignment.reshape_dims) == 1:
            return attrs.evolve(self, device_assignment=None)
        return attrs.evolve(self, device_assignment=assignment)

    def __str__(self) -> str:
        if self.device_id is not None:
            word = "maximal_mesh" if self.is_old_spelling else "single_device"
            return f"{word}[device_id={self.device_id}]"
        axes = f"mesh[{','.join(map(str, self.axes))}]"
        if self.device_assignment is None:
            return axes
        if isinstance(self.device_assignment, DeviceList):
            return f"{axes}, device_ids=({','.join(map(str, self.device_assignment.device_ids))})"
        return f"{axes}, device_ids=({self.device_assignment.iota_text})"


@attrs.frozen(repr=False)
class SubAxis(Value):
    """A sub-axis (`AxisRef::SubAxis`), with the axis viewed as [pre_size, size, rest]: `(2)4`."""

    pre_size: int
    """Product of the sizes of the parts in front, the more major ones."""
    size: int

    @property
    def next_pre_size(self) -> int:
        """`pre_size` of the sub-axis that follows directly."""
        return self.pre_size * self.size

    def __str__(self) -> str:
        return f"({self.pre_size}){self.size}"


@attrs.frozen(repr=False)
class AxisRef(Value):
    """A reference to a mesh axis or sub-axis (`AxisRef`): `'x'`, `'x':(2)4`."""

    name: str
    """The axis's name in its mesh."""
    sub_axis_info: SubAxis | None = None
    """None for the whole axis."""

    def overlaps(self, other: AxisRef) -> bool:
        """Returns True if two axes overlap (the negation of `AxisRef::CanCoexistWithoutOverlap`)."""
        if self.name != other.name:
            return False
        mine, theirs = self.sub_axis_info, other.sub_axis_info
        if mine is None or theirs is None:
            return True
        if mine.next_pre_size > theirs.pre_size and theirs.next_pre_size > mine.pre_size:
            return True
        first, second = sorted((mine, theirs), key=lambda sub: sub.pre_size)
        return second.pre_size % first.next_pre_size != 0

    def __str__(self) -> str:
        quoted = f"'{self.name}'"
        return quoted if self.sub_axis_info is None else f"{quoted}:{self.sub_axis_info}"


def check_axes(mesh: Mesh, axes: tuple[AxisRef, ...]) -> None:
    """Raises ValueError where XLA would abort: for an unknown axis, a sub-axis that does not fit, or overlapping axes."""
    sizes = {axis.name: axis.size for axis in mesh.axes}
    earlier_of: dict[str, list[AxisRef]] = {}
    for axis in axes:
        size = sizes[axis.name] if axis.name in sizes else mesh.axis_size(axis)
        sub = axis.sub_axis_info
        if sub is not None and (
            sub.pre_size < 1 or sub.size < 2 or size % sub.next_pre_size or sub.size >= size
        ):
            raise ValueError(f"{axis} is not part of an axis of size {size}")
        # Parts of one axis that do not overlap divide its size, so there are few of them.
        others = earlier_of.setdefault(axis.name, [])
        for earlier in others:
            if axis.overlaps(earlier):
                raise ValueError(f"the axes {earlier} and {axis} overlap")
        others.append(axis)


def split_axes(mesh: Mesh, axes: tuple[AxisRef, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Splits mesh axes at the sub-axes in `axes`. Returns the resulting dimension sizes, and the dimension of each
    axis.
    """
    sizes: list[int] = []
    places: dict[AxisRef, int] = {}
    for mesh_axis in mesh.axes:
        named = [axis for axis in axes if axis.name == mesh_axis.name]
        before = 1
        for axis in sorted(named, key=lambda axis: axis.sub_axis_info.pre_size if axis.sub_axis_info else 1):
            pre_size = axis.sub_axis_info.pre_size if axis.sub_axis_info else 1
            size = mesh.axis_size(axis)
            sizes.append(pre_size // before)
            places[axis] = len(sizes)
            sizes.append(size)
            before = pre_size * size
        sizes.append(mesh_axis.size // before)
    return tuple(sizes), tuple(places[axis] for axis in axes)
