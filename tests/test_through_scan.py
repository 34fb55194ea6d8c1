"""What M112 says of caches that a loop inside another loop takes apart: bytes of all runs, and the peak that is left."""

from __future__ import annotations

import hlotext as hlo
from hlotext import lint
from tests import support

NESTED = """HloModule decode, is_scheduled=true

below.layers {
  state = (s32[], f32[8,4096]{1,0}, f32[8,4096]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  bound = s32[] constant(8)
  ROOT less = pred[] compare(n, bound), direction=LT
}

layer {
  state = (s32[], f32[8,4096]{1,0}, f32[8,4096]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  xs = f32[8,4096]{1,0} get-tuple-element(state), index=1
  ys = f32[8,4096]{1,0} get-tuple-element(state), index=2
  none = s32[] constant(0)
  slice = f32[1,4096]{1,0} dynamic-slice(xs, n, none), dynamic_slice_sizes={1,4096}
  new = f32[1,1]{1,0} constant({{1}})
  changed = f32[1,4096]{1,0} dynamic-update-slice(slice, new, none, n)
  out = f32[8,4096]{1,0} dynamic-update-slice(ys, changed, n, none)
  ROOT t = (s32[], f32[8,4096]{1,0}, f32[8,4096]{1,0}) tuple(next, xs, out)
}

below.tokens {
  state = (s32[], f32[8,4096]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  bound = s32[] constant(4)
  ROOT less = pred[] compare(n, bound), direction=LT
}

token.step {
  state = (s32[], f32[8,4096]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  zero = s32[] constant(0)
  xs = f32[8,4096]{1,0} get-tuple-element(state), index=1
  nought = f32[] constant(0)
  ys = f32[8,4096]{1,0} broadcast(nought), dimensions={}
  start = (s32[], f32[8,4096]{1,0}, f32[8,4096]{1,0}) tuple(zero, xs, ys)
  loop = (s32[], f32[8,4096]{1,0}, f32[8,4096]{1,0}) while(start), condition=below.layers, body=layer
  after = f32[8,4096]{1,0} get-tuple-element(loop), index=2
  kept = f32[8,4096]{1,0} copy(after)
  ROOT t = (s32[], f32[8,4096]{1,0}) tuple(next, kept)
}

ENTRY main {
  zero = s32[] constant(0)
  xs = f32[8,4096]{1,0} parameter(0)
  x = f32[SIZE]{0} parameter(1)
  wide = f32[8,SIZE]{1,0} broadcast(x), dimensions={1}
  narrow = f32[1,SIZE]{1,0} slice(wide), slice={[0:1], [0:SIZE]}
  first = f32[8,4096]{1,0} copy(xs)
  start = (s32[], f32[8,4096]{1,0}) tuple(zero, first)
  loop = (s32[], f32[8,4096]{1,0}) while(start), condition=below.tokens, body=token.step
  after = f32[8,4096]{1,0} get-tuple-element(loop), index=1
  last = f32[1,4096]{1,0} slice(after), slice={[7:8], [0:4096]}
  ROOT result = (f32[1,4096]{1,0}, f32[1,SIZE]{1,0}) tuple(last, narrow)
}
"""
CACHE = 8 * 4096 * 4


def test_bytes_are_those_of_all_runs_of_the_loop() -> None:
    finding = _found("16")
    assert finding.bytes == 4 * 2 * CACHE
    assert "a whole slice is read and written in each of 8 iterations" in finding.message


def test_the_peak_falls_by_what_is_live_at_the_peak_alone() -> None:
    """Elsewhere more is live than in the loop: without the loop's second array that stays."""
    assert (_found("16").peak_bytes or 0) >= CACHE
    assert (_found("1000000").peak_bytes or 0) < CACHE


def _found(size: str) -> lint.Finding:
    config = lint.Config(select=("M112",), **support.SAY_ALL)
    (finding,) = lint.run(hlo.parse(NESTED.replace("SIZE", size)), config)
    return finding
