"""Which device holds which tile: a list of device ids, or a transposed 0, 1, 2, ... kept symbolic."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs


@attrs.frozen
class DeviceList:
    """Device ids written one by one: `[2,2]0,1,3,2` (XLA's V1 tile assignment).

    XLA's reader does not compare their number with the dimensions, so neither does this class.
    """

    dimensions: tuple[int, ...]
    """Number of tiles along each dimension."""
    device_ids: tuple[int, ...]
    """Row-major over `dimensions`."""

    @property
    def num_devices(self) -> int:
        """How many tiles there are: the product of the dimensions."""
        return math.prod(self.dimensions)

    def devices(self) -> Iterator[int]:
        """The device ids as given, row-major."""
        return iter(self.device_ids)

    def canonical(self) -> DeviceList:
        """With as many device ids as tiles: XLA fills a short list up with 0 and cuts a long one."""
        count = self.num_devices
        if len(self.device_ids) == count:
            return self
        ids = self.device_ids[:count]
        return attrs.evolve(self, device_ids=ids + (0,) * (count - len(ids)))

    def transposed(self, permutation: tuple[int, ...], dimensions: tuple[int, ...]) -> DeviceList:
        """Dimensions permuted (new dimension i is old `permutation[i]`), then reshaped to `dimensions`."""
        order = IotaTileAssignment(dimensions, self.dimensions, permutation).devices()
        return DeviceList(dimensions, tuple([self.device_ids[i] for i in order]))

    def __str__(self) -> str:
        return f"[{','.join(map(str, self.dimensions))}]{','.join(map(str, self.device_ids))}"


@attrs.frozen
class IotaTileAssignment:
    """0, 1, 2, ... reshaped, transposed and reshaped again: `[4,2]<=[2,2,2]T(2,1,0)`.

    Costs the same for two devices and for two billion: nothing is enumerated until asked for.
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
        """How many device ids there are: the product of the reshaped dimensions."""
        return math.prod(self.reshape_dims)

    def devices(self) -> Iterator[int]:
        """The device ids one after the other, row-major over `dimensions`."""
        axes = _merged(self.reshape_dims, self.transpose_perm)
        size, stride = axes[-1] if axes else (1, 1)
        if any(not n for n, _ in axes):
            return
        outer = axes[:-1]
        counters = [0] * len(outer)
        base = 0
        while True:
            yield from range(base, base + size * stride, stride)
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
        """With the fewest reshape dimensions (`CanonicalizeIotaDims`): `[2,2]T(0,1)` is `[4]`."""
        axes = _merged(self.reshape_dims, self.transpose_perm)
        if not axes:
            return attrs.evolve(self, reshape_dims=(self.num_devices,), transpose_perm=(0,))
        # Back from sizes and strides to a shape: the larger stride is the more major dimension.
        majority = sorted(range(len(axes)), key=lambda i: -axes[i][1])
        perm = tuple(majority.index(i) for i in range(len(axes)))
        return attrs.evolve(self, reshape_dims=tuple(axes[i][0] for i in majority), transpose_perm=perm)

    def transposed(
        self, permutation: tuple[int, ...], dimensions: tuple[int, ...]
    ) -> IotaTileAssignment | None:
        """Dimensions permuted (new dimension i is old `permutation[i]`), then reshaped to `dimensions`.

        None where that order is no iota's, because a dimension does not end where reshaped ones do.
        """
        pieces = _split(self.dimensions, _merged(self.reshape_dims, self.transpose_perm))
        if pieces is None:
            return None
        axes = [axis for dimension in permutation for axis in pieces[dimension] if axis[0] != 1]
        majority = sorted(range(len(axes)), key=lambda i: -axes[i][1])
        perm = tuple(majority.index(i) for i in range(len(axes)))
        return IotaTileAssignment(dimensions, tuple(axes[i][0] for i in majority), perm).canonical()

    def device_list(self) -> DeviceList:
        """The same with every device id written out."""
        return DeviceList(self.dimensions, tuple(self.devices()))

    @property
    def iota_text(self) -> str:
        """What follows `<=`: `[4]` or `[2,4]T(1,0)`."""
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


def _split(dimensions: tuple[int, ...], axes: list[tuple[int, int]]) -> list[list[tuple[int, int]]] | None:
    """The (size, stride) pieces of each dimension, major to minor; None where one cuts an axis unevenly."""
    left = axes[::-1]
    pieces: list[list[tuple[int, int]]] = []
    for dimension in reversed(dimensions):
        piece: list[tuple[int, int]] = []
        while dimension > 1:
            if not left:
                return None
            size, stride = left.pop(0)
            if dimension % size == 0:
                piece.insert(0, (size, stride))
                dimension //= size
            elif size % dimension == 0:
                piece.insert(0, (dimension, stride))
                left.insert(0, (size // dimension, stride * dimension))
                dimension = 1
            else:
                return None
        pieces.insert(0, piece)
    return None if left else pieces
