"""Edges of what readers, commands and reports tell that sampled mutants survived: see `tests/mutants`."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import attrs
import pytest

import hlotext as hlo
from hlotext import cost, lint, reports
from hlotext.analysis.sizes import parse_bytes
from hlotext.dumps.program_changes import program_changes
from hlotext.findings.finding import FindingList
from hlotext.lint.small_origins import small_origin
from hlotext.semantics.problems import Callee
from hlotext.verify import verify
from hlotext.verify.findings import _related
from hlotext.view.report import time_parts
from tests.cli_support import run, run_json
from tests.test_reports import report

CALL = """HloModule m

f {
  a = f32[4] parameter(0)
  ROOT n = f32[4] negate(a)
}

ENTRY e {
  x = f32[4] parameter(0)
  ROOT r = f32[4] call(x), to_apply=f, metadata={op_name="jit(g)/layer/attention/call"}
}
"""


LOOP = """HloModule m

condition {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(0)
  ROOT l = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] multiply(x, x)
  ROOT t = (s32[], f32[4]) tuple(j, y)
}

ENTRY e {
  z = s32[] constant(0)
  x = f32[4] parameter(0)
  t = (s32[], f32[4]) tuple(z, x)
  w = (s32[], f32[4]) while(t), condition=condition, body=body, backend_config={"known_trip_count":{"n":"0"}}
  ROOT r = f32[4] get-tuple-element(w), index=1
}
"""


@pytest.mark.parametrize(("options", "is_whole"), [((), True), (("--depth", "1"), False)])
def test_json_has_scopes_as_deep_as_asked_for(
    options: tuple[str, ...], is_whole: bool, tmp_path: Path
) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(CALL.replace("negate(a)", 'negate(a), metadata={op_name="jit(g)/layer/attention/neg"}'))
    (found,) = run_json("cost", path, "--by", "scope", *options)["modules"]
    assert ("attention" in json.dumps(found["parts"])) is is_whole
    assert "layer" in json.dumps(found["parts"])


def test_what_never_runs_costs_nothing_and_has_no_row() -> None:
    module = hlo.parse(LOOP)
    assert set(cost.analyze(module).by("computation")) == {"e"}


@pytest.mark.parametrize(
    ("argument", "result", "new_argument", "new_result", "wanted"),
    [
        ("f32", "bf16", "f32", "f16", "element type bf16 -> f16 in result r"),
        ("f32", "f32", "bf16", "bf16", "element type f32 -> bf16 in argument x"),
    ],
)
def test_other_types_of_results_are_told_where_the_arguments_do_not_say_it(
    argument: str, result: str, new_argument: str, new_result: str, wanted: str
) -> None:
    text = "HloModule m\n\nENTRY e {{\n  x = {}[4] parameter(0)\n  ROOT r = {}[4] convert(x)\n}}\n"
    old, new = hlo.parse(text.format(argument, result)), hlo.parse(text.format(new_argument, new_result))
    told = [str(change) for change in program_changes(old, new)]
    assert [one for one in told if one.startswith("element type")] == [wanted]


@pytest.mark.parametrize(
    ("written", "number"),
    [
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), -(2**63)),
        (str(2**64 - 1), -1),
        (str(-(2**63)), -(2**63)),
    ],
)
def test_numbers_of_64_bits_wrap_around_as_in_xla(written: str, number: int) -> None:
    module = hlo.parse(
        "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n"
        f"  ROOT r = f32[4] all-gather(x), channel_id={written}, dimensions={{0}}, replica_groups={{{{0}}}}\n}}\n"
    )
    assert module.entry.root.attributes["channel_id"] == number


def test_an_update_and_a_done_of_one_start_are_two_ends() -> None:
    module = hlo.parse("""HloModule m

w {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}

ENTRY e {
  p = f32[4] parameter(0)
  s = ((f32[4]), f32[4], s32[]) async-start(p), calls=w
  u = ((f32[4]), f32[4], s32[]) async-update(s)
  d = f32[4] async-done(s)
  ROOT d2 = f32[4] async-done(u)
}
""")
    assert "async-start needs one async-done, but 2 instructions complete it" in [
        one.message for one in verify(module)
    ]


@pytest.mark.parametrize(("computation", "is_there"), [(0, True), (1, False)])
def test_a_called_computation_that_is_missing_is_not_referred_to(computation: int, is_there: bool) -> None:
    assert (_related(hlo.parse(CALL).entry.root, Callee(computation)) is not None) is is_there


@pytest.mark.parametrize(("total", "told"), [(None, False), (len(report().findings), False), (99, True)])
def test_junit_says_how_many_findings_a_limit_leaves_out(total: int | None, told: bool) -> None:
    """In a comment: a suite of its own would count as a test."""
    written = reports.junit(attrs.evolve(report(), total=total))
    assert ("of 99 findings" in written) is told
    assert ET.fromstring(written).tag == "testsuites"


def test_a_file_that_cannot_be_read_is_told_by_triage(tmp_path: Path) -> None:
    path = tmp_path / "bad.hlo"
    path.write_text("HloModule m\n\nENTRY e {\n  x = f32[4 parameter(0)\n}\n")
    shown = run("triage", path)
    assert shown.exit_code == 2
    assert "bad.hlo:4:13: error[X101]" in shown.stderr


def test_lines_behind_a_header_without_a_brace_are_read_whole() -> None:
    text = "HloModule m\n\nENTRY e (x: f32[4]) -> f32[4]\nfirst = f32[4] parameter(0)\nROOT r = f32[4] negate(first)\n}\n"
    found = hlo.parse_tolerant(text)
    assert [one.code for one in found.diagnostics] == ["X101"]
    assert [one.name for one in found.module.entry] == ["first", "r"]


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("1.5MiB", 3 << 19), ("512KiB", 1 << 19), ("2 GB", 2 * 10**9), ("1GiB", 1 << 30)],
)
def test_sizes_have_binary_and_decimal_units(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("count", "lines", "last"),
    [(0, 1, "nothing found"), (50, 50, ""), (51, 51, "and 1 more"), (1100, 51, "and 1,050 more")],
)
def test_a_notebook_lists_fifty_findings(count: int, lines: int, last: str) -> None:
    (finding, *_) = report().findings
    shown = (
        FindingList([attrs.evolve(finding, message="said")] * count)
        ._repr_mimebundle_()["text/plain"]
        .splitlines()
    )
    assert [one for one in shown if not one.startswith(" ")][-1].endswith(last)
    assert sum(str(finding.code) in one or one == last for one in shown) == lines


def test_views_on_the_way_to_a_small_origin_compute_nothing() -> None:
    module = hlo.parse("""HloModule m, is_scheduled=true

ENTRY e {
  x = f32[64]{0} parameter(0)
  wide = f32[64,64]{1,0} broadcast(x), dimensions={1}
  view = f32[4096]{0} bitcast(wide)
  ROOT made = f32[4096]{0} negate(view)
}
""")
    found = small_origin(module.entry.root, 4 * 4096, lint.make_context(module))
    assert found is not None
    assert [one.name for one in found.computed] == ["made", "wide"]


def test_seconds_of_a_loop_are_those_of_its_computations() -> None:
    module = hlo.parse(LOOP)
    loop = module.instruction("w")
    body, condition = module.computation("body"), module.computation("condition")
    sums = {body: {("matmul", False): 0.25, ("launch", True): 0.5}, condition: {("matmul", False): 0.125}}
    found = cost.estimate(module, "v5e")
    assert time_parts._inside(loop, found, sums) == {("matmul", False): 0.375, ("launch", True): 0.5}
