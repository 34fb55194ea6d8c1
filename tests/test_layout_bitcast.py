"""Bitcasts: vectors, and every answer against all elements of random shapes."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import hlotext as hlo
from hlotext import layout
from tests import support

VECTORS = json.loads((support.DATA / "layout" / "vectors.json").read_text())


def described(decomposition: layout.BitcastDecomposition | None) -> list[Any] | None:
    """A decomposition as the vectors write it."""
    match decomposition:
        case None:
            return None
        case layout.BitcastReshape():
            return ["reshape"]
        case layout.BitcastTranspose(dimensions):
            return ["transpose", list(dimensions)]
        case layout.BitcastTransposeReshapeTranspose(first, first_shape, reshaped, second):
            return ["trt", list(first), str(first_shape), str(reshaped), list(second)]


@pytest.mark.parametrize("row", VECTORS["bitcast"], ids=lambda row: f"{row['input']}->{row['output']}")
def test_vectors(row: dict[str, Any]) -> None:
    a, b = hlo.parse_shape(row["input"]), hlo.parse_shape(row["output"])
    permutation = layout.deduce_transpose_dimensions(a, b)
    assert layout.reshape_is_bitcast(a, b) == row["reshape_is_bitcast"]
    assert permutation == (None if row["deduced_transpose"] is None else tuple(row["deduced_transpose"]))
    assert described(layout.decompose_bitcast(a, b)) == row["decompose"]
    assert layout.is_bitcast(a, b) == (row["decompose"][0] != "trt")


@st.composite
def reshapes(draw: Any) -> tuple[hlo.Shape, hlo.Shape]:
    """Two shapes with equally many elements and any orders of dimensions."""
    factors = draw(st.lists(st.sampled_from([1, 2, 2, 3, 5]), max_size=5))
    assume(math.prod(factors) <= 200)

    def one() -> hlo.Shape:
        groups: list[int] = []
        for factor in draw(st.permutations(factors)):
            if groups and draw(st.booleans()):
                groups[-1] *= factor
            else:
                groups.append(factor)
        order = draw(st.permutations(range(len(groups))))
        return layout.make_shape("f32", groups, minor_to_major=order)

    return one(), one()


def moves_nothing(a: hlo.Shape, b: hlo.Shape) -> bool:
    """Whether every element lies at the same place in both, by definition."""
    pairs = zip(layout.row_major_indices(a), layout.row_major_indices(b), strict=True)
    return all(layout.linear_index(a, i) == layout.linear_index(b, j) for i, j in pairs)


@given(reshapes())
def test_reshape_is_bitcast(pair: tuple[hlo.Shape, hlo.Shape]) -> None:
    assert layout.reshape_is_bitcast(*pair) == moves_nothing(*pair)


@given(reshapes())
def test_align_layouts(pair: tuple[hlo.Shape, hlo.Shape]) -> None:
    """It finds a layout exactly if there is one."""
    source, target = pair
    aligned = layout.align_layouts(source, target)
    if aligned is None:
        orders = itertools.permutations(range(target.rank))
        assert not any(
            moves_nothing(source, layout.make_shape("f32", target.dimensions, minor_to_major=order))
            for order in orders
        )
    else:
        assert aligned.dimensions == target.dimensions
        assert moves_nothing(source, aligned)
        assert layout.reshape_is_bitcast(source, aligned)


@given(reshapes())
def test_decompositions_lead_from_one_to_the_other(pair: tuple[hlo.Shape, hlo.Shape]) -> None:
    """Each step moves nothing, and the last one ends at the target."""
    source, target = pair
    match layout.decompose_bitcast(source, target):
        case layout.BitcastReshape():
            assert moves_nothing(source, target)
        case layout.BitcastTranspose(dimensions):
            assert layout.transpose_is_bitcast(source, target, dimensions)
        case layout.BitcastTransposeReshapeTranspose(first, first_shape, reshaped, second):
            assert layout.transpose_is_bitcast(source, first_shape, first)
            assert layout.reshape_is_bitcast(first_shape, reshaped)
            assert layout.transpose_is_bitcast(reshaped, target, second)
        case found:
            pytest.fail(f"no decomposition: {found}")


def test_aligned_ones_are_most_major() -> None:
    aligned = layout.align_layouts(
        hlo.parse_shape("f32[6,4]{0,1:T(8,128)S(1)}"), hlo.parse_shape("bf16[1,2,3,1,4]{0,1,2,3,4}")
    )
    assert str(aligned) == "bf16[1,2,3,1,4]{2,1,4,3,0}"
    assert layout.align_layouts(hlo.parse_shape("f32[6]"), hlo.parse_shape("f32[5]")) is None
    assert (
        str(layout.align_layouts(hlo.parse_shape("f32[0,2]{0,1}"), hlo.parse_shape("f32[3,0]")))
        == "f32[3,0]{1,0}"
    )


def test_element_types() -> None:
    """XLA compares them unless told not to; a decomposition does not."""
    a, b = hlo.parse_shape("f32[2,3]{1,0}"), hlo.parse_shape("s32[6]{0}")
    assert not layout.reshape_is_bitcast(a, b)
    assert not layout.is_bitcast(a, b)
    assert layout.reshape_is_bitcast(a, b, ignore_element_type=True)
    assert layout.is_bitcast(a, b, ignore_element_type=True)
    assert described(layout.decompose_bitcast(a, b)) == ["reshape"]
    t = hlo.parse_shape("s32[3,2]{0,1}")
    assert not layout.transpose_is_bitcast(a, t, (1, 0))
    assert layout.transpose_is_bitcast(a, t, (1, 0), ignore_element_type=True)


def test_what_is_no_bitcast() -> None:
    a = hlo.parse_shape("f32[2,3]{1,0}")
    assert layout.decompose_bitcast(a, hlo.parse_shape("f32[7]{0}")) is None
    assert not layout.is_bitcast(a, hlo.parse_shape("f32[7]{0}"))
    assert not layout.transpose_is_bitcast(a, hlo.parse_shape("f32[2,3]{0,1}"), (1, 0))
    assert not layout.transpose_is_bitcast(a, a, (0, 0))
    assert not layout.transpose_is_bitcast(a, hlo.parse_shape("f32[6]{0}"), (0, 1))
    with pytest.raises(layout.LayoutError, match="minor_to_major"):
        layout.is_bitcast(a, hlo.parse_shape("f32[2,3]{1,1}"))
