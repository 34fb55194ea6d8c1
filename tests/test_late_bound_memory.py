"""Memory of asynchronous operations that bind operands and results late: times and values as XLA's own tests have them."""

from __future__ import annotations

import itertools

import pytest

import hlotext as hlo
from hlotext import memory
from hlotext.memory.aliases import find_buffers
from hlotext.memory.dataflow import analyse
from hlotext.memory.in_place import InPlacePairs
from hlotext.memory.schedule import flatten

RELEASES = ("0.11.2", "0.12.0.1")

ONE_OPERAND = """HloModule m, is_scheduled=true

inner {
  i = f32[64]{0} parameter(0)
  ROOT in = f32[64]{0} negate(i)
}

body {
  w = f32[64]{0} parameter(0)
  ROOT c = f32[64]{0} call(w), to_apply=inner
}

ENTRY main {
  a = f32[64]{0} parameter(0)
  n = f32[64]{0} negate(a)
  s = ((), (), s32[]) async-start(), calls=body
"""
BY_UPDATE = (
    ONE_OPERAND
    + """  o = f32[64]{0} negate(a)
  u = ((f32[64]{0}), f32[64]{0}, s32[]) async-update(s, n), calls=body
  d = f32[64]{0} async-done(u), calls=body
  ROOT r = f32[64]{0} add(o, d)
}
"""
)
BY_DONE = (
    ONE_OPERAND
    + """  u = ((f32[64]{0}), (), s32[]) async-update(s, n), calls=body
  d = f32[64]{0} async-done(u), calls=body
  ROOT r = f32[64]{0} add(d, d)
}
"""
)
ONE_BY_ONE = """HloModule m, is_scheduled=true

inner {
  i = f32[64]{0} parameter(0)
  j = f32[64]{0} parameter(1)
  ROOT in = f32[64]{0} add(i, j)
}

body {
  w = f32[64]{0} parameter(0)
  x = f32[64]{0} parameter(1)
  ROOT c = f32[64]{0} call(w, x), to_apply=inner
}

ENTRY main {
  a = f32[64]{0} parameter(0)
  b = f32[64]{0} parameter(1)
  n = f32[64]{0} negate(a)
  o = f32[64]{0} negate(b)
  s = ((), (), s32[]) async-start(), calls=body
  u = ((f32[64]{0}), (), s32[]) async-update(s, n), calls=body
  v = ((f32[64]{0}, f32[64]{0}), f32[64]{0}, s32[]) async-update(u, o), calls=body
  d = f32[64]{0} async-done(v), calls=body
  ROOT r = f32[64]{0} add(d, d)
}
"""
# From HloLiveRangeTest: the body stands before the first that has its operands and its result bound.
TIMES = {
    BY_UPDATE: "a n s o w i in c u d r",
    BY_DONE: "a n s u w i in c d r",
    ONE_BY_ONE: "a b n o s u w x i j in c v d r",
}
IDS = ("by update", "by done", "one by one")


def names(module: hlo.Module, instruction: str, index: tuple[int, ...]) -> str | None:
    """The instruction whose value stands at a position."""
    flow = analyse(module)
    where = module.find(instruction)
    assert isinstance(where, hlo.Instruction)
    value = flow.value_at(where, index)
    return None if value is None else value.name


@pytest.mark.parametrize("text", TIMES, ids=IDS)
def test_the_body_runs_when_all_is_bound(text: str) -> None:
    assert [i.name for i in flatten(hlo.parse(text)).instructions] == TIMES[text].split()


def test_values_are_those_of_operands_and_body() -> None:
    module = hlo.parse(ONE_BY_ONE)
    assert [names(module, "u", (0, 0)), names(module, "v", (0, 0)), names(module, "v", (0, 1))] == [
        "n",
        "n",
        "o",
    ]
    assert [names(module, "w", ()), names(module, "x", ())] == ["n", "o"]
    assert [names(module, i, x) for i, x in (("c", ()), ("v", (1,)), ("d", ()))] == ["in", "in", "in"]
    assert [names(module, i, (2,)) for i in "suv"] == ["s", "u", "v"]
    assert names(module, "u", (1,)) == "u"  # the empty tuple: nothing is bound


def test_a_result_that_the_start_has_comes_from_a_body_that_runs_later() -> None:
    module = hlo.parse(
        ONE_BY_ONE.replace("s = ((), ()", "s = ((), f32[64]{0}").replace("0}), ()", "0}), f32[64]{0}")
    )
    assert [names(module, i, (1,)) for i in "suv"] == ["in", "in", "in"]


def test_a_result_bound_late_of_operands_bound_at_once() -> None:
    text = ONE_BY_ONE.replace(
        "s = ((), (), s32[]) async-start()", "s = ((f32[64]{0}, f32[64]{0}), (), s32[]) async-start(n, o)"
    )
    text = text.replace(
        "u = ((f32[64]{0}), (), s32[]) async-update(s, n)",
        "u = ((f32[64]{0}, f32[64]{0}), (), s32[]) async-update(s)",
    )
    module = hlo.parse(text.replace("async-update(u, o)", "async-update(u)"))
    assert [names(module, i, (1,)) for i in "suv"] == ["s", "u", "in"]
    assert [i.name for i in flatten(module).instructions] == TIMES[ONE_BY_ONE].split()


def test_aliases_of_the_start_hold_where_they_are_bound() -> None:
    """From GetInPlaceInputOutputPairsTest."""
    said = "calls=body, output_to_operand_aliasing={{1}: (0, {})}"
    text = BY_UPDATE.replace("async-start(), calls=body", f"async-start(), {said}")
    for one, shared in (
        (BY_UPDATE, False),
        (text, True),
        (text.replace("f32[64]{0}, s32[]) async-u", "(), s32[]) async-u"), True),
    ):
        module = hlo.parse(one)
        flow = analyse(module)
        together = [{value.name for value in b} for b in find_buffers(flow, InPlacePairs())]
        assert ({"n", "in"} in together) is shared


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
@pytest.mark.parametrize("text", TIMES, ids=IDS)
def test_what_lives_together_lies_apart(text: str, platform: str, release: str) -> None:
    found = memory.assign(hlo.parse(text), platform, age=release)
    assert any("bound late" in note for note in found.notes)
    live = {
        value.name: value.live_range
        for value in found.values
        if value.shape is not None and value.shape.is_array and value.live_range
    }
    order = [i if isinstance(i, str) else i.name for i in found.schedule]
    assert live["n"][1] == order.index("d")  # what was bound is read until the end
    assert live["in"][1] >= order.index("d")
    assert live["in"][0] == order.index(
        "in" if release == "0.11.2" else {BY_DONE: "d", BY_UPDATE: "u"}.get(text, "v")
    )
    for allocation in found.allocations:
        for one, other in itertools.combinations(allocation.slices, 2):
            (first, last), (begin, end) = one.value.live_range or (0, 0), other.value.live_range or (0, 0)
            if max(first, begin) < min(last, end):
                assert one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "(f32[64]{0}), f32[64]{0}, s32[]) async-update(s, n)",
            "(), f32[64]{0}, s32[]) async-update(s)",
            "d completes s before",
        ),
        ("async-update(s, n)", "async-update(t, n)", "its state passes through t"),
    ],
)
def test_what_is_refused_says_why(old: str, new: str, words: str) -> None:
    text = BY_UPDATE.replace(old, new)
    if "(t, n)" in new:
        text = text.replace("  o = ", "  t = ((), (), s32[]) copy(s)\n  o = ")
    with pytest.raises(memory.MemoryModelError, match=words):
        memory.assign(hlo.parse(text), "cpu")
