"""Layout assignment as XLA's CPU compiler does it: layouts are whole, and every one and every copy has a reason."""

from __future__ import annotations

import contextlib
import json
import lzma

import pytest

import hlotext as hlo
from hlotext import compiler
from hlotext.analysis import arrays_of
from hlotext.compiler.creation_order import CreationOrder
from hlotext.compiler.layout_values import order_of
from hlotext.edit import integrity
from hlotext.memory.value_sets import shape_of
from hlotext.rewrite import Pipeline, parse_passes
from tests import pass_pairs
from tests.support import DATA
from tests.test_passes_broken import BROKEN

PAIRS = [pair for pair in pass_pairs.sampled() if pair.name == "layout-assignment"]

STEPS = json.loads(lzma.decompress((DATA / "layout_steps.json.xz").read_bytes()))
"""Modules before and after layout assignment on CPU, as XLA recorded them, of programs of the corpus."""

LOOP = """HloModule m, entry_computation_layout={(f32[8,4]{1,0})->(f32[8,4]{0,1}, s32[])}
body {
  s = (f32[8,4]{1,0}, s32[]) parameter(0)
  a = f32[8,4]{1,0} get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  b = f32[8,4]{1,0} negate(a)
  ROOT r = (f32[8,4]{1,0}, s32[]) tuple(b, m)
}
condition {
  t = (f32[8,4]{1,0}, s32[]) parameter(0)
  k = s32[] get-tuple-element(t), index=1
  ten = s32[] constant(10)
  ROOT c = pred[] compare(k, ten), direction=LT
}
ENTRY e {
  x = f32[8,4]{1,0} parameter(0)
  zero = s32[] constant(0)
  i = (f32[8,4]{1,0}, s32[]) tuple(x, zero)
  ROOT w = (f32[8,4]{1,0}, s32[]) while(i), condition=condition, body=body
}
"""


@pytest.mark.parametrize("text", [LOOP, *(pair.before for pair in PAIRS)])
def test_every_layout_has_a_reason(text: str) -> None:
    module = hlo.parse(text)
    outcome = compiler.layout_assignment(module)
    assert str(module) == text
    assert integrity.problems(outcome.module) == []
    assert {d.code for d in hlo.verify(outcome.module)} <= {d.code for d in hlo.verify(module)}
    hlo.parse(str(outcome.module))
    told = {decision.instruction for decision in outcome.decisions}
    for i in outcome.module.entry:
        made = i.opcode not in ("tuple", "get-tuple-element", "while")
        if made and any(leaf.rank > 1 for _, leaf in arrays_of(shape_of(i))):
            assert i.name in told, i


def test_result_and_loop() -> None:
    """The state of a loop lies alike everywhere; the program's result is copied where it is to lie otherwise."""
    outcome = compiler.layout_assignment(hlo.parse(LOOP))
    root = outcome.module.entry.root
    assert root.opcode == "tuple"
    assert order_of(shape_of(root).tuple_shapes[0]) == (0, 1)
    assert [d.rule for d in outcome.decisions if "result of e" in d.because] == ["copy of the result"]
    loop = next(i for i in outcome.module.entry if i.opcode == "while")
    body = loop.attributes["body"]
    shapes = {str(s.shape) for s in (loop, loop.operands[0], body.root, body.parameters[0])}
    assert len(shapes) == 1


def test_other_platforms_are_refused() -> None:
    with pytest.raises(ValueError, match="layout assignment for tpu is unknown"):
        compiler.layout_assignment(hlo.parse(LOOP), "tpu")


@pytest.mark.parametrize("text", BROKEN[::7])
def test_broken_modules(text: str) -> None:
    """Models answer, or say in an error of the library why they cannot."""
    module = hlo.parse_tolerant(text).module
    if module is not None:
        for model in (compiler.layout_assignment, compiler.cpu_fusion):
            with contextlib.suppress(ValueError):
                model(module)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step["program"]))
def test_recorded_steps(step: dict[str, str]) -> None:
    """Reshapes that passes made last, conversions before collectives, and custom calls that share memory."""
    module = hlo.parse(step["before"])
    Pipeline(parse_passes("cpu-layout-assignment"), verify=False).run(module)
    assert pass_pairs.Prints(module).whole() == pass_pairs.Prints(hlo.parse(step["after"])).whole()


LATE = {
    "moved behind the addition, as reshape.3 says": (
        """a = f32[8,4]{1,0} add(x, x)  reshape.9 = f32[8,1,4]{2,1,0} reshape(a)
        n = f32[8,1,4]{2,1,0} negate(reshape.9)  ROOT reshape.3 = f32[32,1]{1,0} reshape(n)""",
        ["reshape.9"],
    ),
    "the program's own": (
        "a = f32[8,4]{1,0} add(x, x)  squeeze.9 = f32[8,1,4]{2,1,0} reshape(a)  ROOT n = f32[8,1,4]{2,1,0} negate(squeeze.9)",
        [],
    ),
    "regroups only": (
        "reshape.9 = f32[2,4,4]{2,1,0} reshape(x)  ROOT n = f32[2,4,4]{2,1,0} negate(reshape.9)",
        [],
    ),
    "regroups and adds: two were merged": (
        "reshape.9 = f32[2,4,4,1]{3,2,1,0} reshape(x)  ROOT n = f32[2,4,4,1]{3,2,1,0} negate(reshape.9)",
        ["reshape.9"],
    ),
    "before a collective that was there": (
        "b = bf16[8,4]{1,0} convert(x)  c = f32[8,4]{1,0} convert(b)  ROOT g = f32[8,8]{1,0} all-gather(c), dimensions={1}",
        ["c"],
    ),
}


@pytest.mark.parametrize("what", LATE)
@pytest.mark.parametrize("place", ["e", "wide.wide.e"])
def test_what_was_made_last(what: str, place: str) -> None:
    """In a body that was made anew twice only the numbers of reshapes count."""
    text, late = LATE[what]
    computation = hlo.parse(f"ENTRY {place} {{ x = f32[8,4]{{1,0}} parameter(0) {text} }}").entry
    if place != "e":
        late = [name for name in late if "reshape.3" in text]
    vector = CreationOrder([computation]).vector(computation)
    assert [i.name for i in vector[len(vector) - len(late) :]] == late
    assert [i.name for i in vector if i.name not in late] == [
        i.name for i in computation if i.name not in late
    ]
