"""`hlotext graph`: neighbourhoods, drawings in layers, the data of the page."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlotext as hlo
from hlotext.analysis import scopes, source_locations, total_of, written_bytes
from hlotext.cost import traffic
from hlotext.findings import escape
from hlotext.view.graph import as_dot, as_svg, graph_page, neighbourhood, origins
from hlotext.view.graph.layered import layered
from hlotext.view.graph.op_lines import MOST_LINE
from hlotext.view.page.colours import PALETTE
from hlotext.view.page.packing import unpacked, unpacked_bytes
from tests import support
from tests.cli_support import run
from tests.pages import Page

STEP = support.CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
TUPLES = """HloModule tuples

ENTRY e {
  a = f32[8]{0} parameter(0)
  b = f32[4]{0} parameter(1)
  t = (f32[8]{0}, f32[4]{0}) tuple(a, b)
  second = f32[4]{0} get-tuple-element(t), index=1
  n = f32[4]{0} negate(second)
  start = (f32[8]{0}, f32[8]{0}, u32[]) copy-start(a)
  done = f32[8]{0} copy-done(start)
  m = f32[8]{0} abs(done)
  ROOT r = (f32[4]{0}, f32[8]{0}) tuple(n, m)
}
"""


def parts_of(page: str) -> dict[str, str]:
    found = re.findall(r'<script type="application/octet-stream" data-part="([\w-]+)">([^<]*)</script>', page)
    return dict(found)


def numbers_of(page: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The words and the columns of a page, one number for each instruction as its script makes them."""
    parts = parts_of(page)
    words, data = unpacked(parts["words"]), unpacked_bytes(parts["numbers"])
    found: dict[str, Any] = {}
    at = 0
    for name, kind, count in words["layout"]:
        assert at % int(kind[1]) == 0
        found[name] = np.frombuffer(data, f"<{kind}", count, at)
        at += found[name].nbytes
    assert at == len(data)
    head = found["head"]
    found["opcode"], found["shape"] = found["head_opcode"][head], found["head_shape"][head]
    found["colour"] = np.array(words["colours"])[found["opcode"]]
    for number, colour in words["wrapped"].items():
        found["colour"][int(number)] = colour
    found["bytes"] = np.array(words["held"], float)[found["shape"]]
    found["bytes"][found["writer"]] = found["written_bytes"]
    ends = np.cumsum(found["operand_count"])[:-1]
    places = np.repeat(np.arange(len(head)), found["operand_count"])
    found["operands"] = np.split(places - found["operand"].astype(int), ends)
    return words, found


def lines_of(page: str) -> list[str]:
    """The op lines of a page, as its script cuts them from the blocks."""
    parts, (_, columns) = parts_of(page), numbers_of(page)
    found: list[str] = []
    firsts, blocks = [*columns["pieces"], len(columns["head"])], [*columns["blocks"], len(columns["pieces"])]
    for number, (first, end) in enumerate(itertools.pairwise(blocks)):
        pieces = unpacked_bytes(parts[f"lines-{number}"]).decode().split("\0")
        for text, piece in zip(pieces, range(first, end), strict=True):
            count = firsts[piece + 1] - firsts[piece]
            found += [escape.one_line(line) for line in text.split("\n")[1 : count + 1]]
    return found


def test_what_only_moves_values_is_folded() -> None:
    """An element of a tuple comes from what was put there; a copy is a mark on the edge."""
    found = neighbourhood(hlo.parse(TUPLES), hops=5)
    assert [node.name for node in found.nodes] == ["a", "b", "n", "m", "r"]
    edges = {(e.source.name, e.target.name): e for e in found.edges}
    assert set(edges) == {("b", "n"), ("a", "m"), ("n", "r"), ("m", "r")}
    assert edges["a", "m"].is_copied
    assert not edges["b", "n"].is_copied
    assert edges["b", "n"].bytes == 16
    unfolded = neighbourhood(hlo.parse(TUPLES), hops=9, fold=False)
    assert len(unfolded.nodes) == 9


def test_a_neighbourhood_ends_where_asked() -> None:
    """At most so many operations, at most so far, and what is not shown is counted."""
    module = hlo.load(STEP)
    one = neighbourhood(module, "fusion.19", hops=1)
    names = {node.name for node in one.nodes}
    assert {"fusion.19", "all-reduce.4", "fusion.17"} <= names
    assert any(rest.instruction.name == "all-reduce.4" and rest.way == "operands" for rest in one.rest)
    assert len(neighbourhood(module, "fusion.19", hops=9, most=7).nodes) == 7
    with pytest.raises(LookupError, match="no instruction or computation nosuch"):
        neighbourhood(module, "nosuch")


@st.composite
def acyclic(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    count = draw(st.integers(0, 18))
    sizes = [(draw(st.floats(10, 300)), draw(st.floats(10, 100))) for _ in range(count)]
    pairs = [pair for pair in itertools.combinations(range(count), 2) if draw(st.integers(0, 4)) == 0]
    return sizes, pairs


@given(acyclic())
def test_no_boxes_overlap_and_edges_lead_down(
    graph: tuple[list[tuple[float, float]], list[tuple[int, int]]],
) -> None:
    """Whatever the graph: boxes stand apart, each edge goes from a box's lower edge down to another's upper edge."""
    sizes, pairs = graph
    plan = layered(sizes, pairs)
    boxes = [
        (x - w / 2, x + w / 2, y - h / 2, y + h / 2)
        for (x, y), (w, h) in zip(plan.centres, sizes, strict=True)
    ]
    for a, b in itertools.combinations(boxes, 2):
        assert a[1] <= b[0] + 1e-6 or b[1] <= a[0] + 1e-6 or a[3] <= b[2] + 1e-6 or b[3] <= a[2] + 1e-6
    for (source, target), path in zip(pairs, plan.paths, strict=True):
        assert path[0][1] == pytest.approx(boxes[source][3])
        assert path[-1][1] == pytest.approx(boxes[target][2])
        assert all(first[1] <= second[1] + 1e-6 for first, second in itertools.pairwise(path))
        assert boxes[source][0] <= path[0][0] <= boxes[source][1]
    for left, right, top, bottom in boxes:
        assert -1e-6 <= left <= right <= plan.width + 1e-6
        assert -1e-6 <= top <= bottom <= plan.height + 1e-6


def test_the_picture_is_svg() -> None:
    """Well-formed, a box for each operation, nothing that runs."""
    found = neighbourhood(hlo.load(STEP), "fusion.19")
    text = as_svg(found)
    tree = ET.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    boxes = [e for e in tree.iter(f"{space}rect") if str(e.get("class")).startswith("box")]
    assert len(boxes) == len(found.nodes)
    assert len([e for e in tree.iter(f"{space}path") if str(e.get("class")).startswith("edge")]) == len(
        found.edges
    )
    assert not list(tree.iter(f"{space}script"))
    assert as_svg(neighbourhood(hlo.load(STEP), "fusion.19")) == text


def test_arguments_have_their_names_in_the_program() -> None:
    """`params['w']` and not `param.2`; the instruction's own name is in the tooltip."""
    module = hlo.parse(
        "HloModule m\n\nENTRY e {\n  param.2 = f32[8]{0} parameter(0), metadata={op_name=\"params['w']\"}\n"
        '  ROOT n = f32[8]{0} negate(param.2), metadata={op_name="jit(f)/neg"}\n}\n'
    )
    found = neighbourhood(module)
    svg = ET.fromstring(as_svg(found))
    shown = [element.text for element in svg.iter() if element.tag.endswith("text")]
    titles = [element.text or "" for element in svg.iter() if element.tag.endswith("title")]
    assert {"params['w']", "n"} <= set(shown)
    assert "param.2" not in shown
    assert any(title.startswith("params['w'] (param.2): parameter") for title in titles)
    assert "params['w']" in as_dot(found)


def test_the_text_for_graphviz() -> None:
    """Every node and edge once; quotes and backslashes stay inside strings; graphviz reads it where it is installed."""
    found = neighbourhood(hlo.load(STEP), "fusion.19")
    text = as_dot(found)
    assert text.count(" -> ") == len(found.edges) + len(found.rest)
    assert len(re.findall(r"^  n\d+ \[label", text, re.MULTILINE)) == len(found.nodes)
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tplain"], input=text, text=True, check=True, capture_output=True)


def test_the_columns_are_the_module() -> None:
    """Names, operands, opcodes, bytes, elements, scopes, roots and op lines."""
    module = hlo.load(STEP)
    page = graph_page(module)
    words, columns = numbers_of(page)
    instructions = list(module.instructions())
    names = unpacked_bytes(parts_of(page)["names"]).decode().split("\n")
    assert names == [one.name for one in instructions]
    assert len(columns["head"]) == len(names)
    for n, one in enumerate(instructions):
        assert [names[o] for o in columns["operands"][n]] == [o.name for o in one.operands]
        assert words["opcodes"][columns["opcode"][n]] == one.opcode
        assert words["shapes"][columns["shape"][n]] == str(one.shape)
        held = total_of(one.shape).allocated_bytes
        assert columns["bytes"][n] == (written_bytes(one) or held)
        assert words["held"][columns["shape"][n]] == held
        assert words["op_names"][columns["op_name"][n]] == (one.metadata.op_name if one.metadata else "")
    assert [words["scopes"]["name"][n] for n in columns["scope"]] == [
        (scopes(module).of(one).path or ("",))[-1] for one in instructions
    ]
    places = [source_locations(module).get(one) for one in instructions]
    assert [words["lines"][n] for n in columns["line"]] == [
        f"{place[0].file}:{place[0].line}" if place else "" for place in places
    ]
    taken = [one.attributes["index"] for one in instructions if one.opcode == "get-tuple-element"]
    assert list(columns["element"]) == taken
    assert list(columns["computation_size"]) == list(map(len, module.computations))
    called = [
        (n, module.computations.index(body))
        for n, one in enumerate(instructions)
        for body in one.called_computations
    ]
    assert list(zip(columns["caller"], columns["called"], strict=True)) == called
    for c, computation in enumerate(module.computations):
        assert names[columns["root"][c]] == computation.root.name
    assert lines_of(page) == [" ".join(str(one).split()) for one in instructions]
    pictures = unpacked(parts_of(page)["pictures"])
    shape = columns["shape"][names.index("fusion.19")]
    assert "f32[256,512]" in pictures["svg"][pictures["of"][shape][0]]


def test_fusions_tell_the_collective_that_they_carry() -> None:
    """The opcode of a fusion does not say it; nor does its name."""
    module = hlo.load(support.CORPUS / "tpu" / "sharded_sort_fft_conv.v5e_2x2x1.after_optimizations.txt")
    parts = parts_of(graph_page(module))
    told, names = unpacked(parts["words"]), unpacked_bytes(parts["names"]).decode().split("\n")
    facts = {names[int(number)]: dict(map(tuple, rows)) for number, rows in told["why"].items()}
    starts = [one for one in traffic(module).flows if one.communication.fusion is not None]
    assert starts
    for flow in starts:
        assert flow.communication.fusion is not None
        text = facts[flow.communication.fusion.name]["collective"]
        assert flow.communication.kind in text
        assert "sent by each device" in text


def test_wrappers_have_the_colour_of_what_they_carry() -> None:
    """Starts and dones, which the GPU compiler names after the collective and writes as `async-start`; also in pictures."""
    module = hlo.load(support.CORPUS / "gpu" / "ragged_all_to_all.h100_1x1x4.after_optimizations.txt")
    wrappers = [one for one in module.instructions() if one.opcode.startswith("async-")]
    assert wrappers
    words, columns = numbers_of(graph_page(module))
    (orange,) = (colour for colour, text in words["kinds"] if text == "communication")
    carrying = [one for one in module.instructions() if one in wrappers or one.opcode.startswith("all-")]
    number = {one: n for n, one in enumerate(module.instructions())}
    assert {columns["colour"][number[one]] for one in carrying} == {orange}
    name = wrappers[0].name
    assert f'fill="{PALETTE[orange]}"' in as_svg(neighbourhood(module, name, hops=1))


ODD = """HloModule odd

f {
  // a comment
  x = f32[] parameter(0)

  y = f32[] parameter(1) /* more */
  ROOT  z =   f32[]   add(x, y), metadata={op_name="\u202e\x00 é"}
}

empty { p = f32[] parameter(0) }

ENTRY e { a = f32[8] parameter(0)
 b = f32[8] parameter(1)
  ROOT c = f32[8] add(a,
     b), to_apply=f
}
"""


@pytest.mark.parametrize("end", ["\n", "\r\n", "  \n"])
@pytest.mark.parametrize("text", [TUPLES, ODD], ids=["tuples", "odd"])
def test_op_lines_are_those_of_the_instructions(text: str, end: str) -> None:
    """As they are cut from the text of a computation at once, and once one of them was edited."""
    module = hlo.parse_tolerant(text.replace("\n", end)).module
    for _ in range(2):
        assert lines_of(graph_page(module)) == [escape.one_line(str(one)) for one in module.instructions()]
        module.entry.root.name = "renamed"


def test_long_lines_are_cut_and_large_computations_are_in_several_blocks() -> None:
    """A click unpacks little; of a line with a large constant the first characters are kept."""
    lines = "\n".join(f"  a{n} = f32[8]{{0}} add(a{n - 1}, a{n - 1})" for n in range(1, 9000))
    module = hlo.parse(
        "HloModule long\n\nENTRY e {\n  a0 = f32[8]{0} parameter(0)\n"
        f"{lines}\n  ROOT c = f32[20000]{{0}} constant({{{', '.join(['1.5'] * 20_000)}}})\n}}\n"
    )
    page = graph_page(module)
    assert sum(name.startswith("lines-") for name in parts_of(page)) == 2
    found, whole = lines_of(page), str(module.entry.root)
    assert found[:-1] == list(map(str, module.entry))[:-1]
    assert found[-1] == f"{whole[:MOST_LINE]} … ({len(whole):,} characters)"


def test_names_are_shown_on_one_line() -> None:
    """All at once where they are plain, which is as good as one by one."""
    plain = ["a", "b.1", "é"]
    assert escape.each_line(plain) is plain
    assert escape.each_line([]) == []
    for odd in ("a\nb", "##[x]", "::x", "a\tb", "\x1b[1m", "\u202e"):
        assert escape.each_line(["a", odd]) == ["a", escape.line(odd)]
        assert escape.line(odd) != odd


def test_the_same_page_twice() -> None:
    """Byte for byte."""
    assert graph_page(hlo.load(STEP)) == graph_page(hlo.load(STEP))


def test_hostile_names_make_no_markup() -> None:
    """No tag that is not ours, no script but ours, whatever operations are called."""
    text = TUPLES.replace("HloModule tuples", "HloModule </title><script>alert(1)</script>").replace(
        "negate(second)",
        'negate(second), metadata={op_name="</script><script>alert(1)</script>/x" source_file="<b>.py" source_line=1}',
    )
    module = hlo.parse_tolerant(text).module
    page = graph_page(module)
    scripts = [found for tag, found in Page(page).tags if tag == "script"]
    assert [found for found in scripts if not found] == [{}]
    assert {str(found.get("type")) for found in scripts if found} == {"application/octet-stream"}
    assert "alert" not in page
    svg = as_svg(neighbourhood(module))
    assert "<script" not in svg
    ET.fromstring(svg)


def test_the_command(tmp_path: Any) -> None:
    """A page, a picture, a text; what is not there has exit status 1."""
    place = tmp_path / "graph.html"
    assert run("graph", STEP, "-o", place).exit_code == 0
    module = hlo.load(STEP)
    assert place.read_text("utf-8") == graph_page(module, why=origins(module))
    assert run("graph", STEP, "-i", "fusion.19", "--format", "svg").stdout.startswith("<svg")
    assert run("graph", STEP, "-i", "fusion.19", "--format", "dot").stdout.startswith("digraph")
    for form in ("html", "svg", "dot"):
        result = run("graph", STEP, "-i", "nosuch", "--format", form)
        assert (result.exit_code, result.stdout) == (1, "")
    assert run("graph", "nosuch.txt").exit_code == 2
