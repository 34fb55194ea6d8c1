"""Device numbers of iotas against numpy, and that nothing is enumerated before it is asked for."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hlotext.ir.values.tile_assignment import MOST_DEVICES, DeviceList, IotaTileAssignment

RESHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple)


@st.composite
def iotas(draw: st.DrawFn) -> IotaTileAssignment:
    """Any iota of up to 4^5 devices, its dimensions a cut of the transposed ones."""
    reshape = draw(RESHAPES)
    perm = tuple(draw(st.permutations(range(len(reshape)))))
    dims = tuple(reshape[i] for i in perm) if draw(st.booleans()) else (math.prod(reshape),)
    return IotaTileAssignment(dims, reshape, perm)


def by_numpy(iota: IotaTileAssignment) -> list[int]:
    """What the text means, done literally."""
    numbers = np.arange(math.prod(iota.reshape_dims)).reshape(iota.reshape_dims)
    return [int(number) for number in numbers.transpose(iota.transpose_perm).ravel()]


@given(iotas())
def test_devices(iota: IotaTileAssignment) -> None:
    """Devices come in the order of the transposed array."""
    expected = by_numpy(iota)
    assert expected == list(iota.devices())
    assert DeviceList(iota.dimensions, tuple(expected)) == iota.device_list()
    assert iota.num_devices == len(expected)


@given(iotas())
def test_canonical(iota: IotaTileAssignment) -> None:
    """The canonical form has the same devices, and is its own canonical form."""
    canonical = iota.canonical()
    assert by_numpy(iota) == list(canonical.devices())
    assert canonical == canonical.canonical()
    assert len(canonical.reshape_dims) <= len(iota.reshape_dims)


@given(iotas(), st.data())
def test_transposed(iota: IotaTileAssignment, data: st.DataObject) -> None:
    """Transposing the dimensions of the symbolic form gives what transposing the list gives."""
    permutation = tuple(data.draw(st.permutations(range(len(iota.dimensions)))))
    dims = tuple(iota.dimensions[i] for i in permutation)
    numbers = np.array(by_numpy(iota)).reshape(iota.dimensions).transpose(permutation)
    expected = DeviceList(dims, tuple(int(number) for number in numbers.ravel()))
    assert expected == iota.device_list().transposed(permutation, dims)
    moved = iota.transposed(permutation, dims)
    assert moved is None or expected == moved.device_list()


@given(iotas(), st.integers(1, 64))
def test_sorted_in_groups(iota: IotaTileAssignment, size: int) -> None:
    """Sorting each group symbolically gives what sorting the list gives."""
    if iota.num_devices % size == 0:
        devices = by_numpy(iota)
        groups = [sorted(devices[start : start + size]) for start in range(0, len(devices), size)]
        in_order = iota.sorted_in_groups(size)
        assert in_order is None or list(itertools.chain.from_iterable(groups)) == list(in_order.devices())


def test_nothing_is_enumerated_before_it_is_asked_for() -> None:
    """Huge iotas and lists are printed, compared, simplified and begun without a list of their devices."""
    huge = IotaTileAssignment((10**9, 10**9), (10**9, 10**9), (1, 0))
    assert str(huge) == "[1000000000,1000000000]<=[1000000000,1000000000]T(1,0)"
    assert huge == huge.canonical()
    assert huge.num_devices == 10**18
    assert list(itertools.islice(huge.devices(), 3)) == [0, 10**9, 2 * 10**9]
    short = DeviceList((MOST_DEVICES + 1,), (0, 1))
    assert short == short.canonical()


def test_there_are_no_devices_beyond_the_last_tile() -> None:
    assert list(IotaTileAssignment((2, 4), (2**63 - 1, 2), (1, 0)).devices()) == [0, 2, 4, 6, 8, 10, 12, 14]


def test_a_list_is_filled_up_or_cut() -> None:
    """The canonical list has one device for each tile."""
    assert DeviceList((2, 2), (3, 1)).canonical() == DeviceList((2, 2), (3, 1, 0, 0))
    assert DeviceList((2,), (3, 1, 2)).canonical() == DeviceList((2,), (3, 1))
