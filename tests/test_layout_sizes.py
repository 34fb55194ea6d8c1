"""Sizes: worked numbers, and what the TPU compiler reports for more than a thousand arrays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

import hlotext as hlo
from hlotext import layout
from tests import support
from tests.layout_cases import shapes

FOLDER = support.DATA / "layout"
VECTORS: dict[str, list[dict[str, Any]]] = json.loads((FOLDER / "vectors.json").read_text())
TPU = [
    (kind, shape, int(size))
    for kind, shape, size in (
        line.rsplit(" ", 2) for line in (FOLDER / "tpu_bytes.txt").read_text().splitlines() if line[0] != "#"
    )
]


def case_id(row: dict[str, Any]) -> str:
    return f"{row['shape']}@{row.get('index', row.get('offset'))}"


@pytest.mark.parametrize("row", VECTORS["vectors"], ids=case_id)
def test_vectors(row: dict[str, Any]) -> None:
    shape = hlo.parse_shape(row["shape"])
    assert layout.placement(shape).tiled_dimensions == tuple(row["tiled_dims"])
    assert layout.allocated_elements(shape) == row["total_elements"]
    assert layout.allocated_bytes(shape) == row["total_bytes"]
    assert layout.unpadded_bytes(shape) == row["unpadded_bytes"]
    if row["xla_array_size"] is not None:
        assert layout.xla_array_size(shape) == row["xla_array_size"]
    if row["index"] is None:
        assert 0 in shape.dimensions
        return
    index = tuple(row["index"])
    assert layout.linear_index(shape, index) == row["linear"]
    assert layout.byte_offset(shape, index) == row["byte_offset"]
    assert layout.bit_offset(shape, index) % 8 == row["bit_in_byte"]
    assert layout.index_at(shape, row["linear"]) == index
    if row["xla_linear_index"] is not None:
        assert layout.xla_linear_index(shape, index) == row["xla_linear_index"]


@pytest.mark.parametrize("row", VECTORS["inverse"], ids=case_id)
def test_inverse_vectors(row: dict[str, Any]) -> None:
    found = layout.index_at(hlo.parse_shape(row["shape"]), row["offset"])
    assert found == (None if row["index"] is None else tuple(row["index"]))


def test_sizes_that_the_tpu_compiler_reports() -> None:
    """Every array of every kind, automatic and forced layouts, arguments, constants and host memory."""
    assert len(TPU) > 1300
    assert {kind for kind, _, _ in TPU} == {"v2", "v4", "forced", "host", "constant"}
    wrong = [row for row in TPU if layout.xla_array_size(hlo.parse_shape(row[1])) != row[2]]
    assert wrong == []


def test_whole_map_is_what_the_tpu_compiler_allocates() -> None:
    """For the layouts that the compiler chooses, and for its constants, the whole map has the same bytes."""
    chosen = [row for row in TPU if row[0] in ("v2", "v4", "constant")]
    assert [row for row in chosen if layout.allocated_bytes(hlo.parse_shape(row[1])) != row[2]] == []


@given(shapes())
def test_sizes_of_random_shapes(shape: hlo.Shape) -> None:
    allocated, unpadded = layout.allocated_bytes(shape), layout.unpadded_bytes(shape)
    assert allocated >= unpadded
    assert layout.padding_bytes(shape) == allocated - unpadded
    assert layout.padding_ratio(shape) == (allocated / unpadded if unpadded else 1.0)
    first = 1
    for row in layout.padding_by_dimension(shape):
        assert row.padded_size >= row.size
        first *= row.padded_size
    assert first <= layout.allocated_elements(shape)
    numbers = [number for row in layout.padding_by_dimension(shape) for number in row.dimensions]
    assert sorted(numbers) == list(range(shape.rank))


@given(shapes(least_size=1))
def test_xla_linear_index(shape: hlo.Shape) -> None:
    """With one tile at most, and no `*`, it is where the element lies; for rank 1 XLA ignores the tile."""
    assert shape.layout is not None
    last = tuple(size - 1 for size in shape.dimensions)
    if shape.layout.tiles and any(size < 0 for size in shape.layout.tiles[0].dimensions):
        if shape.rank > 1:
            with pytest.raises(layout.LayoutError, match="tile 1"):
                layout.xla_linear_index(shape, last)
    elif shape.rank == 1:
        assert layout.xla_linear_index(shape, last) == last[0]
    elif len(shape.layout.tiles) <= 1:
        assert layout.xla_linear_index(shape, last) == layout.linear_index(shape, last)


def test_data_size() -> None:
    """Up to the last element, not to the end of its tile."""
    assert layout.xla_array_data_size(hlo.parse_shape("f32[3,5]{1,0:T(2,2)}")) == 21 * 4
    assert layout.xla_array_data_size(hlo.parse_shape("s4[3,5]{1,0:E(4)}")) == 8
    assert layout.xla_array_data_size(hlo.parse_shape("f32[0,5]{1,0}")) == 0
    assert layout.xla_array_data_size(hlo.parse_shape("f32[]{:T(128)}")) == 4


def test_padding_by_dimension() -> None:
    rows = layout.padding_by_dimension(hlo.parse_shape("f32[17,130,3]{0,1,2:T(8,128)}"))
    assert [(row.dimensions, row.size, row.padded_size) for row in rows] == [
        ((2,), 3, 3),
        ((1,), 130, 136),
        ((0,), 17, 128),
    ]
    merged = layout.padding_by_dimension(hlo.parse_shape("f32[3,4,5]{2,1,0:T(*,2,2)}"))
    assert [(row.dimensions, row.size, row.padded_size) for row in merged] == [((0, 1), 12, 12), ((2,), 5, 6)]
    added = layout.padding_by_dimension(hlo.parse_shape("f32[300]{0:T(8,128)}"))
    assert [(row.dimensions, row.size, row.padded_size) for row in added] == [((), 1, 8), ((0,), 300, 384)]


# ---- tuples, tokens, buffers, dynamic shapes

NESTED = hlo.parse_shape("(f32[3]{0:T(128)}, (s32[], token[]), b(bf16[2]{0}), opaque[])")


def test_tuples() -> None:
    """A tuple allocates what its arrays do; XLA's ByteSizeOf counts its own table of pointers only."""
    assert [(index, size) for index, _, size in layout.leaf_bytes(NESTED)] == [
        ((0,), 512),
        ((1, 0), 4),
        ((1, 1), 0),
        ((2,), 4),
        ((3,), 0),
    ]
    assert layout.allocated_bytes(NESTED) == 520
    assert layout.padding_bytes(NESTED) == 500
    assert layout.padding_ratio(NESTED) == 520 / 20
    assert layout.unpadded_bytes(NESTED) == 4 * 8
    assert layout.unpadded_bytes(NESTED, pointer_bytes=4) == 4 * 4
    assert layout.unpadded_bytes(hlo.parse_shape("opaque[]")) == 8
    assert layout.unpadded_bytes(hlo.parse_shape("token[]")) == 0
    assert layout.allocated_bytes(hlo.parse_shape("()")) == 0
    assert layout.padding_ratio(hlo.parse_shape("()")) == 1.0


@pytest.mark.parametrize(
    ("elements", "host", "tpu"),
    [
        (2, 16, 512),
        (9, 72, 512),
        (128, 1024, 512),
        (129, 1032, 1024),
        (256, 2048, 1024),
        (300, 2400, 1536),
        (513, 4104, 2560),
    ],
)
def test_index_tables(elements: int, host: int, tpu: int) -> None:
    shape = hlo.parse_shape(f"({', '.join(['f32[]'] * elements)})")
    assert layout.HOST_INDEX_TABLE.bytes_of(shape) == host
    assert layout.TPU_INDEX_TABLE.bytes_of(shape) == tpu


def test_nested_index_tables() -> None:
    assert layout.HOST_INDEX_TABLE.all_bytes(NESTED) == 4 * 8 + 2 * 8
    assert layout.TPU_INDEX_TABLE.all_bytes(NESTED) == 2 * 512
    with pytest.raises(layout.LayoutError, match="is not a tuple"):
        layout.HOST_INDEX_TABLE.bytes_of(hlo.parse_shape("f32[]"))


def test_dynamic_shapes() -> None:
    """Bounds stand for sizes; the run-time sizes lie behind the data, or in front of it in M bytes."""
    dynamic = hlo.parse_shape("f32[<=10,4]{1,0:M(128)}")
    assert layout.allocated_bytes(dynamic) == 160
    assert layout.host_shape_size(dynamic) == 160 + 2 * 4
    assert layout.device_shape_size(dynamic, "suffix") == 160 + 2 * 4
    assert layout.device_shape_size(dynamic, "prefix") == 160 + 128
    assert layout.data_start(dynamic) == 128
    static = hlo.parse_shape("f32[10,4]{1,0:M(128)}")
    assert layout.host_shape_size(static) == layout.device_shape_size(static, "prefix") == 160
    assert layout.data_start(static) == 0
    assert layout.host_shape_size(NESTED) == 32


def test_split_configs() -> None:
    """XLA counts the largest piece of a split dimension; the map itself does not know of pieces."""
    for text, size in (
        ("f32[2,3,300]{2,1,0:T(2,128)SC(2:150)}", 8192),
        ("f32[2,3,300]{2,1,0:T(2,128)SC(2:100,299)}", 8192),
        ("f32[2,3,300]{2,1,0:T(2,128)SC(0:1)}", 6144),
        ("f32[300,2,3]{0,2,1:T(2,128)SC(2:)}", 12288),
    ):
        assert layout.xla_array_size(hlo.parse_shape(text)) == size
        assert layout.allocated_bytes(hlo.parse_shape(text)) == 12288
