"""From index to position and back: the closed formula against the definition, on random layouts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hlotext as hlo
from hlotext import layout
from tests.layout_cases import PADDING, all_indices, memory_by_definition, shapes

TILED_DEEP = hlo.parse_shape("f32[4,6,10]{2,1,0:T(2,4)(3,2,2)}")


@given(shapes())
@example(TILED_DEEP)
@example(hlo.parse_shape("f32[]{:T(2,3)}"))
@example(hlo.parse_shape("f32[0,3]{1,0:T(2,2)L(8)}"))
@example(hlo.parse_shape("f32[2,7,3,11,10]{4,3,2,1,0:T(*,*,2,*,3)}"))
def test_every_element_lies_where_the_definition_says(shape: hlo.Shape) -> None:
    memory = memory_by_definition(shape)
    positions = layout.linear_indices(shape, all_indices(shape))
    assert layout.allocated_elements(shape) == len(memory)
    assert len(set(positions.tolist())) == len(positions)
    assert memory[positions].tolist() == list(range(len(positions)))
    assert int((memory != PADDING).sum()) == len(positions)


@given(shapes())
@example(TILED_DEEP)
def test_index_at_inverts_linear_index(shape: hlo.Shape) -> None:
    memory = memory_by_definition(shape)
    indices = [tuple(index) for index in all_indices(shape).tolist()]
    found = [layout.index_at(shape, position) for position in range(len(memory))]
    assert found == [None if number == PADDING else indices[number] for number in memory]
    assert all(
        layout.linear_index(shape, index) == position
        for position, index in enumerate(found)
        if index is not None
    )


@given(shapes())
def test_many_positions_at_once(shape: hlo.Shape) -> None:
    positions = np.arange(layout.allocated_elements(shape))
    found = layout.indices_at(shape, positions)
    assert found.dtype == np.int64
    assert found.shape == (len(positions), shape.rank)
    one_by_one = [layout.index_at(shape, position) for position in positions.tolist()]
    assert [tuple(row) for row in found.tolist()] == [
        index or (PADDING,) * shape.rank for index in one_by_one
    ]


@given(shapes(least_size=1), st.integers(0, 100))
def test_offsets_of_one_and_of_many_agree(shape: hlo.Shape, number: int) -> None:
    indices = all_indices(shape)
    index = tuple(indices[number % len(indices)].tolist())
    bits = layout.placement(shape).element_bits
    assert layout.bit_offset(shape, index) == layout.linear_index(shape, index) * bits
    assert layout.byte_offset(shape, index) == layout.bit_offset(shape, index) // 8
    assert layout.byte_offsets(shape, [index]).tolist() == [layout.byte_offset(shape, index)]
    assert layout.bit_offsets(shape, [index]).tolist() == [layout.bit_offset(shape, index)]
    assert index in layout.indices_at_byte(shape, layout.byte_offset(shape, index))


@pytest.mark.parametrize(
    "text",
    [
        "bf16[300,200]{1,0:T(8,128)(2,1)}",
        "bf16[100000,70000]{0,1:T(8,128)(2,1)}",
        "f32[3,1000000007]{1,0}",
        "s8[1000000007]{0:T(1024)(128)(4,1)}",
        "s4[100000,300]{1,0:T(8,128)(8,1)E(4)}",
        "f32[100000,300]{1,0:T(100000,3)}",
        "f32[70000,300,4]{2,1,0:T(*,8,128)}",
    ],
)
def test_large_dimensions(text: str) -> None:
    """However many offsets are found (tables, periods, divisions), they are those of the single ones."""
    shape = hlo.parse_shape(text)
    rng = np.random.default_rng(1)
    indices = np.stack([rng.integers(0, size, 200_000) for size in shape.dimensions], -1)
    indices[-1] = np.array(shape.dimensions) - 1
    positions, offsets = layout.linear_indices(shape, indices), layout.byte_offsets(shape, indices)
    for row in (*range(50), -1):
        index = indices[row].tolist()
        assert positions[row] == layout.linear_index(shape, index)
        assert offsets[row] == layout.byte_offset(shape, index)
    few = slice(0, 300)
    assert layout.linear_indices(shape, indices[few]).tolist() == positions[few].tolist()
    assert layout.indices_at(shape, positions[few]).tolist() == indices[few].tolist()


def test_shape_of_the_result() -> None:
    """Indices of shape (..., rank), of every integer type, give offsets of shape (...)."""
    shape = hlo.parse_shape("f32[3,5]{1,0:T(2,2)}")
    for dtype in (np.int8, np.uint8, np.int32, np.uint64, np.int64):
        found = layout.byte_offsets(shape, np.array([[[2, 3]], [[0, 1]]], dtype))
        assert found.dtype == np.int64
        assert found.tolist() == [[68], [4]]
    assert layout.byte_offsets(shape, np.zeros((0, 2))).shape == (0,)
    assert layout.byte_offsets(shape, (2, 3)).tolist() == 68
    assert layout.byte_offsets(hlo.parse_shape("f32[]{:T(128)}"), np.zeros((4, 0))).tolist() == [0, 0, 0, 0]
    assert layout.byte_offsets(shape, np.asfortranarray([[2, 3], [0, 1]])).tolist() == [68, 4]


def test_packed_elements_share_a_byte() -> None:
    shape = hlo.parse_shape("s4[3,5]{1,0:E(4)}")
    assert layout.indices_at_byte(shape, 0) == ((0, 0), (0, 1))
    assert layout.indices_at_byte(shape, 7) == ((2, 4),)
    assert layout.indices_at_byte(hlo.parse_shape("f32[3,5]{1,0:T(2,2)}"), 37) == (None,)


def test_shapes_that_are_read_alike() -> None:
    """No layout is the descending one; bounds count as sizes; a buffer is the array inside."""
    assert layout.linear_index(hlo.parse_shape("f32[2,3]"), (1, 0)) == 3
    assert layout.linear_index(hlo.parse_shape("f32[<=2,<=3]{0,1}"), (1, 0)) == 1
    assert layout.linear_index(hlo.parse_shape("b(f32[2,3]{0,1})"), (0, 1)) == 2
    assert layout.index_at(hlo.parse_shape("b(f32[2,3]{0,1})"), 2) == (0, 1)
