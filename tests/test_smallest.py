"""The smallest pair of texts that still differs. Needs jaxlib."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.execution import NotExecutable, smallest_difference
from hlotext.rewrite.extraction import extract_between
from tests.cli_support import run

pytest.importorskip("jaxlib")

LOOP = """HloModule m

f {
  p = f32[8,8] parameter(0)
  q = f32[8,8] parameter(1)
  s = f32[8,8] add(p, q)
  ROOT t = f32[8,8] tanh(s)
}

body {
  c = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  v = f32[8,8] get-tuple-element(c), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[8,8] fusion(v, v), kind=kLoop, calls=f
  ROOT r = (s32[], f32[8,8]) tuple(j, w)
}

cond {
  c = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(5)
  ROOT l = pred[] compare(i, n), direction=LT
}

ENTRY e {
  a = f32[8,8] parameter(0)
  b = f32[8,8] parameter(1)
  d = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = s32[] constant(0)
  t = (s32[], f32[8,8]) tuple(z, d)
  w = (s32[], f32[8,8]) while(t), body=body, condition=cond
  x = f32[8,8] get-tuple-element(w), index=1
  y = f32[8,8] multiply(x, a)
  ROOT u = (f32[8,8], f32[8,8]) tuple(y, d)
}
"""


@pytest.mark.xla
@pytest.mark.parametrize(
    ("right", "wrong", "name", "most"),
    [
        ("add(p, q)", "subtract(p, q)", "s", 6),  # in a fusion in a loop
        ("multiply(x, a)", "multiply(x, b)", "y", 8),
        ("dims={1}, rhs", "dims={0}, rhs", "d", 6),
        ("constant(5)", "constant(9)", "l", 6),  # in the condition of a loop
    ],
)
def test_what_is_left_is_the_operation_at_fault(right: str, wrong: str, name: str, most: int) -> None:
    before, after = hlo.parse(LOOP), hlo.parse(LOOP.replace(right, wrong))
    pair = smallest_difference(before, after)
    assert pair.name == name
    assert pair.instructions <= most
    assert pair.difference > 0.01
    assert [str(p.shape) for p in pair.before.entry.parameters] == [
        str(p.shape) for p in pair.after.entry.parameters
    ]
    assert not [found for one in (pair.before, pair.after) for found in hlo.verify(one)]
    assert str(before) == LOOP


FUSED = """HloModule m

f {
  p = f32[8] parameter(0)
  m = f32[8] multiply(p, p)
  ROOT s = f32[8] add(m, p)
}

g {
  p = f32[8] parameter(0)
  ROOT n = f32[8] negate(p)
}

ENTRY e {
  a = f32[8] parameter(0)
  fusion = f32[8] fusion(a), kind=kLoop, calls=f
  fusion.1 = f32[8] fusion(fusion), kind=kLoop, calls=g
  ROOT r = f32[8] multiply(fusion.1, a)
}
"""
PLAIN = """HloModule m

ENTRY e {
  a = f32[8] parameter(0)
  fusion.1 = f32[8] multiply(a, a)
  s = f32[8] add(fusion.1, a)
  fusion = f32[8] negate(s)
  ROOT r = f32[8] multiply(fusion, a)
}
"""


@pytest.mark.xla
def test_a_fault_in_a_fusion_names_no_innocent_one() -> None:
    """A pass made the fusions, and gave them names that others had."""
    pair = smallest_difference(hlo.parse(PLAIN), hlo.parse(FUSED.replace("add(m, p)", "subtract(m, p)")))
    assert pair.name == "s"
    assert pair.after.entry.root.opcode == "subtract"
    assert pair.before.entry.root.opcode == "add"


@pytest.mark.xla
def test_progress_says_how_much_is_left() -> None:
    seen: list[int] = []
    smallest_difference(
        hlo.parse(LOOP), hlo.parse(LOOP.replace("add(p, q)", "subtract(p, q)")), progress=seen.append
    )
    assert len(seen) > 1
    assert seen == sorted(seen, reverse=True)


@pytest.mark.xla
def test_equal_modules_have_no_pair() -> None:
    with pytest.raises(NotExecutable, match="compute the same results"):
        smallest_difference(hlo.parse(LOOP), hlo.parse(LOOP))


def test_given_instructions_become_parameters_in_their_order() -> None:
    module = hlo.parse(LOOP)
    y, d, a = (module.entry[name] for name in ("y", "d", "a"))
    assert d.shape is not None
    found = extract_between([y, d], [(d.shape, None), (d.shape, module.entry["x"]), (d.shape, a)])
    names = [p.name for p in found.entry.parameters]
    assert names == ["b", "unused.given", "x.given", "a.given"]
    assert found.entry.root.opcode == "tuple"
    assert not list(hlo.verify(found))


@pytest.mark.xla
def test_bisect_writes_the_pair(tmp_path: Path) -> None:
    folder = tmp_path / "dump"
    folder.mkdir()
    wrong = LOOP.replace("add(p, q)", "subtract(p, q)")
    for name, text in (
        ("before_optimizations", LOOP),
        ("0000.p.after_a.before_b", LOOP + "\n"),
        ("0001.p.after_b.before_c", wrong),
    ):
        (folder / f"module_0000.jit_f.{name}.txt").write_text(text)
    target = tmp_path / "pair"
    result = run("dump", "bisect", folder, "--reduce", target)
    assert result.exit_code == 1
    assert "--against" in result.stderr
    assert " subtract(" in (target / "wrong.txt").read_text()
    assert run("run", target / "right.txt", "--against", target / "wrong.txt").exit_code == 1
