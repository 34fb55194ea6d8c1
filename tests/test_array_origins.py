"""Where arrays come from: `analysis.array_origin`, and the column that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import analysis
from tests.cli_support import run, run_json

TEXT = """HloModule m, is_scheduled=true

fused (p: f32[8], q: f32[8]) -> f32[8] {
  p = f32[8]{0} parameter(0)
  q = f32[8]{0} parameter(1)
  ROOT sum = f32[8]{0} add(p, q)
}

body (state: (s32[], f32[8], f32[8])) -> (s32[], f32[8], f32[8]) {
  state = (s32[], f32[8]{0}, f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  kept = f32[8]{0} get-tuple-element(state), index=1
  carried = f32[8]{0} get-tuple-element(state), index=2
  viewed = f32[8]{0} bitcast(kept)
  next = f32[8]{0} fusion(viewed, carried), kind=kLoop, calls=fused
  ROOT t = (s32[], f32[8]{0}, f32[8]{0}) tuple(i, kept, next)
}

condition (state.1: (s32[], f32[8], f32[8])) -> pred[] {
  state.1 = (s32[], f32[8]{0}, f32[8]{0}) parameter(0)
  ROOT no = pred[] constant(false)
}

ENTRY e (a: f32[8], b: f32[8]) -> f32[8] {
  a = f32[8]{0} parameter(0), metadata={op_name="w['bias']"}
  b = f32[8]{0} parameter(1)
  zero = s32[] constant(0)
  begun = (f32[8]{0}, f32[8]{0}, u32[]) copy-start(a)
  done = f32[8]{0} copy-done(begun)
  start = f32[8]{0} negate(b)
  init = (s32[], f32[8]{0}, f32[8]{0}) tuple(zero, done, start)
  loop = (s32[], f32[8]{0}, f32[8]{0}) while(init), condition=condition, body=body
  same = f32[8]{0} get-tuple-element(loop), index=1
  result = f32[8]{0} get-tuple-element(loop), index=2
  ROOT out = f32[8]{0} subtract(same, result)
}
"""


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        pytest.param("q", "start, updated in loop", id="through a fusion and a loop that changes it"),
        pytest.param("p", "w['bias'] (a)", id="through a fusion, a bitcast, kept state and a prefetch"),
        ("done", "w['bias'] (a)"),
        ("same", "w['bias'] (a)"),
        pytest.param("result", "loop element 2", id="computed by the loop"),
        ("start", "start"),
        ("b", "b"),
        ("next", "next"),
    ],
)
def test_origins(name: str, origin: str) -> None:
    assert str(analysis.array_origin(hlo.parse(TEXT).instruction(name))) == origin


def test_loops_around_each_other_are_all_named() -> None:
    text = """HloModule m
inner (s: (f32[4])) -> (f32[4]) {
  s = (f32[4]) parameter(0)
  x = f32[4] get-tuple-element(s), index=0
  y = f32[4] negate(x)
  ROOT t = (f32[4]) tuple(y)
}
some (c: (f32[4])) -> pred[] {
  c = (f32[4]) parameter(0)
  ROOT no = pred[] constant(false)
}
outer (o: (f32[4])) -> (f32[4]) {
  o = (f32[4]) parameter(0)
  ROOT w = (f32[4]) while(o), condition=some, body=inner
}
ENTRY e {
  a = f32[4] parameter(0)
  t.1 = (f32[4]) tuple(a)
  ROOT v = (f32[4]) while(t.1), condition=some, body=outer
}
"""
    found = analysis.array_origin(hlo.parse(text).instruction("x"))
    assert (found.instruction.name, [loop.name for loop in found.loops]) == ("a", ["w", "v"])


def test_show_names_the_arguments_that_a_fusion_reads(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    ended = run("show", path, "-i", "next")
    assert "comes from" in ended.stdout
    assert "w['bias'] (a)" in ended.stdout
    (details,) = run_json("show", path, "-i", "next")["found"]
    assert [one["origin"] for one in details["operands"]] == ["w['bias'] (a)", "start, updated in loop"]
    assert all(one["origin"] == "" for one in details["users"])
    # Nothing is said where each operand is its own origin.
    assert "comes from" not in run("show", path, "-i", "start").stdout


def test_arguments_are_shown_by_their_name_in_the_program(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    (details,) = run_json("show", path, "-i", "w['bias']")["found"]
    assert (details["name"], [user["name"] for user in details["users"]]) == ("a", ["begun"])
    assert run("show", path, "-i", "w['weight']").exit_code == 1
