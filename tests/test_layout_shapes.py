"""Making, changing, asking and comparing shapes: XLA's ShapeUtil, LayoutUtil and IndexUtil."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlotext as hlo
from hlotext import layout
from hlotext.ir.values.shape import Layout
from tests.layout_cases import all_indices, shapes

parse = hlo.parse_shape


# ---- making


def test_make_shape() -> None:
    assert str(layout.make_shape("f32", (2, 3))) == "f32[2,3]{1,0}"
    assert str(layout.make_shape("f32", ())) == "f32[]"
    made = layout.make_shape(
        "bf16", (2, 3), minor_to_major=(0, 1), tiles=[(8, 128), (2, 1)], memory_space=1, dynamic=(True, False)
    )
    assert made == parse("bf16[<=2,3]{0,1:T(8,128)(2,1)S(1)}")
    assert str(layout.make_shape("f32", (2,), element_size_in_bits=32)) == "f32[2]{0}"
    assert str(layout.make_shape("s4", (2,), element_size_in_bits=4)) == "s4[2]{0:E(4)}"
    assert str(layout.make_shape("s4", (2,), element_size_in_bits=8)) == "s4[2]{0}"
    for wrong in ({"minor_to_major": (0, 0)}, {"tiles": [(0,)]}, {"dynamic": (True,)}):
        with pytest.raises(layout.LayoutError):
            layout.make_shape("f32", (2, 3), **wrong)
    with pytest.raises(layout.LayoutError, match="token cannot be an array element type"):
        layout.make_shape("token", ())


def test_changes_that_reach_into_tuples() -> None:
    shape = parse("(s4[<=4,2]{0,1:T(8,128)(8,1)L(2)E(4)S(1)M(128)}, (f32[2]{0:T(128)S(5)}, token[]))")
    assert str(layout.device_to_host(shape)) == "(s4[<=4,2]{0,1}, (f32[2]{0}, token[]))"
    static = "(s4[4,2]{0,1:T(8,128)(8,1)L(2)E(4)S(1)}, (f32[2]{0:T(128)S(5)}, token[]))"
    assert str(layout.make_static(shape)) == static
    bf16 = "(bf16[<=4,2]{0,1:T(8,128)(8,1)L(2)S(1)M(128)}, (bf16[2]{0:T(128)S(5)}, token[]))"
    assert str(layout.change_element_type(shape, "bf16")) == bf16
    assert str(layout.change_element_type(parse("s4[2]{0:E(4)}"), "u4")) == "u4[2]{0:E(4)}"
    assert str(layout.change_element_type(parse("s4[2]{0:E(4)}"), "pred")) == "pred[2]{0}"
    packed = layout.update_element_size(parse("(s4[2]{0}, u2[2], pred[2]{0}, f32[2]{0:E(32)})"))
    assert str(packed) == "(s4[2]{0:E(4)}, u2[2]{0:E(2)}, pred[2]{0}, f32[2]{0})"
    assert str(layout.update_element_size(parse("s4[2]{0:E(4)}"), pack=False)) == "s4[2]{0}"
    assert layout.make_maybe_tuple([parse("f32[]")]) == parse("f32[]")
    assert layout.make_maybe_tuple([parse("f32[]")] * 2) == parse("(f32[], f32[])")


# ---- dimensions


@pytest.mark.parametrize(
    ("text", "normal", "strides"),
    [
        ("f32[10,20,30]{2,0,1}", "f32[20,10,30]{2,1,0}", (120, 1200, 4)),
        ("f32[2,3]{0,1}", "f32[3,2]{1,0}", (4, 8)),
        (
            "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}",
            "bf16[1,8,1280,16384]{3,2,1,0:T(8,128)(2,1)}",
            (41943040, 335544320, 32768, 2),
        ),
        ("f32[2,3,5]{2,0,1:T(2,128)S(1)}", "f32[3,2,5]{2,1,0:T(2,128)S(1)}", (20, 40, 4)),
        ("c64[3,4]{1,0}", "c64[3,4]{1,0}", (32, 8)),
        ("f32[<=10,20]{0,1}", "f32[20,<=10]{1,0}", (4, 40)),
        ("f32[]", "f32[]", ()),
    ],
)
def test_normalize_and_byte_strides(text: str, normal: str, strides: tuple[int, ...]) -> None:
    assert str(layout.normalize(parse(text))) == normal
    assert layout.byte_strides(parse(text)) == strides


@given(shapes())
def test_normalize_moves_nothing(shape: hlo.Shape) -> None:
    normal = layout.normalize(shape)
    assert layout.is_monotonic_with_dim0_major(normal)
    assert layout.normalize(normal) == normal
    indices = all_indices(shape)
    order = list(layout.major_to_minor(shape))
    found = layout.linear_indices(normal, indices[:, order])
    assert found.tolist() == layout.linear_indices(shape, indices).tolist()
    assert layout.allocated_bytes(normal) == layout.allocated_bytes(shape)


@given(shapes(), st.randoms())
def test_permute_dimensions_moves_nothing(shape: hlo.Shape, random: object) -> None:
    permutation = list(range(shape.rank))
    random.shuffle(permutation)  # type: ignore[attr-defined]
    permuted = layout.permute_dimensions(shape, permutation)
    assert layout.transpose_is_bitcast(shape, permuted, permutation)
    indices = all_indices(shape)
    found = layout.linear_indices(permuted, indices[:, permutation])
    assert found.tolist() == layout.linear_indices(shape, indices).tolist()


def test_adding_and_removing_dimensions() -> None:
    shape = parse("f32[2,<=3,5]{2,0,1:T(2,128)S(1)}")
    assert str(layout.append_major_dimension(shape, 7)) == "f32[2,<=3,5,7]{2,0,1,3:T(2,128)S(1)}"
    assert str(layout.append_minor_dimension(shape, 7)) == "f32[2,<=3,5,7]{3,2,0,1:T(2,128)S(1)}"
    assert str(layout.prepend_major_dimension(shape, 7)) == "f32[7,2,<=3,5]{3,1,2,0}"
    assert str(layout.delete_dimensions(shape, [0])) == "f32[<=3,5]{1,0:T(2,128)S(1)}"
    assert str(layout.delete_dimensions(shape, [1, -1])) == "f32[2]{0:T(2,128)S(1)}"
    assert str(layout.delete_dimensions(shape, [])) == str(shape)
    assert str(layout.move_dimension_to_major(shape, 0)) == "f32[2,<=3,5]{2,1,0}"
    assert layout.move_dimension_to_major(shape, 1) is shape


def test_dimension_numbers_and_letters() -> None:
    shape = parse("f32[2,3,4]")
    assert [layout.dimension_number(shape, number) for number in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    for number in (-4, 3):
        with pytest.raises(layout.LayoutError, match=f"dimension {number} of"):
            layout.dimension_number(shape, number)
    letters = {rank: layout.dimension_letters(rank) for rank in range(6)}
    assert letters == {
        0: None, 1: None, 2: ("y", "x"), 3: ("z", "y", "x"), 4: ("p", "z", "y", "x"), 5: None,
    }  # fmt: skip


def test_orders() -> None:
    shape = parse("bf16[8,1,1280,16384]{3,2,0,1}")
    assert layout.major_to_minor(shape) == (1, 0, 2, 3)
    assert layout.physical_dimensions(shape) == (1, 8, 1280, 16384)
    assert layout.logical_to_physical(shape) == (1, 0, 2, 3)
    assert layout.is_effectively_most_major(shape, 0)
    assert layout.is_effectively_most_major(shape, 1)
    assert not layout.is_effectively_most_major(shape, 2)
    assert layout.are_dimensions_consecutive(shape, [0, 2])
    assert not layout.are_dimensions_consecutive(shape, [3, 0])
    for text, major, minor in (
        ("f32[2,3]{1,0}", True, False),
        ("f32[2,3]{0,1}", False, True),
        ("f32[2]{0}", True, True),
        ("f32[]", True, True),
        ("f32[2,3,4]{1,2,0}", False, False),
    ):
        assert layout.is_monotonic_with_dim0_major(parse(text)) == major
        assert layout.is_monotonic_with_dim0_minor(parse(text)) == minor


def test_questions() -> None:
    assert layout.is_zero_element_array(parse("f32[3,0]"))
    assert not layout.is_zero_element_array(parse("()"))
    assert layout.is_effective_scalar(parse("f32[1,1]"))
    assert not layout.is_effective_scalar(parse("f32[0]"))
    assert layout.has_degenerate_dimensions(parse("f32[2,1]"))
    nested = parse("(f32[], (s32[], token[]))")
    assert (layout.subshape_count(nested), layout.leaf_count(nested)) == (5, 3)


# ---- indices


@given(shapes())
def test_linear_index_round_trip(shape: hlo.Shape) -> None:
    """Tiles are ignored: the numbers are those of the untiled array, and each leads back to its index."""
    indices = [tuple(index) for index in all_indices(shape).tolist()]
    numbers = [layout.multidimensional_index_to_linear_index(shape, index) for index in indices]
    assert sorted(numbers) == list(range(len(indices)))
    assert [layout.linear_index_to_multidimensional_index(shape, number) for number in numbers] == indices
    strides = layout.dimension_strides(shape)
    assert numbers == [sum(i * s for i, s in zip(index, strides, strict=True)) for index in indices]


@given(shapes())
def test_orders_of_visiting(shape: hlo.Shape) -> None:
    """Row-major whatever the layout, or in the order of memory; bumping is the former."""
    indices = [tuple(index) for index in all_indices(shape).tolist()]
    assert list(layout.row_major_indices(shape)) == indices
    numbers = [
        layout.multidimensional_index_to_linear_index(shape, i) for i in layout.layout_order_indices(shape)
    ]
    assert numbers == list(range(len(indices)))
    bumped = [layout.bump_index(shape, index) for index in indices]
    assert bumped == [*indices[1:], None][: len(indices)]


def test_visiting_holds_one_index_at_a_time() -> None:
    visited = itertools.islice(layout.row_major_indices(parse("f32[1000000,1000000]")), 2)
    assert list(visited) == [(0, 0), (0, 1)]


def test_bounds_and_order_of_indices() -> None:
    shape = parse("f32[2,3]{0,1}")
    assert layout.index_in_bounds(shape, (1, 2))
    for index in ((2, 0), (0, -1), (0,)):
        assert not layout.index_in_bounds(shape, index)
    assert [layout.compare_indices(a, (1, 1)) for a in ((0, 9), (1, 1), (1, 2))] == [-1, 0, 1]
    assert layout.dimension_stride(shape, 1) == 2
    with pytest.raises(layout.LayoutError, match="out of range for 6 elements"):
        layout.linear_index_to_multidimensional_index(shape, 6)
    with pytest.raises(layout.LayoutError, match="different lengths"):
        layout.compare_indices((1,), (1, 2))
    with pytest.raises(layout.LayoutError, match="dimension 2"):
        layout.dimension_stride(shape, 2)


# ---- relations


def test_layouts_equal() -> None:
    """Every part but M and D; of minor_to_major alone XLA still compares split configs."""
    full = hlo.parse_layout("{1,0:T(8,128)L(2)#(u32)*(u32)E(4)S(1)SC(0:1)M(4)}")
    assert layout.layouts_equal(
        full, hlo.parse_layout("{1,0:D(D,C)T(8,128)L(2)#(u32)*(u32)E(4)S(1)SC(0:1)M(8)}")
    )
    others = (
        "{0,1:T(8,128)L(2)#(u32)*(u32)E(4)S(1)SC(0:1)}", "{1,0:L(2)#(u32)*(u32)E(4)S(1)SC(0:1)}",
        "{1,0:T(8,128)#(u32)*(u32)E(4)S(1)SC(0:1)}", "{1,0:T(8,128)L(2)*(u32)E(4)S(1)SC(0:1)}",
        "{1,0:T(8,128)L(2)#(u32)E(4)S(1)SC(0:1)}", "{1,0:T(8,128)L(2)#(u32)*(u32)S(1)SC(0:1)}",
        "{1,0:T(8,128)L(2)#(u32)*(u32)E(4)SC(0:1)}", "{1,0:T(8,128)L(2)#(u32)*(u32)E(4)S(1)}",
    )  # fmt: skip
    for text in others:
        other = hlo.parse_layout(text)
        assert not layout.layouts_equal(full, other)
        same_order = other.minor_to_major == (1, 0) and bool(other.split_configs)
        assert layout.layouts_equal(full, other, minor_to_major_only=True) == same_order
    assert not layout.layouts_equal(Layout((0,)), Layout((0,), physical_shape=parse("f32[2]")))


RELATIONS = {
    "equal": layout.shapes_equal,
    "equal_ignoring_element_type": layout.equal_ignoring_element_type,
    "compatible": layout.compatible,
    "compatible_ignoring_element_type": layout.compatible_ignoring_element_type,
    "compatible_ignoring_fp_precision": layout.compatible_ignoring_fp_precision,
    "compatible_kind": layout.compatible_kind,
    "same_structure": layout.same_structure,
}
SHAPE_ONLY = {"compatible", "compatible_ignoring_element_type", "compatible_ignoring_fp_precision"}


@pytest.mark.parametrize(
    ("a", "b", "holding"),
    [
        ("f32[2,3]{1,0}", "f32[2,3]", set(RELATIONS)),
        ("f32[2,3]{1,0}", "f32[2,3]{0,1}", {*SHAPE_ONLY, "compatible_kind", "same_structure"}),
        ("f32[2,3]{1,0}", "f32[2,3]{1,0:S(1)}", {*SHAPE_ONLY, "compatible_kind", "same_structure"}),
        ("f32[2,3]{1,0:M(4)}", "f32[2,3]{1,0}", set(RELATIONS)),
        ("f32[<=2,3]{1,0}", "f32[2,3]{1,0}", {*SHAPE_ONLY, "compatible_kind", "same_structure"}),
        ("f32[?,3]{1,0}", "f32[5,3]{1,0}", {*SHAPE_ONLY, "compatible_kind", "same_structure"}),
        ("f32[2,3]", "f32[2,4]", {"compatible_kind", "same_structure"}),
        ("f32[2,3]", "f32[6]", {"same_structure"}),
        ("f32[2]", "token[]", {"same_structure"}),
        (
            "f32[2]",
            "bf16[2]",
            set(RELATIONS) - {"equal", "compatible"},
        ),
        (
            "f32[2]",
            "s32[2]",
            set(RELATIONS) - {"equal", "compatible", "compatible_ignoring_fp_precision"},
        ),
        ("token[]", "opaque[]", {"same_structure"}),
        ("token[]", "token[]", set(RELATIONS)),
        ("b(f32[2])", "b(f32[2]{0})", set(RELATIONS)),
        ("b(f32[2])", "f32[2]", {"same_structure"}),
        ("(f32[2], s32[])", "(f32[2]{0}, s32[])", set(RELATIONS)),
        ("(f32[2], s32[])", "(f32[2], (s32[]))", set()),
        ("(f32[2], s32[])", "(f32[2])", set()),
        ("()", "()", set(RELATIONS)),
    ],
)
def test_relations_of_shapes(a: str, b: str, holding: set[str]) -> None:
    for first, second in ((parse(a), parse(b)), (parse(b), parse(a))):
        assert {name for name, relation in RELATIONS.items() if relation(first, second)} == holding


# ---- the padding fields of old layouts


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("0,1", [1, 4, 0, 2, 5, 0, 3, 6, 0, 0, 0, 0, 0, 0, 0]),
        ("1,0", [1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_padding_fields(order: str, expected: list[int]) -> None:
    """The example of the old document on shapes: [2,3] padded to [3,5]."""
    shape = parse(f"s32[2,3]{{{order}}}")
    array = np.arange(1, 7, dtype=np.int32).reshape(2, 3)
    buffer = layout.padded_to_memory(array, shape, (3, 5))
    assert buffer.tolist() == expected
    assert layout.padded_from_memory(buffer, shape, (3, 5)).tolist() == array.tolist()
    assert layout.padded_to_memory(array, shape, (3, 5), padding_value=7).tolist() == [
        n or 7 for n in expected
    ]
    for position, value in enumerate(expected):
        index = layout.padded_index_at(shape, (3, 5), position)
        assert (0 if index is None else array[index]) == value
        if index is not None:
            assert layout.padded_linear_index(shape, (3, 5), index) == position
    assert str(layout.padded_shape(shape, (3, 5))) == f"s32[3,5]{{{order}}}"


def test_bad_padding_fields() -> None:
    shape = parse("s32[2,3]{1,0}")
    for padded in ((3,), (1, 3), (2, 3, 4)):
        with pytest.raises(layout.LayoutError, match="padded_dimensions"):
            layout.padded_shape(shape, padded)
    with pytest.raises(layout.LayoutError, match="the index"):
        layout.padded_linear_index(shape, (3, 5), (2, 0))
    with pytest.raises(layout.LayoutError, match="the array"):
        layout.padded_to_memory([1, 2], shape, (3, 5))
