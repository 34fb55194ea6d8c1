"""Findings that are left out where nobody could act on them, and savings that meet what the repaired text takes less."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import cost, lint
from hlotext.analysis import Backend
from tests import support
from tests.test_lint_places import ATTENTION
from tests.test_lint_savings import codes, only

DATA = support.DATA / "lint"


def fires(*names: str) -> str:
    """The first module of a file of examples, which has a finding."""
    return DATA.joinpath(*names).read_text("utf-8").partition("HloModule silent")[0]


def seconds(text: str, chip: str) -> float:
    return cost.estimate(hlo.parse(text), chip).seconds


@pytest.mark.parametrize("flag", ["indices_are_sorted", "unique_indices"])
def test_a_scatter_of_sorted_indices_is_not_told_to_sort_them(flag: str) -> None:
    """XLA for TPU sorts the indices of a large scatter itself."""
    text = fires("G110.txt")
    assert only(text, "G110").code
    assert "G110" not in codes(text.replace("index_vector_dim=1,", f"index_vector_dim=1, {flag}=true,"))


def test_transposes_of_a_resized_image_are_not_those_of_the_convolution() -> None:
    text = fires("parts", "convolution_relayout.txt")
    assert "3 instructions only transpose" in only(text, "L103").message
    turned = "calls=%turned_back"
    assert turned in text
    resized = text.replace(turned, turned + ', metadata={op_name="jit(run)/jit(_resize)/dot_general"}')
    assert "2 instructions only transpose" in only(resized, "L103").message


def test_a_sum_of_which_each_device_keeps_its_part_gives_back_what_was_gathered() -> None:
    """XLA for CPU makes no reduce-scatter of it, and converts what it sums in f32."""
    text = fires("C101.txt")
    summed = """s = f32[524288]{0} all-reduce(g), replica_groups=[1,8]<=[8], channel_id=2, use_global_device_ids=true, SUM
  narrow = bf16[524288]{0} convert(s)
  id = u32[] partition-id()
  number = s32[] convert(id)
  many = s32[] constant(65536)
  first = s32[] multiply(number, many)
  mine = bf16[65536]{0} dynamic-slice(narrow, PLACE), dynamic_slice_sizes={65536}
  y = f32[65536]{0} convert(mine)"""
    sequence = text.replace("y = f32[65536]{0} slice(g), slice={[0:65536]}", summed).replace(
        "condition {",
        "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\ncondition {",
        1,
    )
    sequence = sequence.replace("SUM", "to_apply=sum")
    assert only(text, "C101").code
    assert "C101" not in codes(sequence.replace("PLACE", "first"))
    assert "C101" in codes(sequence.replace("PLACE", "many"))


def test_residuals_of_f32_data_are_f32() -> None:
    """As those of a normalizing flow, whose networks alone are narrow."""
    text = fires("parts", "wide_residuals.txt")
    assert only(text, "D101").code
    carried = text.replace(
        "s = (s32[], bf16[64,256]{1,0}, bf16[256,256]{1,0},",
        "s = (s32[], f32[64,256]{1,0}, bf16[256,256]{1,0},",
    ).replace("ROOT n = (s32[], bf16[64,256]{1,0},", "ROOT n = (s32[], f32[64,256]{1,0},")
    carried = carried.replace("loop = (s32[], bf16[64,256]{1,0},", "loop = (s32[], f32[64,256]{1,0},")
    carried = carried.replace(
        "h = bf16[64,256]{1,0} get-tuple", "state = f32[64,256]{1,0} get-tuple"
    ).replace(
        "p = f32[64,256]{1,0} dot(", "h = bf16[64,256]{1,0} convert(state)\n  p = f32[64,256]{1,0} dot("
    )
    carried = carried.replace(
        "new = bf16[64,256]{1,0} convert(gate)", "new = f32[64,256]{1,0} add(gate, state)"
    )
    carried = carried.replace("h = bf16[64,256]{1,0} parameter(0)", "h = f32[64,256]{1,0} parameter(0)")
    hlo.parse(carried)
    assert "D101" not in codes(carried)


def test_scores_of_attention_are_left_to_the_rule_about_them() -> None:
    """Messages along edges are no scores, nor is what no softmax normalizes."""
    for path in ("M121.txt", "M116.txt"):
        assert "attention" not in only(fires(path), path[:4]).help
    assert "M121" not in codes(ATTENTION)
    assert "attention" not in only(ATTENTION.replace("exponential(", "tanh("), "M121").help


def test_what_is_stacked_and_reduced_costs_filling_writing_and_reading() -> None:
    """As much as programs that reduce in the body take less."""
    text = fires("M115.txt").replace("1024]", "1048576]").replace("reshape(", "bitcast(")
    last = text.replace("f32[4,1048576]", "f32[1,1048576]").replace(
        "[0:64:16], [0:1048576]", "[63:64], [0:1048576]"
    )
    repaired = (
        last.replace(", f32[64,1048576]{1,0})", ")")
        .replace("tuple(next, y, stacked)", "tuple(next, y)")
        .replace("tuple(zero, x, empty)", "tuple(zero, x)")
        .replace("index=2", "index=1")
    )
    lines = [
        line
        for line in repaired.splitlines()
        if not line.lstrip().startswith(("row =", "stacked =", "empty =", "ys = f32[64,1048576]"))
    ]
    repaired = "\n".join(lines).replace(
        "ROOT some = f32[1,1048576]{1,0} slice(ys), slice={[63:64], [0:1048576]}",
        "ROOT some = f32[1048576]{0} get-tuple-element(loop), index=1",
    )
    finding = only(last, "M115", chip="h100")
    assert finding.seconds == pytest.approx(seconds(last, "h100") - seconds(repaired, "h100"), rel=0.05)
    assert only(text, "M115", chip="h100").seconds is None


PAIRS = """HloModule pairs, is_scheduled=true

joined {
  s = f32[512,128]{1,0} parameter(0)
  a = f32[512,512,128]{2,1,0} broadcast(s), dimensions={0,2}
  b = f32[512,512,128]{2,1,0} broadcast(s), dimensions={1,2}
  ROOT c = f32[512,512,256]{2,1,0} concatenate(a, b), dimensions={2}
}

added {
  a = f32[512,64]{1,0} parameter(0)
  b = f32[512,64]{1,0} parameter(1)
  c = f32[512,512,64]{2,1,0} broadcast(a), dimensions={0,2}
  d = f32[512,512,64]{2,1,0} broadcast(b), dimensions={1,2}
  e = f32[512,512,64]{2,1,0} add(c, d)
  ROOT f = f32[512,512,64]{2,1,0} tanh(e)
}

ENTRY main {
  s = f32[512,128]{1,0} parameter(0)
  w = f32[256,64]{1,0} parameter(1)
BODY
}
"""
TOGETHER = """  pairs = f32[512,512,256]{2,1,0} fusion(s), kind=kLoop, calls=joined
  rows = f32[262144,256]{1,0} bitcast(pairs)
  product = f32[262144,64]{1,0} dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[262144,64]{1,0} tanh(product)"""
APART = """  v = f32[128,64]{1,0} slice(w), slice={[0:128], [0:64]}
  a = f32[512,64]{1,0} dot(s, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[512,64]{1,0} dot(s, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[512,512,64]{2,1,0} fusion(a, b), kind=kLoop, calls=added"""


@pytest.mark.parametrize("chip", ["cpu", "h100"])
def test_pairs_of_rows_cost_what_is_joined_and_what_is_multiplied(chip: str) -> None:
    """What is multiplied for each row is added up where it is read, without an array of its own."""
    text, repaired = (PAIRS.replace("BODY", body) for body in (TOGETHER, APART))
    backend = Backend.CPU if chip == "cpu" else Backend.GPU
    finding = only(text, "G119", chip=chip, profile=backend)
    assert finding.seconds == pytest.approx(seconds(text, chip) - seconds(repaired, chip), rel=0.1)


REPEATED = """HloModule repeated, is_scheduled=true

body {
  s = (s32[], f32[512,512]{1,0}, f32[VALUES]{}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[512,512]{1,0} get-tuple-element(s), index=1
  scale = f32[VALUES]{} get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  table = f32[512,512]{1,0} broadcast(scale), dimensions={DIMENSIONS}
  new = f32[512,512]{1,0} multiply(x, table)
  ROOT n = (s32[], f32[512,512]{1,0}, f32[VALUES]{}) tuple(next, new, scale)
}

condition {
  s = (s32[], f32[512,512]{1,0}, f32[VALUES]{}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  most = s32[] constant(100)
  ROOT more = pred[] compare(i, most), direction=LT
}

ENTRY main {
  x = f32[512,512]{1,0} parameter(0)
  scale = f32[VALUES]{} parameter(1)
  zero = s32[] constant(0)
  s = (s32[], f32[512,512]{1,0}, f32[VALUES]{}) tuple(zero, x, scale)
  loop = (s32[], f32[512,512]{1,0}, f32[VALUES]{}) while(s), condition=condition, body=body
  ROOT r = f32[512,512]{1,0} get-tuple-element(loop), index=1
}
"""


def test_repeating_a_single_value_is_no_work() -> None:
    """XLA does it in the loop wherever the program does."""
    rows = REPEATED.replace("[VALUES]{}", "[512]{0}").replace("DIMENSIONS", "1")
    single = REPEATED.replace("[VALUES]{}", "[]").replace("DIMENSIONS", "")
    assert "G116" in codes(rows)
    assert "G116" not in codes(single)


def test_what_a_sampler_makes_of_constants_is_not_for_the_program_to_move() -> None:
    table = "iota.1 = f32[512,512]{1,0} iota(), iota_dimension=0NAME\n  table = f32[512,512]{1,0} cosine(iota.1)NAME"
    text = REPEATED.replace("[VALUES]{}", "[]").replace(
        "table = f32[512,512]{1,0} broadcast(scale), dimensions={DIMENSIONS}", table
    )
    own = text.replace("NAME", ', metadata={op_name="jit(run)/while/body/mul"}')
    sampler = text.replace("NAME", ', metadata={op_name="jit(run)/while/body/jit(_uniform)/mul"}')
    assert "G116" in codes(own)
    assert "G116" not in codes(sampler)


def test_indices_that_xla_sorts_for_a_scatter_are_to_be_sorted_before_the_loop() -> None:
    named = ', metadata={op_name="jit(run)/while/body/scatter-add"}'
    text = REPEATED.replace("f32[VALUES]{}", "s32[262144]{0}").replace(
        "table = f32[512,512]{1,0} broadcast(scale), dimensions={DIMENSIONS}",
        f"order = s32[262144]{{0}} sort(scale), dimensions={{0}}, to_apply=less{named}\n"
        "  square = s32[512,512]{1,0} bitcast(order)\n  table = f32[512,512]{1,0} convert(square)",
    )
    text = text.replace(
        "body {",
        "less {\n  p = s32[] parameter(0)\n  q = s32[] parameter(1)\n"
        "  ROOT r = pred[] compare(p, q), direction=LT\n}\n\nbody {",
        1,
    )
    finding = only(text, "G116")
    assert "indices_are_sorted=True" in finding.help
    assert "indices_are_sorted" not in only(text.replace("/scatter-add", "/sort"), "G116").help


AHEAD = """HloModule ahead, is_scheduled=true

scaled {
  q = s8[65536,128]{1,0} parameter(0)
  c = f32[65536,128]{1,0} convert(q), metadata={op_name="jit(run)/convert_element_type"}
  n = f32[] constant(0.5)
  ns = f32[65536,128]{1,0} broadcast(n), dimensions={}
  ROOT m = f32[65536,128]{1,0} multiply(c, ns)
}

taking {
  all = TYPE[65536,128]{1,0} parameter(0)
  rows = s32[512,1]{1,0} parameter(1)
  ROOT g = TYPE[512,128]{1,0} gather(all, rows), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, SIZES
}

body {
  s = (s32[], f32[512,128]{1,0}, TYPE[65536,128]{1,0}, s32[512,1]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  sum = f32[512,128]{1,0} get-tuple-element(s), index=1
  all = TYPE[65536,128]{1,0} get-tuple-element(s), index=2
  rows = s32[512,1]{1,0} get-tuple-element(s), index=3
  one = s32[] constant(1)
  next = s32[] add(i, one)
  taken = TYPE[512,128]{1,0} fusion(all, rows), kind=kLoop, calls=taking
  new = f32[512,128]{1,0} add(sum, taken)
  ROOT n = (s32[], f32[512,128]{1,0}, TYPE[65536,128]{1,0}, s32[512,1]{1,0}) tuple(next, new, all, rows)
}

condition {
  s = (s32[], f32[512,128]{1,0}, TYPE[65536,128]{1,0}, s32[512,1]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  most = s32[] constant(64)
  ROOT more = pred[] compare(i, most), direction=LT
}

ENTRY main {
  q = s8[65536,128]{1,0} parameter(0)
  sum = f32[512,128]{1,0} parameter(1)
  rows = s32[512,1]{1,0} parameter(2)
  zero = s32[] constant(0)
  DATA
  s = (s32[], f32[512,128]{1,0}, TYPE[65536,128]{1,0}, s32[512,1]{1,0}) tuple(zero, sum, data, rows)
  loop = (s32[], f32[512,128]{1,0}, TYPE[65536,128]{1,0}, s32[512,1]{1,0}) while(s), condition=condition, body=body
  ROOT r = f32[512,128]{1,0} get-tuple-element(loop), index=1
}
""".replace("SIZES", "index_vector_dim=1, slice_sizes={1,128}")
WIDENED = AHEAD.replace("TYPE", "f32").replace(
    "DATA", "data = f32[65536,128]{1,0} fusion(q), kind=kLoop, calls=scaled"
)
NARROW = (
    AHEAD.replace("ROOT g = TYPE", "g = TYPE")
    .replace("slice_sizes={1,128}\n", "slice_sizes={1,128}\n  ROOT w = f32[512,128]{1,0} convert(g)\n")
    .replace("taken = TYPE", "taken = f32")
    .replace("TYPE", "s8")
    .replace("DATA", "data = s8[65536,128]{1,0} bitcast(q)")
)


def test_data_widened_ahead_of_a_loop_cost_what_converting_in_its_body_spares() -> None:
    finding = only(WIDENED, "D101", chip="h100", profile=Backend.GPU)
    assert finding.seconds == pytest.approx(seconds(WIDENED, "h100") - seconds(NARROW, "h100"), rel=0.1)
    assert finding.peak_bytes == pytest.approx(4 * 65536 * 128, rel=0.01)
    assert "in s8 they would take 8.00 MiB" in finding.message
    read = WIDENED.replace(
        "new = f32[512,128]{1,0} add(sum, taken)", "half = f32[65536,128]{1,0} cosine(all)\n" + KEPT
    )
    hoisted = WIDENED.replace("/convert_element_type", "/while/body/convert_element_type")
    assert "D101" in codes(
        hoisted
    )  # the program converts all of it in each iteration: the compiler moved that out
    own = WIDENED.replace("/convert_element_type", "/while/body/dot_general")
    for other in (NARROW, own, read, WIDENED.replace("multiply(c, ns)", "power(c, ns)")):
        assert "D101" not in codes(other)


KEPT = "  new = f32[512,128]{1,0} add(sum, taken)"


def test_windows_that_overlap_are_no_rows_of_a_table() -> None:
    """Of windows as of rows more are multiplied than the array has, but no product of the array holds them."""
    rows = """HloModule rows, is_scheduled=true

ENTRY main {
  t = f32[4096,TABLE]{1,0} parameter(0)
  i = s32[65536,1]{1,0} parameter(1)
  w = f32[64,64]{1,0} parameter(2)
  g = f32[65536,64]{1,0} gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={MAP}, SIZES
  ROOT d = f32[65536,64]{1,0} dot(g, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
""".replace("SIZES", "index_vector_dim=1, slice_sizes={1,64}")
    assert only(
        rows.replace("TABLE", "64").replace("MAP", "0"), "G119", chip="h100", profile=Backend.GPU
    ).code
    windows = rows.replace("TABLE", "128").replace("MAP", "1")
    config = lint.Config(**{**support.SAY_ALL, "select": ("G119",), "profile": Backend.GPU})
    assert not lint.run(hlo.parse(windows), config)
