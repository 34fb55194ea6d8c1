"""Passes in which the compilers of platforms differ: what the text tells, what is given, and runs repeated to the end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.rewrite import Pipeline, parse_passes
from hlotext.rewrite.passes import PassOptionError
from tests.cli_support import run
from tests.support import ROOT

LAYOUT = "entry_computation_layout={(f32[300]{0:T(512)})->f32[300]{0:T(512)}}"
LOOP = """HloModule m%s

body {
  s = (s32[], f32[300], f32[300]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[300] get-tuple-element(s), index=1
  y = f32[300] get-tuple-element(s), index=2
  zero = f32[] constant(0)
  zeros = f32[300] broadcast(zero), dimensions={}
  largest = f32[300] maximum(x, zeros)
  sine = f32[300] sine(x)
  a = f32[300] add(y, largest)
  b = f32[300] add(a, sine)
  ROOT t = (s32[], f32[300], f32[300]) tuple(j, x, b)
}

cond {
  s = (s32[], f32[300], f32[300]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT lt = pred[] compare(i, n), direction=LT
}

ENTRY e {
  x = f32[300] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[300], f32[300]) tuple(zero, x, x)
  w = (s32[], f32[300], f32[300]) while(t), condition=cond, body=body
  ROOT y = f32[300] get-tuple-element(w), index=2
}
"""
MOVED = """ENTRY e {
  x = %s[2,3,4] parameter(0)
  w = %s[6] parameter(1)
  a = %s[6,4] reshape(x)
  b = %s[6,4] broadcast(w), dimensions={0}
  ROOT r = %s[6,4] add(a, b)
}
"""
SMALL = """ENTRY e {
  x = f8e4m3fn[4,8] parameter(0)
  y = f8e4m3fn[8,4] parameter(1)
  z = bf16[4,4] parameter(2)
  d = bf16[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = bf16[4,4] add(d, z)
}
"""


def _opcodes(text: str, passes: str, **given: str) -> Counter[str]:
    module = hlo.parse(text)
    Pipeline(parse_passes(passes, **given)).run(module)
    return Counter(i.opcode for i in module.entry)


@pytest.mark.parametrize(
    ("header", "platform", "maxima", "sines"),
    [("", "", 1, 1), (f", {LAYOUT}", "", 0, 1), ("", "tpu", 0, 1), (f", {LAYOUT}", "cpu", 1, 1)],
)
def test_nothing_is_computed_of_broadcasts_in_front_of_loops_for_tpu(
    header: str, platform: str, maxima: int, sines: int
) -> None:
    found = _opcodes(LOOP % header, "while-loop-invariant-code-motion", platform=platform)
    assert (found["maximum"], found["sine"]) == (maxima, sines)


@pytest.mark.parametrize(
    ("type_", "platform", "is_moved"),
    [("f32", "", False), ("bf16", "", True), ("f32", "gpu", True), ("bf16", "cpu", False)],
)
def test_broadcasts_are_cheap_for_gpu(type_: str, platform: str, is_moved: bool) -> None:
    module = hlo.parse(MOVED.replace("%s", type_))
    Pipeline(parse_passes("reshape-mover", platform=platform)).run(module)
    assert (module.entry.root.opcode == "reshape") is is_moved


@pytest.mark.parametrize(("platform", "wide"), [("", 0), ("cpu", 1)])
def test_bf16_beside_products_of_8_bit_floats_stays(platform: str, wide: int) -> None:
    found = _opcodes(SMALL, "float-normalization", platform=platform)
    assert (found["convert"] > 0) == bool(wide)


def test_platform_and_age_go_to_passes_that_take_them() -> None:
    passes = parse_passes("dce,algsimp,float-normalization{platform=cpu}", "gpu", "0.10.2")
    assert [str(p) for p in passes] == [
        "dce",
        "algsimp{platform=gpu,age=0.10.2}",
        "float-normalization{platform=cpu,age=0.10.2}",
    ]
    for word in ({"platform": "gpux"}, {"age": "x"}):
        with pytest.raises(PassOptionError):
            parse_passes("algsimp", **word)


def test_command() -> None:
    text = MOVED.replace("%s", "f32")
    assert "ROOT r" in run("rewrite", "-p", "reshape-mover", "-", input=text).stdout
    assert (
        "ROOT reshape" in run("rewrite", "-p", "reshape-mover", "--platform", "gpu", "-", input=text).stdout
    )
    assert run("rewrite", "-p", "reshape-mover", "--platform", "x", "-", input=text).exit_code == 2
    assert run("rewrite", "-p", "algsimp", "--age", "x", "-", input=text).exit_code == 2


REPEATED = ("hlo-module-dce", "layout-normalization", "rename-instructions", "reshape-mover")


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in sorted((ROOT / "tests" / "data" / "passes").glob("*.hlo"))
        if path.read_text().splitlines()[0].removeprefix("// passes: ").split("{")[0] in REPEATED
    ],
    ids=lambda path: path.stem,
)
def test_repeated_runs_end(path: Path) -> None:
    """The second run may find what the first has made possible, and the fourth nothing."""
    text = path.read_text()
    (pass_,) = parse_passes(text.splitlines()[0].removeprefix("// passes: "))
    module = hlo.parse(text)
    assert any(not pass_.run(module).changed for _ in range(4))


@pytest.mark.parametrize(("kind", "options", "merged"), [
    ("kLoop", "", [True, False]),
    ("kCustom", "", [True, True]),
    ("kLoop", "{only_fusion_computations=false}", [True, True]),
])  # fmt: skip
def test_cse_looks_into_fusions_alone_once_tpu_has_fused(kind: str, options: str, merged: list[bool]) -> None:
    module = hlo.parse(
        f"""HloModule m, {LAYOUT}

inside {{
  p = f32[300]{{0:T(512)}} parameter(0)
  a = f32[300]{{0:T(512)}} sine(p)
  b = f32[300]{{0:T(512)}} sine(p)
  ROOT r = f32[300]{{0:T(512)}} add(a, b)
}}

ENTRY e {{
  x = f32[300]{{0:T(512)}} parameter(0)
  f = f32[300]{{0:T(512)}} fusion(x), kind={kind}, calls=inside
  a = f32[300]{{0:T(512)}} sine(f)
  b = f32[300]{{0:T(512)}} sine(f)
  ROOT r = f32[300]{{0:T(512)}} add(a, b)
}}
"""
    )
    Pipeline(parse_passes(f"cse{options}")).run(module)
    assert [c.root.operands[0] is c.root.operands[1] for c in module.computations] == merged


WEIGHTS = """HloModule m, entry_computation_layout={{(f32[64,8], f32[64,4])->f32[4,8]{{1,0:T(8,128)}}}}

ENTRY {name} {{
  x = f32[64,8]{{1,0}} parameter(0)
  w = f32[64,4]{{1,0}} parameter(1)
  three = f32[] constant(3)
  c = f32[64,8]{{1,0}} broadcast(three), dimensions={{}}
  y = f32[64,8]{{1,0}} {opcode}(x, c)
  d = f32[8,4]{{1,0}} dot(y, w), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  ROOT t = f32[4,8]{{1,0}} transpose(d), dimensions={{1,0}}
}}
"""


@pytest.mark.parametrize(("name", "opcode", "root"), [
    ("main", "divide", "dot"),
    ("main", "multiply", "transpose"),
    ("main_spmd", "divide", "transpose"),
])  # fmt: skip
def test_the_first_walk_on_tpu_swaps_operands_of_a_dot(name: str, opcode: str, root: str) -> None:
    """A division by a constant shows that no walk was there before, except after partitioning; later ones leave parameters
    on the right."""
    module = hlo.parse(WEIGHTS.format(name=name, opcode=opcode))
    Pipeline(parse_passes("algsimp")).run(module)
    assert module.entry.root.opcode == root


def test_tpu_keeps_outer_products() -> None:
    text = """ENTRY e {
  x = f32[8]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  ROOT d = f32[8,4]{1,0} dot(x, y), lhs_contracting_dims={}, rhs_contracting_dims={}
}
"""
    for platform, opcode in (("tpu", "dot"), ("cpu", "multiply")):
        module = hlo.parse(text)
        Pipeline(parse_passes(f"algsimp{{platform={platform}}}")).run(module)
        assert module.entry.root.opcode == opcode
