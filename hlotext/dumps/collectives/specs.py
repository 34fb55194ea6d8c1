"""PartitionSpecs: from device numbers to the names of mesh axes, and what they make of a shape."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

import hlotext as hlo
from hlotext.analysis import DeviceMesh
from hlotext.ir.values.sharding import OpSharding, Sharding
from hlotext.ir.values.tile_assignment import MOST_DEVICES

Dims = tuple[int, ...]


@attrs.frozen
class Spec:
    """The mesh axes that shard each dimension of an array, most major first, as in a `PartitionSpec`."""

    axes: tuple[tuple[str, ...], ...]

    @property
    def rank(self) -> int:
        return len(self.axes)

    @property
    def used(self) -> tuple[str, ...]:
        """All axes that shard a dimension, in order of dimensions."""
        return tuple(axis for dimension in self.axes for axis in dimension)

    def dimension_of(self, axis: str) -> int | None:
        """Returns the dimension that an axis shards, or None if it shards none."""
        return next((n for n, dimension in enumerate(self.axes) if axis in dimension), None)

    def without(self, axes: Sequence[str]) -> Spec:
        """Returns the spec with these axes removed from every dimension."""
        return Spec(tuple(tuple(a for a in dimension if a not in axes) for dimension in self.axes))

    def moved(self, axis: str, dimension: int) -> Spec:
        """Returns the spec with an axis moved to the minor end of a dimension."""
        rest = list(self.without((axis,)).axes)
        rest[dimension] = (*rest[dimension], axis)
        return Spec(tuple(rest))

    def local(self, dimensions: Sequence[int], mesh: DeviceMesh) -> Dims:
        """Returns the sizes on one device, rounding up uneven dimensions."""
        sizes = dict(zip(mesh.names, mesh.sizes, strict=True))
        return tuple(
            -(-size // math.prod(sizes[a] for a in cut))
            for size, cut in zip(dimensions, self.axes, strict=True)
        )

    def leaves_none_empty(self, dimensions: Sequence[int], mesh: DeviceMesh) -> bool:
        """Returns True if every device has a nonempty part of every dimension."""
        sizes = dict(zip(mesh.names, mesh.sizes, strict=True))
        return all(
            size >= math.prod(sizes[a] for a in cut)
            for size, cut in zip(dimensions, self.axes, strict=True)
            if cut
        )

    def divides(self, dimensions: Sequence[int], mesh: DeviceMesh) -> bool:
        """Returns True if every dimension is divided evenly, as JAX requires of arguments."""
        sizes = dict(zip(mesh.names, mesh.sizes, strict=True))
        return all(
            not size % math.prod(sizes[a] for a in cut)
            for size, cut in zip(dimensions, self.axes, strict=True)
        )

    def text(self, is_open: Sequence[bool]) -> str | None:
        """Formats the spec with open dimensions as unconstrained; None if an open dimension has axes."""
        if any(cut and free for cut, free in zip(self.axes, is_open, strict=True)):
            return None
        entries = (
            "P.UNCONSTRAINED" if free else _entry(cut) for cut, free in zip(self.axes, is_open, strict=True)
        )
        return f"P({', '.join(entries)})"

    def __str__(self) -> str:
        return f"P({', '.join(map(_entry, self.axes))})"


def _entry(axes: tuple[str, ...]) -> str:
    if not axes:
        return "None"
    return repr(axes[0]) if len(axes) == 1 else f"({', '.join(map(repr, axes))})"


def replicated(rank: int) -> Spec:
    """Returns the spec without axes."""
    return Spec(((),) * rank)


class Specs:
    """Converts shardings to specs on one mesh. Results are cached."""

    def __init__(self, mesh: DeviceMesh) -> None:
        self.mesh = mesh
        self._known: dict[tuple[Sharding, int], Spec | None] = {}
        self._axes = [n for n, size in enumerate(mesh.sizes) if size > 1]

    def of(self, sharding: Sharding | None, rank: int) -> Spec | None:
        """Returns the spec of a sharding, where None means replicated; None if no PartitionSpec expresses it."""
        if sharding is None:
            return replicated(rank)
        key = sharding, rank
        if key not in self._known:
            self._known[key] = self._found(sharding, rank)
        return self._known[key]

    def _found(self, sharding: Sharding, rank: int) -> Spec | None:
        if sharding.is_tuple:
            return None
        try:
            plain = sharding.without_mesh().canonical()
        except ValueError:
            return None
        if not isinstance(plain, OpSharding):
            return None
        if plain.is_replicated:
            return replicated(rank)
        if not plain.is_tiled or plain.tile_assignment is None or plain.num_devices != self.mesh.num_devices:
            return None
        if len(plain.tile_dimensions) != rank or any(
            one.value.lower() not in ("replicated",) for one in plain.subgroup_types
        ):
            return None
        if self.mesh.num_devices > MOST_DEVICES:
            return None
        return self._placed(plain)

    def _placed(self, plain: OpSharding) -> Spec | None:
        """For each dimension the axes whose coordinates make up the number of the tile."""
        mesh, tiles = self.mesh, plain.tile_dimensions
        devices = np.fromiter(plain.devices(), dtype=np.int64)
        if len(devices) != mesh.num_devices or sorted(devices.tolist()) != list(range(len(devices))):
            return None
        place = np.empty(len(devices), dtype=np.int64)
        place[devices] = np.arange(len(devices))
        order = np.arange(mesh.num_devices) if mesh.device_order is None else np.asarray(mesh.device_order)
        grid = place[order]  # for each place of the mesh the number of its tile
        sharing = mesh.num_devices // math.prod(tiles)
        found: list[tuple[str, ...]] = []
        rest = grid // sharing
        coordinates: list[np.ndarray] = []
        for count in reversed(tiles):
            coordinates.append((rest % count).reshape(mesh.sizes or (1,)))
            rest = rest // count
        for count, tile in zip(tiles, reversed(coordinates), strict=True):
            axes = self._axes_of(tile, count)
            if axes is None:
                return None
            found.append(axes)
        return Spec(tuple(found))

    def _axes_of(self, tile: np.ndarray, count: int) -> tuple[str, ...] | None:
        if count == 1:
            return ()
        zero = (0,) * tile.ndim
        strides = []
        for axis in self._axes:
            step = int(tile[tuple(int(n == axis) for n in range(tile.ndim))] - tile[zero])
            if step:
                strides.append((step, axis))
        strides.sort(reverse=True)
        wanted = np.zeros(tile.shape, dtype=np.int64)
        left = count
        for step, axis in strides:
            size = self.mesh.sizes[axis]
            if left % size or left // size != step:
                return None
            left = step
            shape = [1] * tile.ndim
            shape[axis] = size
            wanted = wanted + step * np.arange(size).reshape(shape)
        if left != 1 or not np.array_equal(wanted, tile):
            return None
        return tuple(self.mesh.names[axis] for _, axis in strides)


def placements(have: Spec, axes: Sequence[str], others: Sequence[str] = ()) -> Iterator[tuple[int, Spec]]:
    """Yields the specs reachable from `have` by moving or dropping some of these axes, with the number of changed axes,
    fewest first.

    `others` are axes that the new spec may also use, although the collective does not run along them.
    """
    found: dict[Spec, int] = {have: 0}
    for axis in dict.fromkeys((*axes, *others)):
        for spec, cost in list(found.items()):
            if spec.dimension_of(axis) is not None:
                found.setdefault(spec.without((axis,)), cost + 1)
            for dimension in range(spec.rank):
                if spec.dimension_of(axis) != dimension:
                    found.setdefault(spec.moved(axis, dimension), cost + 1)
    del found[have]
    yield from sorted(((cost, spec) for spec, cost in found.items()), key=lambda pair: pair[0])


def dimensions_of(node: hlo.Instruction) -> Dims | None:
    """Returns the dimension sizes of an array, or None for tuples and unknown shapes."""
    shape = node.shape
    return tuple(shape.dimensions) if shape is not None and shape.is_array else None


def whole(axes: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the mesh axes of these axes or sub-axes, without duplicates."""
    return tuple(dict.fromkeys(axis.partition(":")[0] for axis in axes))
