"""Device of each tile: a list of device ids, or a transposed 0, 1, 2, ... kept symbolic."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from hlotext.ir.values.value import Value

MOST_DEVICES = 1 << 20
"""Maximum number of tiles for which device ids are enumerated."""


@attrs.frozen(repr=False)
class DeviceList(Value):
    """Explicit device ids: `[2,2]0,1,3,2` (XLA's V1 tile assignment).

    As in XLA's parser, their number is not compared with the dimensions.
    """

    dimensions: tuple[int, ...]
    """Number of tiles along each dimension."""
    device_ids: tuple[int, ...]
    """Row-major over `dimensions`."""

    @property
    def num_devices(self) -> int:
        """Number of tiles: the product of the dimensions."""
        return math.prod(self.dimensions)

    def devices(self) -> Iterator[int]:
        """Yields the device ids as given, row-major."""
        return iter(self.device_ids)

    def canonical(self) -> DeviceList:
        """Returns the assignment with one device id per tile: a short list is padded with 0, a long one is cut.

        Returned unchanged if it would have more than 2^20 ids.
        """
        count = self.num_devices
        if len(self.device_ids) == count or count > MOST_DEVICES:
            return self
        ids = self.device_ids[:count]
        return attrs.evolve(self, device_ids=ids + (0,) * (count - len(ids)))

    def transposed(self, permutation: tuple[int, ...], dimensions: tuple[int, ...]) -> DeviceList:
        """Returns the assignment with permuted dimensions (new dimension i is old `permutation[i]`), reshaped to
        `dimensions`.
        """
        order = IotaTileAssignment(dimensions, self.dimensions, permutation).devices()
        return DeviceList(dimensions, tuple([self.device_ids[i] for i in order]))

    def __str__(self) -> str:
        return f"[{','.join(map(str, self.dimensions))}]{','.join(map(str, self.device_ids))}"


@attrs.frozen(repr=False)
class IotaTileAssignment(Value):
    """Device ids 0, 1, 2, ... reshaped, transposed and reshaped again: `[4,2]<=[2,2,2]T(2,1,0)`.

    Takes the same time and memory for any number of devices: ids are only enumerated by `devices`.
    """

    dimensions: tuple[int, ...]
    """Number of tiles along each dimension."""
    reshape_dims: tuple[int, ...]
    """The shape into which the device numbers are first put, row-major."""
    transpose_perm: tuple[int, ...] = attrs.field()
    """For each dimension of the transposed shape, which of `reshape_dims` it is."""

    @transpose_perm.default
    def _no_transpose(self) -> tuple[int, ...]:
        return tuple(range(len(self.reshape_dims)))

    @property
    def num_devices(self) -> int:
        """Number of device ids: the product of `reshape_dims`."""
        return math.prod(self.reshape_dims)

    def devices(self) -> Iterator[int]:
        """Yields the device ids, row-major over `dimensions`."""
        axes = _merged(self.reshape_dims, self.transpose_perm)
        size, stride = axes[-1] if axes else (1, 1)
        if any(not n for n, _ in axes):
            return
        outer = axes[:-1]
        counters = [0] * len(outer)
        base, left = 0, math.prod(self.dimensions)
        while left > 0:
            yield from range(base, base + min(size, left) * stride, stride)
            left -= size
            for i in range(len(outer) - 1, -1, -1):
                counters[i] += 1
                base += outer[i][1]
                if counters[i] < outer[i][0]:
                    break
                base -= outer[i][0] * outer[i][1]
                counters[i] = 0
            else:
                return

    def canonical(self) -> IotaTileAssignment:
        """Returns the assignment with the fewest reshape dimensions (`CanonicalizeIotaDims`): `[2,2]T(0,1)` is `[4]`."""
        axes = _merged(self.reshape_dims, self.transpose_perm)
        if not axes:
            return attrs.evolve(self, reshape_dims=(self.num_devices,), transpose_perm=(0,))
        return _from_axes(self.dimensions, axes)

    def transposed(
        self, permutation: tuple[int, ...], dimensions: tuple[int, ...]
    ) -> IotaTileAssignment | None:
        """Returns the assignment with permuted dimensions (new dimension i is old `permutation[i]`), reshaped to
        `dimensions`.

        The product of the dimensions must be the number of devices. Returns None if the result is not an iota, because
        a dimension ends inside a reshaped one.
        """
        moved = [number for number in permutation if self.dimensions[number] != 1]
        if moved == sorted(moved):
            return attrs.evolve(self, dimensions=dimensions)
        pieces = _cut(self.dimensions, _merged(self.reshape_dims, self.transpose_perm))
        if pieces is None:
            return None
        return _from_axes(dimensions, [axis for number in moved for axis in pieces[number]])

    def sorted_in_groups(self, size: int) -> IotaTileAssignment | None:
        """Returns the assignment with each `size` consecutive device ids sorted, or None if the result is not an iota."""
        axes = _merged(self.reshape_dims, self.transpose_perm)
        inside: list[tuple[int, int]] = []
        while size > 1:
            count, stride = axes.pop()
            if size % count == 0:
                inside.append((count, stride))
                size //= count
            elif count % size == 0:
                axes.append((count // size, stride * size))
                inside.append((size, stride))
                size = 1
            else:
                return None
        inside.sort(key=lambda axis: -axis[1])
        return _from_axes(self.dimensions, axes + inside)

    def device_list(self) -> DeviceList:
        """Returns the equivalent explicit list of device ids."""
        return DeviceList(self.dimensions, tuple(self.devices()))

    def pieces(self) -> list[list[tuple[int, int]]] | None:
        """Returns the parts of each dimension as (size, stride of the device ids), major to minor.

        Returns None if a dimension ends inside a reshaped one, so that its parts have no constant stride.
        """
        return _cut(self.dimensions, _merged(self.reshape_dims, self.transpose_perm))

    @property
    def iota_text(self) -> str:
        """Text after `<=`: `[4]` or `[2,4]T(1,0)`."""
        reshape = f"[{','.join(map(str, self.reshape_dims))}]"
        return (
            reshape
            if len(self.reshape_dims) == 1
            else f"{reshape}T({','.join(map(str, self.transpose_perm))})"
        )

    def __str__(self) -> str:
        return f"[{','.join(map(str, self.dimensions))}]<={self.iota_text}"


def _merged(reshape_dims: tuple[int, ...], perm: tuple[int, ...]) -> list[tuple[int, int]]:
    """(size, stride) of each transposed dimension; those of size 1 left out, adjoining ones merged."""
    strides = [1] * len(reshape_dims)
    for i in range(len(reshape_dims) - 2, -1, -1):
        strides[i] = strides[i + 1] * reshape_dims[i + 1]
    axes: list[tuple[int, int]] = []
    for number in perm:
        size, stride = reshape_dims[number], strides[number]
        if size == 1:
            continue
        if axes and axes[-1][1] == size * stride:
            axes[-1] = (axes[-1][0] * size, stride)
        else:
            axes.append((size, stride))
    return axes


def _from_axes(dimensions: tuple[int, ...], axes: list[tuple[int, int]]) -> IotaTileAssignment:
    """The canonical iota whose transposed dimensions have these sizes and strides."""
    merged: list[tuple[int, int]] = []
    for size, stride in axes:
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    # The larger the stride, the more major is the dimension before the transposition.
    majority = sorted(range(len(merged)), key=lambda i: -merged[i][1])
    perm = tuple(majority.index(i) for i in range(len(merged)))
    return IotaTileAssignment(dimensions, tuple(merged[i][0] for i in majority), perm)


def _cut(dimensions: tuple[int, ...], axes: list[tuple[int, int]]) -> list[list[tuple[int, int]]] | None:
    """The (size, stride) pieces of each dimension, major to minor; None if one cuts an axis unevenly."""
    left = axes[::-1]
    pieces: list[list[tuple[int, int]]] = []
    for dimension in dimensions:
        piece: list[tuple[int, int]] = []
        while dimension > 1:
            size, stride = left.pop()
            if dimension % size == 0:
                piece.append((size, stride))
                dimension //= size
            elif size % dimension == 0:
                size //= dimension
                piece.append((dimension, stride * size))
                left.append((size, stride))
                dimension = 1
            else:
                return None
        pieces.append(piece)
    return pieces
