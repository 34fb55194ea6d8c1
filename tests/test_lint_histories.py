"""Arrays that `.at[i].set` fills in a loop: a masked write reads its old slice, and iterations may read the slice before."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.analysis import Backend
from tests import support

_MODULE = """HloModule history, is_scheduled=true

body {{
  s = (s32[], f32[1024]{{0}}, f32[64,1024]{{1,0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[1024]{{0}} get-tuple-element(s), index=1
  ys = f32[64,1024]{{1,0}} get-tuple-element(s), index=2
  one = s32[] constant(1)
  two = s32[] constant(2)
  zero = s32[] constant(0)
  most = s32[] constant(63)
  next = s32[] add(i, one)
  before = s32[] subtract(i, one)
  half = s32[] divide(i, two)
  far = s32[] subtract(i, most)
  above = pred[] compare(i, zero), direction=GE
  inside = pred[1,1024]{{1,0}} broadcast(above), dimensions={{}}
  old = f32[1,1024]{{1,0}} dynamic-slice(ys, {read}, zero), dynamic_slice_sizes={{1,1024}}
  row = f32[1,1024]{{1,0}} reshape(x)
  {step}
  y = f32[1024]{{0}} reshape(new)
  stacked = f32[64,1024]{{1,0}} dynamic-update-slice(ys, new, i, zero)
  ROOT n = (s32[], f32[1024]{{0}}, f32[64,1024]{{1,0}}) tuple(next, y, stacked)
}}

condition {{
  s = (s32[], f32[1024]{{0}}, f32[64,1024]{{1,0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  most = s32[] constant(64)
  ROOT more = pred[] compare(i, most), direction=LT
}}

ENTRY main {{
  x = f32[1024]{{0}} parameter(0)
  zero = s32[] constant(0)
  nothing = f32[] constant(0)
  empty = f32[64,1024]{{1,0}} broadcast(nothing), dimensions={{}}
  s = (s32[], f32[1024]{{0}}, f32[64,1024]{{1,0}}) tuple(zero, x, empty)
  loop = (s32[], f32[1024]{{0}}, f32[64,1024]{{1,0}}) while(s), condition=condition, body=body
  ys = f32[64,1024]{{1,0}} get-tuple-element(loop), index=2
  ROOT last = f32[1,1024]{{1,0}} slice(ys), slice={{[63:64], [0:1024]}}
}}
"""
_MASKED = "fresh = f32[1,1024]{1,0} cosine(row)\n  new = f32[1,1024]{1,0} select(inside, fresh, old)"
_USED = "new = f32[1,1024]{1,0} cosine(old)"


def _said(read: str, step: str) -> list[lint.Finding]:
    text = _MODULE.format(read=read, step=step)
    return lint.run(hlo.parse(text), lint.Config(**{**support.SAY_ALL, "select": ("M115",)}))


def test_a_masked_write_is_a_write() -> None:
    """`.at[i].set` keeps the old slice where the place is out of bounds."""
    (finding,) = _said("i", _MASKED)
    assert finding.help.startswith("return only what is used")
    assert finding.peak_bytes == pytest.approx(64 * 4096, rel=0.05)


def test_the_slice_before_can_be_carried() -> None:
    """`y[i - 1]` takes no more than the last slice, which the state of the loop can hold."""
    (finding,) = _said("before", _USED)
    assert finding.help.startswith("carry the slices that the next iteration reads")


@pytest.mark.parametrize(
    ("read", "step"),
    [
        ("half", _USED),  # any slice may be needed again
        ("far", _USED),
        ("i", _USED),  # what was there before the loop counts
    ],
)
def test_other_reads_need_the_array(read: str, step: str) -> None:
    """Slices of long ago, and what was there before the loop, are not in a short state."""
    assert not _said(read, step)


def test_a_part_of_each_slice_is_taken_in_the_body() -> None:
    """Not in fewer iterations, of which all are used."""
    text = _MODULE.format(read="i", step=_MASKED).replace(
        "f32[1,1024]{1,0} slice(ys)", "f32[64,8]{1,0} slice(ys)"
    )
    text = text.replace("slice={[63:64], [0:1024]}", "slice={[0:64], [0:8]}")
    (finding,) = lint.run(hlo.parse(text), lint.Config(**{**support.SAY_ALL, "select": ("M115",)}))
    assert finding.help.startswith("return only what is used of each slice: index it in the body")


_TWO = """HloModule two, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

energy {
  us = f32[64,1024]{1,0} parameter(0)
  vs = f32[64,1024]{1,0} parameter(1)
  both = f32[64,1024]{1,0} add(us, vs)
  nothing = f32[] constant(0)
  ROOT sums = f32[64]{0} reduce(both, nothing), dimensions={1}, to_apply=add
}

body {
  s = (s32[], f32[1,1024]{1,0}, f32[64,1024]{1,0}, f32[64,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[1,1024]{1,0} get-tuple-element(s), index=1
  us = f32[64,1024]{1,0} get-tuple-element(s), index=2
  vs = f32[64,1024]{1,0} get-tuple-element(s), index=3
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(i, one)
  u = f32[1,1024]{1,0} cosine(x), metadata={op_name="jit(f)/while/body/cos"}
  v = f32[1,1024]{1,0} sine(x), metadata={op_name="jit(f)/while/body/sin"}
  more.us = f32[64,1024]{1,0} dynamic-update-slice(us, u, i, zero)
  more.vs = f32[64,1024]{1,0} dynamic-update-slice(vs, v, i, zero)
  ROOT n = (s32[], f32[1,1024]{1,0}, f32[64,1024]{1,0}, f32[64,1024]{1,0}) tuple(next, u, more.us, more.vs)
}

condition {
  s = (s32[], f32[1,1024]{1,0}, f32[64,1024]{1,0}, f32[64,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  most = s32[] constant(64)
  ROOT more = pred[] compare(i, most), direction=LT
}

ENTRY main {
  x = f32[1,1024]{1,0} parameter(0)
  zero = s32[] constant(0)
  nothing = f32[] constant(0)
  empty = f32[64,1024]{1,0} broadcast(nothing), dimensions={}
  void = f32[64,1024]{1,0} broadcast(nothing), dimensions={}
  s = (s32[], f32[1,1024]{1,0}, f32[64,1024]{1,0}, f32[64,1024]{1,0}) tuple(zero, x, empty, void)
  loop = (s32[], f32[1,1024]{1,0}, f32[64,1024]{1,0}, f32[64,1024]{1,0}) while(s), condition=condition, body=body
  us = f32[64,1024]{1,0} get-tuple-element(loop), index=2
  vs = f32[64,1024]{1,0} get-tuple-element(loop), index=3
  ROOT sums = f32[64]{0} fusion(us, vs), kind=kInput, calls=energy
}
"""


def test_stacks_that_one_reduction_reads_are_one_cause() -> None:
    """The energy of two velocities is one edit, whatever lines compute them."""
    (finding,) = lint.run(hlo.parse(_TWO), lint.Config(**{**support.SAY_ALL, "select": ("M115",)}))
    assert finding.places == 2
    assert finding.bytes == 2 * 64 * 4096


_DELAYS = """HloModule delays, is_scheduled=true

sum {
  a = f32[4194304]{0} parameter(0)
  b = f32[4194304]{0} parameter(1)
  c = f32[4194304]{0} parameter(2)
  one = f32[4194304]{0} add(a, b), metadata={op_name="jit(f)/add"}
  ROOT two = f32[4194304]{0} add(one, c), metadata={op_name="jit(f)/add"}
}

body {
  s = (s32[], f32[4194304]{0}, f32[4194304]{0}, f32[4194304]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[4194304]{0} get-tuple-element(s), index=1
  b = f32[4194304]{0} get-tuple-element(s), index=2
  c = f32[4194304]{0} get-tuple-element(s), index=3
  one = s32[] constant(1)
  next = s32[] add(i, one)
  olda = f32[4194304]{0} copy(a)
  oldb = f32[4194304]{0} copy(b)
  new = f32[4194304]{0} fusion(a, b, c), kind=kLoop, calls=sum, metadata={op_name="jit(f)/add"}
  ROOT n = (s32[], f32[4194304]{0}, f32[4194304]{0}, f32[4194304]{0}) tuple(next, new, olda, oldb)
}

condition {
  s = (s32[], f32[4194304]{0}, f32[4194304]{0}, f32[4194304]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  most = s32[] constant(300)
  ROOT more = pred[] compare(i, most), direction=LT
}

ENTRY main {
  a = f32[4194304]{0} parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[4194304]{0}, f32[4194304]{0}, f32[4194304]{0}) tuple(zero, a, a, a)
  ROOT loop = (s32[], f32[4194304]{0}, f32[4194304]{0}, f32[4194304]{0}) while(s), condition=condition, body=body
}
"""


def test_a_history_of_arrays_takes_as_many_iterations_in_one() -> None:
    """Each becomes the one before. A sum of all of them is no second iteration."""
    config = lint.Config(**{**support.SAY_ALL, "select": ("M111",), "profile": Backend.CPU})
    (finding,) = lint.run(hlo.parse(_DELAYS), config)
    assert finding.help.startswith("unroll the loop by 3 (unroll=3)")
    pair = _DELAYS.replace("olda, oldb)", "olda, c)")
    (finding,) = lint.run(hlo.parse(pair), config)
    assert finding.help.startswith("unroll the loop by two (unroll=2)")
