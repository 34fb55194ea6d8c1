"""Meshes of devices with named axes, and which axes a group of devices goes along."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence

import attrs

from hlotext.ir.values.mesh import Mesh
from hlotext.ir.values.replica_groups import ReplicaGroups
from hlotext.ir.values.tile_assignment import MOST_DEVICES

Groups = Iterable[Sequence[int]]
"""Groups of device numbers, which are positions in the device assignment."""

_AXIS = re.compile(r"\s*([^=,\s][^=,]*?)\s*=\s*([0-9]{1,18})\s*")


def parse_mesh(text: str, device_order: Sequence[int] | None = None) -> DeviceMesh:
    """Parses a mesh such as `dp=2,tp=4`: axis names and sizes, most major first.

    Args:
        text: The axes.
        device_order: Device number at each position of the mesh, row-major; 0, 1, 2, ... by default.

    Raises:
        ValueError: The text is invalid, axes are duplicated or empty, or the device order is not a permutation.
    """
    axes: dict[str, int] = {}
    for part in text.split(","):
        match = _AXIS.fullmatch(part)
        if match is None:
            raise ValueError(f"{part.strip()!r} is not a mesh axis: write NAME=SIZE, as in dp=2,tp=4")
        if match[1] in axes:
            raise ValueError(f"the mesh has two axes {match[1]}")
        axes[match[1]] = int(match[2])
    return DeviceMesh(
        tuple(axes), tuple(axes.values()), None if device_order is None else tuple(device_order)
    )


@attrs.frozen
class DeviceMesh:
    """A grid of devices with named axes, which maps replica groups to the axes that they span."""

    names: tuple[str, ...]
    """Axis names, most major first."""
    sizes: tuple[int, ...]
    device_order: tuple[int, ...] | None = None
    """Device at each position, row-major, or None for 0, 1, 2, ..."""
    _places: dict[int, int] | None = attrs.field(default=None, eq=False, repr=False, init=False)
    _known: dict[ReplicaGroups, tuple[str, ...] | None] = attrs.field(
        factory=dict, eq=False, repr=False, init=False
    )

    def __attrs_post_init__(self) -> None:
        if any(size < 1 for size in self.sizes):
            raise ValueError("every axis of a mesh has at least one device")
        order = self.device_order
        if order is None:
            return
        if self.num_devices > MOST_DEVICES or sorted(order) != list(range(self.num_devices)):
            raise ValueError(f"the device order is not a permutation of {self.num_devices} devices")
        object.__setattr__(self, "_places", {device: place for place, device in enumerate(order)})

    @property
    def num_devices(self) -> int:
        """Number of devices: the product of the axis sizes."""
        return math.prod(self.sizes)

    @classmethod
    def of(cls, mesh: Mesh) -> DeviceMesh:
        """Converts the mesh of a sharding or of replica groups. Raises ValueError for invalid device ids."""
        ids = mesh.device_assignment
        order = tuple(itertools.islice(ids.devices(), MOST_DEVICES + 1)) if ids is not None else None
        return cls(mesh.axis_names, mesh.axis_sizes, order)

    def axes_of(self, groups: ReplicaGroups | Groups) -> tuple[str, ...] | None:
        """Returns the axes along which the devices of each group differ, such as `("dp",)`, most major first.

        Sub-axes are written as in XLA: `tp:(1)2` is the major sub-axis, of size 2, of an axis of size 4. The result is
        empty for groups of one device. It is None if there are no groups, if a device is not in the mesh, if the groups
        do not form a grid along the axes, or if a `ReplicaGroups` has more than 2^20 devices.
        """
        if isinstance(groups, ReplicaGroups):
            if groups not in self._known:
                count = groups.group_count * (groups.group_size or 1)
                self._known[groups] = self._axes_of(groups.groups()) if count <= MOST_DEVICES else None
            return self._known[groups]
        return self._axes_of(groups)

    def _axes_of(self, groups: Groups) -> tuple[str, ...] | None:
        grid: Grid | None = None
        seen: set[int] = set()
        firsts: list[int] = []
        for group in groups:
            places = self._places_of(group)
            if places is None or not seen.isdisjoint(places) or len(set(places)) != len(places):
                return None
            seen.update(places)
            found = grid_of(places)
            if found is None or (grid is not None and found != grid):
                return None
            grid = found
            firsts.append(places[0])
        return None if grid is None else self._named(grid, firsts)

    def _places_of(self, group: Sequence[int]) -> list[int] | None:
        if self._places is None:
            places = sorted(group)
            return places if places and places[0] >= 0 and places[-1] < self.num_devices else None
        if not group or any(device not in self._places for device in group):
            return None
        return sorted(self._places[device] for device in group)

    def _named(self, grid: Grid, firsts: Sequence[int]) -> tuple[str, ...] | None:
        """The axes and parts of axes that a grid of places goes along, minor ones found first."""
        parts: list[tuple[int, int, int]] = []  # number of the axis, devices before the part, devices in it
        strides = self._strides()
        for size, stride in grid:
            while size > 1:
                number = next(
                    (
                        n
                        for n, s in enumerate(strides)
                        if s <= stride < s * self.sizes[n] and self.sizes[n] > 1
                    ),
                    None,
                )
                if number is None or stride % strides[number]:
                    return None
                minor = stride // strides[number]
                if self.sizes[number] % minor:
                    return None
                left = self.sizes[number] // minor
                taken = min(size, left)
                if left % taken or size % taken:
                    return None
                parts.append((number, left // taken, taken))
                size //= taken
                stride = strides[number] * self.sizes[number]
        # A group that begins inside a part would run over its end into the next one.
        for number, before, taken in parts:
            step = strides[number] * (self.sizes[number] // before // taken)
            if any(first // step % taken for first in firsts):
                return None
        parts.sort()
        return tuple(
            self.names[number] if taken == self.sizes[number] else f"{self.names[number]}:({before}){taken}"
            for number, before, taken in parts
        )

    def _strides(self) -> list[int]:
        strides = [1]
        for size in self.sizes[:0:-1]:
            strides.append(strides[-1] * size)
        return strides[: len(self.sizes)][::-1]

    def shift_of(self, pairs: Iterable[Sequence[int]]) -> tuple[str, int] | None:
        """Returns the axis and the distance by which all pairs shift, such as `("pp", 1)`.

        The distance is taken around the axis in the shorter direction, so it may be negative. Returns None if there
        are no pairs, if two pairs differ in axis or distance, if a pair differs along no axis or several, or if a device
        is not in the mesh.
        """
        found: tuple[int, int] | None = None
        for pair in pairs:
            if len(pair) != 2:
                return None
            source, target = (self._coordinates(device) for device in pair)
            if source is None or target is None:
                return None
            differing = [n for n, (a, b) in enumerate(zip(source, target, strict=True)) if a != b]
            if len(differing) != 1:
                return None
            number = differing[0]
            shift = (target[number] - source[number]) % self.sizes[number]
            if found is None:
                found = number, shift
            elif found != (number, shift):
                return None
        if found is None:
            return None
        number, shift = found
        return self.names[number], shift if 2 * shift <= self.sizes[number] else shift - self.sizes[number]

    def axes_of_pairs(self, pairs: Iterable[Sequence[int]]) -> tuple[str, ...] | None:
        """Returns the axes along which source and target of any pair differ, or None if a device is not in the mesh."""
        differing: set[int] = set()
        for pair in pairs:
            places = [self._coordinates(device) for device in pair]
            if len(places) != 2 or places[0] is None or places[1] is None:
                return None
            differing.update(n for n, (a, b) in enumerate(zip(places[0], places[1], strict=True)) if a != b)
        return tuple(self.names[number] for number in sorted(differing))

    def _coordinates(self, device: int) -> tuple[int, ...] | None:
        place = device if self._places is None else self._places.get(device, -1)
        if not 0 <= place < self.num_devices:
            return None
        return tuple(place // stride % size for stride, size in zip(self._strides(), self.sizes, strict=True))

    def __str__(self) -> str:
        return ",".join(f"{name}={size}" for name, size in zip(self.names, self.sizes, strict=True))


Grid = tuple[tuple[int, int], ...]
"""Sizes and strides of the dimensions of a grid, the smallest stride first."""


def grid_of(places: Sequence[int]) -> Grid | None:
    """Returns the grid (size and stride per dimension) formed by ascending positions, or None if they form none."""
    rest = [place - places[0] for place in places]
    grid: list[tuple[int, int]] = []
    while len(rest) > 1:
        stride = rest[1]
        size = next((n for n in range(2, len(rest)) if rest[n] != n * stride), len(rest))
        if len(rest) % size:
            return None
        for start in range(0, len(rest), size):
            if any(rest[start + n] != rest[start] + n * stride for n in range(size)):
                return None
        if grid and grid[-1][0] * grid[-1][1] == stride:
            grid[-1] = (grid[-1][0] * size, grid[-1][1])
        else:
            grid.append((size, stride))
        rest = rest[::size]
    return tuple(grid)


_INVENTED = re.compile(r"axis_\d+")


def inferred_mesh(count: int, groups: Iterable[ReplicaGroups]) -> DeviceMesh | None:
    """Returns the mesh of `count` devices in which all groups lie along axes, named `axis_0`, `axis_1`, ..., major
    first.

    Every stride of the groups is an axis boundary. Returns None if the strides do not divide each other.
    """
    ends = {1, count}
    for one in groups:
        if one.group_count * (one.group_size or 1) > MOST_DEVICES:
            continue
        for group in one.groups():
            grid = grid_of(sorted(group))
            if grid is None:
                break
            ends.update(end for size, stride in grid for end in (stride, stride * size))
    ordered = sorted(ends)
    if not ordered[0] or ordered[-1] != count or any(b % a for a, b in itertools.pairwise(ordered)):
        return None
    sizes = tuple(b // a for a, b in itertools.pairwise(ordered))[::-1]
    return DeviceMesh(tuple(f"axis_{n}" for n in range(len(sizes))), sizes)


def is_invented(axis: str) -> bool:
    """Returns True for a generated name such as `axis_0`, which XLA also gives to the axes of meshes that it infers."""
    return _INVENTED.fullmatch(axis) is not None


_SHARDY_MESH = re.compile(r"#sdy\.mesh<\[([^\]]*)\](?:\s*,\s*device_ids\s*=\s*\[([^\]]*)\])?>")
_SHARDY_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"\s*=\s*([0-9]{1,9})')


def shardy_meshes(text: str) -> Iterator[DeviceMesh]:
    """Yields the meshes with axes in the frontend attribute `xla.sdy.meshes`."""
    for match in _SHARDY_MESH.finditer(text):
        axes = _SHARDY_AXIS.findall(match[1])
        try:
            order = tuple(map(int, match[2].split(","))) if match[2] else None
            if axes:
                yield DeviceMesh(tuple(name for name, _ in axes), tuple(int(size) for _, size in axes), order)
        except ValueError:
            continue
