"""Random layouts, and where their elements lie by definition: pad, reshape, transpose, and read flat."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from hlotext import layout
from hlotext.ir.values.shape import COMBINE_DIMENSION, Layout, Shape, Tile
from hlotext.ir.values.types import element_type

PADDING = -1
MOST_ELEMENTS = 20_000
"""Allocated elements of a random shape; larger ones are thrown away."""

WHOLE_TYPES = ("f32", "bf16", "s8", "pred", "f64", "c64", "c128", "u16", "f8e4m3fn", "s4", "f6e3m2fn")
PACKED_TYPES = (
    ("s4", 4),
    ("u4", 4),
    ("f4e2m1fn", 4),
    ("s2", 2),
    ("u2", 2),
    ("pred", 1),
    ("pred", 2),
    ("f6e2m3fn", 6),
)


@st.composite
def tilings(draw: Any, rank: int) -> tuple[Tile, ...]:
    """Up to three tiles, each at most one dimension longer than what there is to cut, some with `*`."""
    tiles = []
    for _ in range(draw(st.integers(0, 3))):
        length = draw(st.integers(1, min(rank + 1, 4)))
        major = draw(
            st.lists(
                st.sampled_from([COMBINE_DIMENSION, 1, 2, 3, 4]), min_size=length - 1, max_size=length - 1
            )
        )
        tiles.append(Tile((*major, draw(st.integers(1, 5)))))
        stars = major.count(COMBINE_DIMENSION)
        rank = max(rank, length) - stars + (length - stars)
    return tuple(tiles)


@st.composite
def shapes(draw: Any, least_size: int = 0, tiled: bool = True) -> Shape:
    """Array shapes of rank 0 to 5 with any order, tiles, tail padding and element size."""
    sizes = tuple(draw(st.lists(st.integers(least_size, 7), max_size=5)))
    name, bits = draw(
        st.one_of(st.sampled_from(PACKED_TYPES), st.sampled_from([(n, 0) for n in WHOLE_TYPES]))
    )
    described = Layout(
        tuple(draw(st.permutations(range(len(sizes))))),
        draw(tilings(len(sizes))) if tiled else (),
        draw(st.sampled_from([1, 1, 1, 7, 64])) if tiled else 1,
        element_size_in_bits=bits if tiled else 0,
    )
    shape = Shape(element_type(name), sizes, layout=described)
    assume(layout.allocated_elements(shape) <= MOST_ELEMENTS)
    return shape


def memory_by_definition(shape: Shape) -> np.ndarray:
    """Row-major logical numbers of the elements in the order of memory, PADDING elsewhere."""
    described = shape.layout
    assert described is not None
    array = np.arange(math.prod(shape.dimensions)).reshape(shape.dimensions)
    array = array.transpose(described.minor_to_major[::-1])
    for tile in described.tiles:
        array = _tiled(array, tile.dimensions)
    flat = array.reshape(-1)
    alignment = described.tail_padding_alignment_in_elements
    return np.concatenate([flat, np.full(-len(flat) % alignment, PADDING)])


def _tiled(array: np.ndarray, tile: tuple[int, ...]) -> np.ndarray:
    array = array[(None,) * max(0, len(tile) - array.ndim)]
    lead = array.ndim - len(tile)
    # Every `*` hands its size on to the next dimension.
    sizes: list[int] = []
    carried = 1
    for size, entry in zip(array.shape[lead:], tile, strict=True):
        carried *= size
        if entry != COMBINE_DIMENSION:
            sizes.append(carried)
            carried = 1
    entries = [entry for entry in tile if entry != COMBINE_DIMENSION]
    array = array.reshape(*array.shape[:lead], *sizes)
    padding = [(0, 0)] * lead + [(0, -size % entry) for size, entry in zip(sizes, entries, strict=True)]
    array = np.pad(array, padding, constant_values=PADDING)
    for place, entry in enumerate(entries):
        axis = lead + place
        array = array.reshape(
            *array.shape[:axis], array.shape[axis] // entry, entry, *array.shape[axis + 1 :]
        )
        array = np.moveaxis(array, axis + 1, -1)
    return array


def all_indices(shape: Shape) -> np.ndarray:
    """Every logical index, row-major: (elements, rank)."""
    count = math.prod(shape.dimensions)
    if not shape.rank:
        return np.zeros((1, 0), np.int64)
    return (
        np.stack(np.unravel_index(np.arange(count), shape.dimensions), -1)
        if count
        else np.zeros((0, shape.rank), int)
    )


def random_array(shape: Shape, seed: int = 0) -> np.ndarray:
    """Values that the shape's type holds exactly, of every bit pattern it has where it is narrow."""
    type_ = shape.element_type
    rng = np.random.default_rng(seed)
    if type_.dtype == np.bool_:
        return rng.integers(0, 2, shape.dimensions).astype(np.bool_)
    width = type_.dtype.itemsize
    raw = rng.integers(0, 256, (*shape.dimensions, width), dtype=np.uint8)
    if type_.bits < 8:
        raw &= (1 << type_.bits) - 1
    return np.ascontiguousarray(raw).view(type_.dtype).reshape(shape.dimensions)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal in type, dimensions and every bit, NaNs included."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
