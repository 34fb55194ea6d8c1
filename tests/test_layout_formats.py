"""The catalogue of formats, the TPU compiler's tiles, and orders of dimensions that pad less."""

from __future__ import annotations

import itertools

import attrs
import pytest
from hypothesis import given

import hlotext as hlo
from hlotext import layout
from tests.layout_cases import shapes
from tests.test_layout_sizes import TPU

parse = hlo.parse_shape


@pytest.mark.parametrize("generation", ["v2", "v4"])
def test_tiles_that_the_tpu_compiler_chose(generation: str) -> None:
    """Every parameter that was observed, given the order of dimensions that the compiler chose."""
    chosen = [text for kind, text, _ in TPU if kind == generation]
    assert len(chosen) > 70
    found = [str(layout.tpu_layout(layout.device_to_host(parse(text)), generation)) for text in chosen]  # type: ignore[arg-type]
    assert found == chosen


def test_every_chosen_layout_is_in_the_catalogue() -> None:
    for kind, text, _ in TPU:
        if kind in ("v2", "v4"):
            assert layout.format_of(parse(text)) is not None, text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("f32[2,3]{0,1}", "raw"),
        ("f32[]", "raw"),
        ("s4[3]{0:E(4)}", "raw"),
        ("f32[8,128]{1,0:T(8,128)}", "TPU 8x128"),
        ("f64[8,128]{1,0:T(8,128)}", "TPU 8x128"),
        ("f32[1,128]{1,0:T(1,128)}", "TPU small 1x128"),
        ("f32[2,128]{1,0:T(2,128)S(1)}", "TPU small 2x128"),
        ("f32[3,128]{1,0:T(4,128)}", "TPU small 4x128"),
        ("bf16[8,128]{1,0:T(8,128)(2,1)}", "TPU 16-bit 8x128"),
        ("bf16[16,128]{1,0:T(16,128)(2,1)}", "TPU 16-bit 16x128"),
        ("s8[8,128]{1,0:T(8,128)(4,1)}", "TPU 8-bit 8x128"),
        ("pred[32,128]{1,0:T(32,128)(4,1)}", "TPU 8-bit 32x128"),
        ("s4[8,128]{1,0:T(8,128)(8,1)E(4)}", "TPU 4-bit 8x128"),
        ("u2[16,128]{1,0:T(16,128)(16,1)E(2)}", "TPU 2-bit 16x128"),
        ("pred[64,256]{1,0:T(32,128)(32,1)E(1)}", "1-bit 32x128"),
        ("f32[7]{0:T(128)}", "TPU vector of 128"),
        ("f32[]{:T(128)}", "TPU scalar"),
        ("f32[]{:T(256)}", "TPU scalar"),
        ("bf16[1000]{0:T(1024)(128)(2,1)}", "TPU 16-bit vector of 1024"),
        ("bf16[8,128]{1,0:T(8,128)}", None),
        ("f32[8,128]{1,0:T(8,128)(2,1)}", None),
        ("f32[3,5]{1,0:T(2,2)}", None),
        ("f32[]{:T(8,128)}", None),
    ],
)
def test_format_of(text: str, name: str | None) -> None:
    found = layout.format_of(parse(text))
    assert (found.name if found else None) == name


def test_catalogue_names_one_format_each() -> None:
    names = [format_.name for format_ in layout.CATALOGUE]
    assert len(set(names)) == len(names)
    keys = [(format_.tiles, bits) for format_ in layout.CATALOGUE for bits in format_.element_bits]
    assert len(set(keys)) == len(keys)
    assert all(format_.meaning for format_ in layout.CATALOGUE)


def test_tiles_that_were_not_observed() -> None:
    for text, part in (
        ("s1[8]{0}", "element type"),
        ("f6e2m3fn[8]{0}", "element type"),
        ("s2[8]{0}", "the rank"),
    ):
        with pytest.raises(layout.LayoutError) as caught:
            layout.tpu_layout(parse(text))
        assert caught.value.part == part


def test_tpu_layout_keeps_order_and_memory_space() -> None:
    found = layout.tpu_layout(parse("bf16[300,2]{0,1:T(4,4)S(1)}"))
    assert str(found) == "bf16[300,2]{0,1:T(2,128)(2,1)S(1)}"


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("f32[100000,1]{1,0:T(8,128)}", "f32[100000,1]{0,1:T(1,128)}"),
        ("f32[300,2]{1,0:T(8,128)}", "f32[300,2]{0,1:T(2,128)}"),
        ("f32[17,130]{0,1:T(8,128)}", "f32[17,130]{1,0:T(8,128)}"),
        ("bf16[5,1,130]{2,1,0:T(2,128)(2,1)}", "bf16[5,1,130]{2,0,1:T(8,128)(2,1)}"),
        ("f32[5,3]{1,0:T(2,8)}", "f32[5,3]{0,1:T(2,8)}"),
        ("f32[3,5]{1,0:T(2,8)}", None),
        ("f32[8,128]{1,0:T(8,128)}", None),
        ("f32[300,2]{1,0}", None),
        ("f32[0,2]{1,0:T(8,128)}", None),
        ("f32[]{:T(128)}", None),
        # The other order would not fit into 64 bits.
        ("f32[3,72057594037927936]{1,0:T(8,128)}", None),
    ],
)
def test_better_order(text: str, better: str | None) -> None:
    found = layout.better_order(parse(text))
    assert (str(found) if found else None) == better


@given(shapes())
def test_better_order_is_the_best_of_all(shape: hlo.Shape) -> None:
    """With one tile that stays as it is, no order of dimensions takes fewer bytes than what is found."""
    assert shape.layout is not None
    found = layout.better_order(shape)
    if len(shape.layout.tiles) != 1 or 0 in shape.dimensions or len(shape.layout.tiles[0].dimensions) > 3:
        return
    sizes = []
    for order in itertools.permutations(range(shape.rank)):
        other = attrs.evolve(shape.layout, minor_to_major=order)
        sizes.append(layout.allocated_bytes(shape.with_layout(other)))
    best = layout.allocated_bytes(found or shape)
    assert best == min(sizes)


def test_memory_spaces() -> None:
    assert "HBM" in layout.memory_space_name(0)
    assert "VMEM" in layout.memory_space_name(1)
    assert "host" in layout.memory_space_name(5)
    assert layout.memory_space_name(6).startswith("memory space 6")
