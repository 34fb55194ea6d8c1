"""The bytes of a slice, against its elements one by one."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlotext as hlo
from hlotext import layout
from hlotext.layout import SliceRange
from tests.layout_cases import shapes

TILED = hlo.parse_shape("f32[17,130]{1,0:T(8,128)}")


@st.composite
def slices(draw: Any) -> tuple[hlo.Shape, list[SliceRange]]:
    """A shape and a slice of it, often whole dimensions, sometimes with strides, sometimes empty."""
    shape = draw(shapes())
    ranges = []
    for size in shape.dimensions:
        if draw(st.booleans()):
            ranges.append(SliceRange(0, size))
        else:
            start = draw(st.integers(0, size))
            ranges.append(
                SliceRange(start, draw(st.integers(start, size)), draw(st.sampled_from([1, 1, 2, 3, 2**70])))
            )
    return shape, ranges


def bytes_by_definition(shape: hlo.Shape, ranges: list[SliceRange]) -> list[list[int]]:
    """Runs of the bytes in which the slice's elements have a bit."""
    bits = layout.placement(shape).element_bits
    indices = itertools.product(*(range(r.start, r.limit, r.stride) for r in ranges))
    positions = [layout.linear_index(shape, index) for index in indices]
    touched = sorted(
        {byte for p in positions for byte in range(p * bits // 8, ((p + 1) * bits - 1) // 8 + 1)}
    )
    runs: list[list[int]] = []
    for byte in touched:
        if runs and runs[-1][1] == byte:
            runs[-1][1] = byte + 1
        else:
            runs.append([byte, byte + 1])
    return runs


@given(slices())
def test_runs_are_the_bytes_of_the_elements(given_slice: tuple[hlo.Shape, list[SliceRange]]) -> None:
    shape, ranges = given_slice
    found = layout.byte_ranges(shape, ranges)
    assert found.dtype == np.int64
    assert found.tolist() == bytes_by_definition(shape, ranges)


@pytest.mark.parametrize(
    ("ranges", "runs"),
    [
        ([(0, 8), (0, 128)], [[0, 4096]]),
        ([(0, 8), (128, 130)], [[4096 + 512 * row, 4096 + 512 * row + 8] for row in range(8)]),
        ([(16, 17), (0, 130)], [[16384, 16896], [20480, 20488]]),
        ([(3, 3), (0, 130)], []),
        ([(0, 17, 8), (0, 1)], [[0, 4], [8192, 8196], [16384, 16388]]),
    ],
)
def test_worked_slices(ranges: list[tuple[int, ...]], runs: list[list[int]]) -> None:
    assert layout.byte_ranges(TILED, ranges).tolist() == runs


def test_scalar() -> None:
    assert layout.byte_ranges(hlo.parse_shape("f32[]{:T(128)}"), []).tolist() == [[0, 4]]


@pytest.mark.parametrize(
    ("ranges", "problem"),
    [
        ([(0, 17)], "the slice of .*has length 1, not 2"),
        ([(0, 18), (0, 1)], r"range of dimension 0 .*\[0:18\] is out of range"),
        ([(0, 1), (5, 4)], r"range of dimension 1 .*\[5:4\] is out of range"),
        ([(-1, 1), (0, 1)], "range of dimension 0 .*is out of range"),
        ([(0, 1, 0), (0, 1)], r"\[0:1:0\] has a stride of less than 1"),
        ([(0, 1), (0,)], "needs a start, a limit"),
        ([(0, 1), (0, 1.5)], "is not an integer"),
    ],
)
def test_bad_slices(ranges: list[Any], problem: str) -> None:
    with pytest.raises(layout.LayoutError, match=problem):
        layout.byte_ranges(TILED, ranges)


def test_too_many_runs() -> None:
    """A slice in a thousand billion pieces is refused before any of them is made; a limit can be set."""
    shape = hlo.parse_shape("f32[1000000,1000000]{1,0}")
    tracemalloc.start()
    for strided in ([(0, 10**6), (0, 10**6, 2)], [(0, 10**6, 2), (0, 10**6, 2)]):
        with pytest.raises(layout.LayoutError, match="more than 1048576 separate runs"):
            layout.byte_ranges(shape, strided)
    assert len(layout.byte_ranges(shape, [(0, 10**6), (0, 1)])) == 10**6
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 << 20
    with pytest.raises(layout.LayoutError, match="more than 999 separate runs"):
        layout.byte_ranges(shape, [(0, 1000), (0, 1)], max_runs=999)
    assert len(layout.byte_ranges(shape, [(0, 1000), (0, 1)], max_runs=1000)) == 1000


def test_slice_text() -> None:
    assert [str(SliceRange(0, 8)), str(SliceRange(0, 8, 2))] == ["[0:8]", "[0:8:2]"]
