"""Bad input: a ValueError that names the part at fault, and never an allocation the size of the shape."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

import hlotext as hlo
from hlotext import layout
from hlotext.ir.values.shape import Layout, Shape, SplitConfig, Tile
from hlotext.ir.values.types import element_type
from hlotext.view import LayoutPicture

F32 = element_type("f32")


def f32(sizes: tuple[int, ...], **fields: Any) -> Shape:
    """An f32 array with a layout that no text can have."""
    return Shape(F32, sizes, layout=Layout(tuple(reversed(range(len(sizes)))), **fields))


ILL_FORMED: list[tuple[str | Shape, str]] = [
    ("f32[2,2]{1,1}", "minor_to_major"),
    ("f32[2,2]{2,0}", "minor_to_major"),
    ("f32[2,2]{-1,0}", "minor_to_major"),
    (attrs.evolve(f32((2, 2)), layout=Layout((0,))), "minor_to_major"),
    ("f32[2,2]{1,0:T()}", "tile 1, (),"),
    ("f32[2,2]{1,0:T(2,2)()}", "tile 2, (),"),
    ("f32[2,2]{1,0:T(0,3)}", "tile 1, (0,3),"),
    (f32((2, 2), tiles=(Tile((2, 2)), Tile((-1, 3)))), "tile 2, (-1,3),"),
    ("f32[2,2]{1,0:T(8,*)}", "tile 1, (8,*),"),
    ("f32[2,2]{1,0:T(8,128)(*)}", "tile 2, (*),"),
    (f32((2,), tail_padding_alignment_in_elements=0), "tail padding"),
    (f32((2,), element_size_in_bits=-4), "element size"),
    (f32((2,), physical_shape=f32((2,))), "physical shape"),
    (f32((2,), split_configs=(SplitConfig(1, ()),)), "split config (1:)"),
    (f32((2,), split_configs=(SplitConfig(0, (3,)),)), "split config (0:3)"),
    (f32((9,), split_configs=(SplitConfig(0, (5, 3)),)), "split config (0:5,3)"),
    ("f32[2,?]{1,0}", "dimension 1"),
    (f32((-2,)), "dimension 0"),
    ("tensor32[2]{0}", "element type"),
    ("f32[4611686018427387904,4]", "the shape"),
    ("f32[9223372036854775807]", "the shape"),
    ("s4[9223372036854775807]{0:T(2)E(4)}", "tile 1"),
    ("f32[4611686018427387904,1]{1,0:T(1,128)}", "tile 1"),
    ("f32[9223372036854775807]{0:T(8,128)}", "tile 1"),
    ("f32[2305843009213693952]{0}", "the shape"),
    ("f32[0,1099511627776,1099511627776]{2,1,0:T(*,2)}", "the dimension merged by (*,2)"),
    ("f32[2305843009213693951]{0:L(2305843009213693952)}", "the shape"),
    ("token[]", "the shape"),
    ("opaque[]", "the shape"),
    ("(f32[], f32[])", "the shape"),
]


@pytest.mark.parametrize(("given", "part"), ILL_FORMED, ids=str)
def test_ill_formed_shapes(given: str | Shape, part: str) -> None:
    """Whatever is asked of the shape, the answer is an error that begins with the part at fault."""
    shape = hlo.parse_shape(given) if isinstance(given, str) else given
    asked: list[Callable[[], Any]] = [
        lambda: layout.linear_index(shape, (0,) * shape.rank),
        lambda: layout.byte_offsets(shape, np.zeros((1, shape.rank), np.int64)),
        lambda: layout.index_at(shape, 0),
        lambda: layout.indices_at(shape, [0]),
        lambda: layout.to_memory(np.zeros((1,) * shape.rank), shape),
        lambda: layout.from_memory(b"", shape),
        lambda: layout.byte_ranges(shape, [(0, 0)] * shape.rank),
        lambda: LayoutPicture(shape),
    ]
    if shape.is_array:
        asked += [lambda: layout.allocated_bytes(shape), lambda: layout.explain(shape)]
    for ask in asked:
        with pytest.raises(layout.LayoutError) as caught:
            ask()
        assert caught.value.part == part
        assert str(caught.value).startswith(part)
        assert isinstance(caught.value, ValueError)


SHAPE = hlo.parse_shape("f32[3,5]{1,0:T(2,2)}")


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        ((3, 0), "dimension 0 has size 3"),
        ((0, 5), "dimension 1 has size 5"),
        ((-1, 0), "dimension 0 has size 3"),
        ((0,), "has length 1, not 2"),
        ((0, 0, 0), "has length 3, not 2"),
        ((), "has length 0, not 2"),
        ((0.5, 0), "is not an integer"),
        ((2**70, 0), "dimension 0 has size 3"),
    ],
)
def test_bad_indices(index: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(layout.LayoutError, match=problem) as caught:
        layout.byte_offset(SHAPE, index)
    assert caught.value.part == "the index"
    with pytest.raises(layout.LayoutError):
        layout.byte_offsets(SHAPE, [index])
    with pytest.raises(layout.LayoutError):
        layout.xla_linear_index(SHAPE, index)


def test_bad_indices_among_many() -> None:
    """The first one of them is named, wherever it stands."""
    indices = np.zeros((100_000, 2), np.int64)
    indices[77_777] = (1, 5)
    with pytest.raises(layout.LayoutError, match=r"\(1, 5\) is out of range: dimension 1 has size 5"):
        layout.byte_offsets(SHAPE, indices)
    with pytest.raises(layout.LayoutError, match="18446744073709551615"):
        layout.byte_offsets(SHAPE, np.array([[2**64 - 1, 0]], np.uint64))
    for bad in (
        np.zeros((2, 3), int),
        np.zeros(3, int),
        np.int64(0),
        np.zeros((2, 2)),
        np.array([["a", "b"]]),
    ):
        with pytest.raises(layout.LayoutError, match="the indices"):
            layout.byte_offsets(SHAPE, bad)


@pytest.mark.parametrize("position", [-1, 24, 2**70])
def test_bad_positions(position: int) -> None:
    with pytest.raises(layout.LayoutError, match=r"the position.*out of range for 24 elements"):
        layout.index_at(SHAPE, position)
    with pytest.raises(layout.LayoutError, match=r"the positions?"):
        layout.indices_at(SHAPE, [position])
    with pytest.raises(layout.LayoutError, match=r"the byte offset.*out of range for 96 bytes"):
        layout.indices_at_byte(SHAPE, 4 * position)


def test_bad_arrays_and_buffers() -> None:
    with pytest.raises(layout.LayoutError, match=r"the array.*has dimensions \[5, 3\]"):
        layout.to_memory(np.zeros((5, 3)), SHAPE)
    with pytest.raises(layout.LayoutError, match=r"the buffer.*has 95 bytes, not 96"):
        layout.from_memory(bytes(95), SHAPE)
    with pytest.raises(layout.LayoutError, match=r"the buffer.*does not expose its bytes"):
        layout.from_memory("text", SHAPE)
    with pytest.raises(layout.LayoutError, match=r"element type.*no numpy counterpart"):
        layout.to_memory(np.zeros(2), hlo.parse_shape("tensor32[2]{0:E(4)}"))
    deep = hlo.parse_shape(f"f32[{'1,' * 39}1]{{{','.join(map(str, range(40)))}:T({'1,' * 39}1)}}")
    with pytest.raises(layout.LayoutError, match="80 dimensions after tiling"):
        layout.to_memory(np.zeros((1,) * 40), deep)
    for text in ("f32[2]{0:E(4)}", "bf16[2]{0:E(32)}", "s4[2]{0:E(12)}", "s8[2]{0:E(4)}"):
        shape = hlo.parse_shape(text)
        assert layout.allocated_bytes(shape) == -(-2 * layout.placement(shape).element_bits // 8)
        with pytest.raises(layout.LayoutError, match="element size"):
            layout.to_memory(np.zeros(2), shape)


def test_byte_strides_past_int64() -> None:
    with pytest.raises(layout.LayoutError, match="the stride of dimension 0"):
        layout.byte_strides(hlo.parse_shape("f32[1,4611686018427387904]"))


def test_long_texts_are_cut_in_messages() -> None:
    shape = hlo.parse_shape(f"({', '.join(['f32[]'] * 10_000)})")
    with pytest.raises(layout.LayoutError) as caught:
        layout.linear_index(shape, ())
    assert len(str(caught.value)) < 300
    assert " ... " in str(caught.value)


def test_bit_offsets_past_int64() -> None:
    """The bytes fit, their bits do not: single offsets are exact, many at once are refused."""
    shape = hlo.parse_shape("f32[2000000000000000000]{0}")
    last = 2 * 10**18 - 1
    assert layout.bit_offset(shape, (last,)) == 32 * last
    assert layout.byte_offsets(shape, [[last]]).tolist() == [4 * last]
    with pytest.raises(layout.LayoutError, match="bits"):
        layout.bit_offsets(shape, [[last]])
    packed = hlo.parse_shape("s4[9000000000000000000]{0:E(4)}")
    assert layout.byte_offsets(packed, [[9 * 10**18 - 1]]).tolist() == [(9 * 10**18 - 1) // 2]


@pytest.mark.parametrize(
    "text",
    [
        "f32[1000000,1000000]{1,0:T(8,128)}",
        "bf16[1000000000000]{0:T(1024)(128)(2,1)}",
        "f32[1000000,1000,1000]{0,2,1:T(*,8,128)}",
        "f32[1000000000000]{0:T(500000000000)}",
        "s4[4000000000000000000]{0:E(4)}",
    ],
)
def test_work_does_not_grow_with_the_shape(text: str) -> None:
    """Everything but whole buffers is answered for arrays of terabytes in a few megabytes."""
    shape = hlo.parse_shape(text)
    index = tuple(size - 1 for size in shape.dimensions)
    tracemalloc.start()
    try:
        position = layout.linear_index(shape, index)
        assert layout.index_at(shape, position) == index
        assert layout.linear_indices(shape, [index] * 1000).tolist() == [position] * 1000
        assert layout.indices_at(shape, [position]).tolist() == [list(index)]
        assert len(layout.byte_ranges(shape, [(size // 2, size // 2 + 9) for size in shape.dimensions]))
        str(layout.explain(shape))
        str(LayoutPicture(shape))
        LayoutPicture(shape).svg()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
