"""Explanations, pictures and the command: what people see, kept in golden files."""

from __future__ import annotations

import doctest
import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings

import hlotext as hlo
from hlotext import layout
from hlotext.cli.shape import command
from hlotext.layout import tiling
from hlotext.view import LayoutPicture
from hlotext.view import layout_picture as picture_module
from hlotext.view.layout_grid import GAP, grid
from tests import support
from tests.layout_cases import shapes

Golden = Callable[[Path, str], None]

FOLDER = support.DATA / "layout"
EXPLAINED = (
    "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}",
    "f32[17,130]{0,1:T(8,128)}",
    "f32[300]{0:T(8,128)}",
    "bf16[1000]{0:T(1024)(128)(2,1)S(1)}",
    "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
    "f32[4,6,10]{2,1,0:T(2,4)(3,2,2)L(1000)}",
    "f32[5,300]{1,0:T(2,4)(3,1)}",
    "s4[<=9,129]{1,0:T(8,128)(8,1)E(4)S(5)SC(0:5)M(128)}",
    "s4[9,3]{1,0:#(u32)*(u32)SC(0:)M(128)}",
    "f32[100]{0:L(128)}",
    "f32[2,3]",
    "f32[]{:T(8,128)S(6)}",
    "f32[0,3]{1,0:T(8,128)}",
    "pred[1,2,1,1,1,1,1,1,1,1,1,1,1,1,3]",
    "b(c64[3]{0})",
    "(f32[3]{0:T(128)}, (s32[], token[]))",
)
DRAWN = (
    "f32[3,5]{1,0:T(2,2)}",
    "f32[4,8]{1,0:T(2,4)(2,1)}",
    "f32[5,3]{0,1:T(2,2)L(64)}",
    "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}",
    "f32[9,129]{1,0:T(8,128)}",
    "bf16[1000]{0:T(1024)(128)(2,1)}",
    "f32[2,3,4,6]{3,2,1,0:T(*,*,2,3)}",
    "f32[4,6,10]{2,1,0:T(2,4)(3,2,2)}",
    "f32[100,100]{0,1}",
    "f32[7]{0:T(2,3)}",
    "f32[]{:T(128)}",
    "f32[]",
    "f32[0,3]{1,0:T(8,128)}",
)


def test_explanations(golden: Golden) -> None:
    texts = [str(layout.explain(hlo.parse_shape(text))) for text in EXPLAINED]
    golden(FOLDER / "explained.txt", "\n\n".join(texts) + "\n")


def test_explanations_as_values(golden: Golden) -> None:
    """What `--format json` writes, of an array and of a tuple."""
    facts = [layout.explain(hlo.parse_shape(text)).to_json() for text in (EXPLAINED[1], EXPLAINED[-1])]
    golden(FOLDER / "explained.json", json.dumps(facts, indent=2) + "\n")


@given(shapes())
@settings(max_examples=50)
def test_every_shape_is_explained(shape: hlo.Shape) -> None:
    explanation = layout.explain(shape)
    assert isinstance(explanation, layout.ArrayExplanation)
    assert explanation.allocated_bytes - explanation.padding_bytes == layout.unpadded_bytes(shape)
    padded = int(np.prod([row.padded_size for row in explanation.padding_by_dimension], dtype=object))
    extra = explanation.inner_padding_elements + explanation.tail_padding_elements
    assert padded + extra == explanation.allocated_elements
    assert str(shape) in str(explanation)
    json.dumps(explanation.to_json())


# ---- pictures


def test_pictures_as_text(golden: Golden) -> None:
    texts = [str(LayoutPicture(hlo.parse_shape(text))) for text in DRAWN]
    golden(FOLDER / "pictures.txt", "\n\n".join(texts) + "\n")


@pytest.mark.parametrize(("number", "name"), [(0, "figure_1"), (1, "figure_2"), (5, "vector")])
def test_pictures_as_svg(number: int, name: str, golden: Golden) -> None:
    picture = LayoutPicture(hlo.parse_shape(DRAWN[number]))
    assert picture._repr_svg_() == picture.svg()
    golden(FOLDER / f"{name}.svg", picture.svg() + "\n")


@pytest.mark.parametrize("text", DRAWN)
def test_svg_is_well_formed_and_complete(text: str) -> None:
    """Every cell's position stands in it, and a hatched box behind every padding cell."""
    shape = hlo.parse_shape(text)
    root = ElementTree.fromstring(LayoutPicture(shape).svg())
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == text
    hatched = [
        n for n in root.iter("{http://www.w3.org/2000/svg}rect") if n.get("fill") == "url(#hlotext-padding)"
    ]
    if not shape.element_count:
        assert not hatched
        return
    cells = grid(shape, 16, 16)
    rows = [i for i, number in enumerate(cells.rows.shown) if number != GAP]
    columns = [j for j, number in enumerate(cells.columns.shown) if number != GAP]
    positions = [str(cells.positions[i, j]) for i in rows for j in columns]
    assert not set(positions) - set(texts)
    assert len(hatched) == sum(bool(cells.is_padding[i, j]) for i in rows for j in columns)


@given(shapes(least_size=1))
def test_cells_show_where_elements_lie(shape: hlo.Shape) -> None:
    """Every cell of every picture is an element at its position, or padding."""
    cells = grid(shape, 16, 16)
    for i, row in enumerate(cells.rows.shown):
        for j, column in enumerate(cells.columns.shown):
            if GAP in (row, column):
                continue
            index = layout.index_at(shape, int(cells.positions[i, j]))
            assert (index is None) == bool(cells.is_padding[i, j])
            for axis, number in ((cells.rows, row), (cells.columns, column)):
                if index is not None and len(axis.dimensions) == 1:
                    assert index[axis.dimensions[0]] == number


def test_figures_in_docstrings() -> None:
    """Figures 1 and 2 of the document on tiled layouts, and its worked number 17."""
    for module, examples in ((picture_module, 3), (tiling, 4)):
        result = doctest.testmod(module)
        assert (result.failed, result.attempted) == (0, examples)


# ---- the command


def run(*arguments: str, stdin: str | bytes = "") -> tuple[int, str, str]:
    result = CliRunner().invoke(command, list(arguments), input=stdin)
    return result.exit_code, result.stdout, result.stderr


def test_command_explains() -> None:
    status, out, err = run(EXPLAINED[0])
    assert (status, err) == (0, "")
    assert out.startswith(EXPLAINED[0] + "\n")
    words = re.sub(r" +", " ", out)
    for heading, text in layout.explain(hlo.parse_shape(EXPLAINED[0])).rows():
        assert f" {heading} {text}" in words


def test_command_answers_questions() -> None:
    status, out, err = run(
        DRAWN[0], "--index", "2,3", "--offset", "0x24", "--offset", "12", "--slice", "[0:3],[1:2]"
    )
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "f32[3,5]{1,0:T(2,2)}",
        "  (2, 3)   byte 68 (element 17 in memory)",
        "  byte 36  padding",
        "  byte 12  (1, 1)",
        "",
        "{[0:3], [1:2]} of f32[3,5]{1,0:T(2,2)}: 3 runs, 12 bytes",
        "  first byte  end  bytes",
        "           4    8      4",
        "          12   16      4",
        "          52   56      4",
    ]


def test_command_on_packed_elements() -> None:
    _, out, _ = run("s4[3,5]{1,0:E(4)}", "--index", "(0, 1)", "--offset", "0")
    assert "byte 0, bit 4 (element 1 in memory)" in out
    assert "(0, 0), (0, 1)" in out
    status, out, _ = run("f32[]{:T(128)}", "--index", "", "--slice", "slice={}")
    assert status == 0
    assert "byte 0 (element 0 in memory)" in out
    assert "1 run, 4 bytes" in out


def test_command_draws(tmp_path: Path) -> None:
    place = tmp_path / "figure.svg"
    status, out, _ = run(DRAWN[0], "--text", "--svg", str(place))
    picture = LayoutPicture(hlo.parse_shape(DRAWN[0]))
    assert (status, out) == (0, picture.text() + "\n")
    assert place.read_text(encoding="utf-8") == picture.svg() + "\n"
    assert run(DRAWN[0], "--svg", "-")[:2] == (0, picture.svg() + "\n")


def test_command_writes_json() -> None:
    status, out, _ = run("--format", "json", DRAWN[0], "(f32[2])", stdin="")
    assert status == 0
    first, second = json.loads(out)["shapes"]
    assert first["allocated_bytes"] == 96
    assert first["slices"] == first["indices"] == first["offsets"] == []
    assert second["leaves"] == [{"index": [0], "shape": "f32[2]", "allocated_bytes": 8}]
    _, out, _ = run(
        "--format", "json", DRAWN[0], "--index", "2,3", "--offset", "36", "--slice", "{[0:3],[1:2]}", "--text"
    )
    found = json.loads(out)["shapes"][0]
    assert found["indices"] == [{"index": [2, 3], "position": 17, "byte_offset": 68, "bit": 0}]
    assert found["offsets"] == [{"offset": 36, "elements": [None]}]
    assert found["slices"] == [{"slice": "{[0:3], [1:2]}", "bytes": 12, "runs": [[4, 8], [12, 16], [52, 56]]}]
    assert found["picture"] == LayoutPicture(hlo.parse_shape(DRAWN[0])).text()


def test_command_reads_standard_input() -> None:
    """One shape on each line; whatever is wrong with one of them, the others are answered."""
    status, out, err = run("-", "--index", "1", stdin=b"f32[2]{0}\n\n  f32[3,\nf32[1]{0}\n\xff\nf32[4]\n")
    assert status == 2
    assert [line for line in out.splitlines() if line and line[0] != " "] == ["f32[2]{0}", "f32[4]"]
    assert len(err.splitlines()) == 3
    assert run("-", stdin="f32[2]{0}\n")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["f32[2,2]{1,1}"], 1, "minor_to_major"),
        (["f32[2]{0}", "--index", "2"], 1, "the index"),
        (["f32[2]{0}", "--index", "-1"], 1, "the index"),
        (["f32[2]{0}", "--offset", "8"], 1, "the byte offset"),
        (["f32[2]{0}", "--slice", "[0:3]"], 1, "range of dimension 0"),
        (["(f32[2], f32[3])", "--index", "0"], 1, "is a tuple"),
        (["token[]"], 1, "is a token"),
        (["f32[2"], 2, "column"),
        (["f32[2]{0}", "f32[2", "f32[2,2]{1,1}"], 2, "column"),
        (["f32[2]{0}", "--index", "a"], 2, "is not an index"),
        (["f32[2]{0}", "--offset", "a"], 2, "is not a byte offset"),
        (["f32[2]{0}", "--slice", "0:3"], 2, "is not a slice"),
        (["f32[2]{0}", "f32[3]{0}", "--svg", "-"], 2, "one shape only"),
        (["f32[2]{0}", "--svg", "/nowhere/at/all.svg"], 2, "cannot write"),
        ([], 2, "Missing argument"),
    ],
)
def test_exit_status(arguments: list[str], status: int, message: str) -> None:
    found, _, err = run(*arguments)
    assert found == status
    assert message in err


def test_help_shows_an_example() -> None:
    status, out, _ = run("--help")
    assert status == 0
    assert f"hlotext shape '{EXPLAINED[0]}'" in out
