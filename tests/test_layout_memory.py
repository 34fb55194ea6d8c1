"""Whole arrays in memory: every bit where the definition says, and back again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlotext as hlo
from hlotext import layout
from hlotext.layout.packing import pack, unpack
from tests.layout_cases import PADDING, memory_by_definition, random_array, same_bits, shapes


def bits_of(buffer: np.ndarray, width: int, count: int) -> list[int]:
    """The elements of a buffer as numbers, `width` bits each, the first in the low bits of the first byte."""
    whole = int.from_bytes(buffer.tobytes(), "little")
    return [whole >> (width * number) & ((1 << width) - 1) for number in range(count)]


@given(shapes(), st.integers(0, 2**32))
def test_every_bit_lies_where_the_definition_says(shape: hlo.Shape, seed: int) -> None:
    array = random_array(shape, seed)
    memory = memory_by_definition(shape)
    buffer = layout.to_memory(array, shape, fill=1)
    assert buffer.ndim == 1
    assert buffer.nbytes == layout.allocated_bytes(shape)
    width = layout.placement(shape).element_bits
    values = bits_of(np.ascontiguousarray(array).reshape(-1), 8 * array.itemsize, array.size)
    fill = bits_of(np.asarray(1).astype(shape.element_type.dtype), 8 * array.itemsize, 1)[0]
    expected = [fill if number == PADDING else values[number] for number in memory]
    assert bits_of(buffer, width, len(memory)) == expected


@given(shapes(), st.integers(0, 2**32))
def test_from_memory_inverts_to_memory(shape: hlo.Shape, seed: int) -> None:
    array = random_array(shape, seed)
    buffer = layout.to_memory(array, shape)
    assert same_bits(layout.from_memory(buffer, shape), array)
    assert same_bits(layout.from_memory(buffer.tobytes(), shape), array)


@given(shapes(), st.integers(0, 2**32))
def test_to_memory_inverts_from_memory(shape: hlo.Shape, seed: int) -> None:
    """The elements of any buffer survive the way to an array and back; padding does not count."""
    rng = np.random.default_rng(seed)
    buffer = rng.integers(0, 256, layout.allocated_bytes(shape), dtype=np.uint8)
    array = layout.from_memory(buffer, shape)
    assert array.flags.owndata or array.base is not buffer
    assert same_bits(layout.from_memory(layout.to_memory(array, shape, fill=1), shape), array)


@pytest.mark.parametrize(
    "text",
    [
        "bf16[37,300]{1,0:T(8,128)(2,1)}",
        "s8[2,7,130]{0,2,1:T(8,128)(4,1)}",
        "pred[64,256]{1,0:T(32,128)(32,1)E(1)}",
        "s4[1025]{0:T(1024)(128)(8,1)E(4)}",
        "f32[5,3,300]{0,2,1:T(8,128)L(5000)}",
        "f32[40,50,60]{2,0,1}",
        "u16[1,1,4]{2,1,0:T(2,4)(2,1)}",
    ],
)
@pytest.mark.slow
def test_layouts_of_everyday_use(text: str) -> None:
    """The sizes at which copies take their quick ways, which random shapes are too small for."""
    shape = hlo.parse_shape(text)
    array = random_array(shape)
    buffer = layout.to_memory(array, shape)
    memory = memory_by_definition(shape)
    width = layout.placement(shape).element_bits
    values = bits_of(array.reshape(-1), 8 * array.itemsize, array.size)
    expected = [0 if number == PADDING else values[number] for number in memory]
    if width < 8:
        assert bits_of(buffer, width, len(memory)) == expected
    else:
        assert bits_of(buffer, 8 * array.itemsize, len(memory)) == expected
    assert same_bits(layout.from_memory(buffer, shape), array)


def test_worked_example() -> None:
    """The array of the document on tiled layouts: f32[3,5] in tiles of 2 x 2."""
    shape = hlo.parse_shape("s32[3,5]{1,0:T(2,2)}")
    found = layout.to_memory(np.arange(15).reshape(3, 5), shape, fill=-1)
    assert found.dtype == np.int32
    assert found.tolist() == [
        0,
        1,
        5,
        6,
        2,
        3,
        7,
        8,
        4,
        -1,
        9,
        -1,
        10,
        11,
        -1,
        -1,
        12,
        13,
        -1,
        -1,
        14,
        -1,
        -1,
        -1,
    ]


def test_values_are_converted() -> None:
    shape = hlo.parse_shape("bf16[2]{0}")
    assert layout.to_memory([1, 2.5], shape).astype(np.float32).tolist() == [1, 2.5]
    assert layout.to_memory(np.array([1.0, 0.0]), hlo.parse_shape("pred[2]{0}")).tolist() == [True, False]
    with pytest.raises(layout.LayoutError, match=r"the array of s8.*cannot represent"):
        layout.to_memory([1, 300], hlo.parse_shape("s8[2]{0}"))
    with pytest.raises(layout.LayoutError, match="cannot represent"):
        layout.to_memory([1.0, float("nan")], hlo.parse_shape("s32[2]{0}"))
    with pytest.raises(layout.LayoutError, match="cannot represent"):
        layout.to_memory([1, 2], hlo.parse_shape("pred[2]{0}"))


def test_strided_arrays_are_read_as_they_are() -> None:
    shape = hlo.parse_shape("f32[3,4]{1,0:T(2,2)}")
    array = np.arange(48, dtype=np.float32).reshape(6, 8)[::2, ::-2]
    assert same_bits(layout.from_memory(layout.to_memory(array, shape), shape), array)


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_packing(bits: int, count: int) -> None:
    values = np.random.default_rng(bits).integers(0, 1 << bits, count).astype(np.uint8)
    packed = pack(values, bits)
    assert packed.dtype == np.uint8
    assert len(packed) == -(-count * bits // 8)
    assert bits_of(packed, bits, count) == values.tolist()
    assert unpack(packed, bits, count).tolist() == values.tolist()


def test_packing_drops_what_is_above_the_element() -> None:
    assert pack(np.array([0xF1, 0xF2, 0xF3], np.uint8), 4).tolist() == [0x21, 0x03]
    assert pack(np.array([2, 3, 0], np.uint8), 1).tolist() == [2]
