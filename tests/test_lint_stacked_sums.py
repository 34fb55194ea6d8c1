"""Sums over devices that a loop over layers stacks, and that a loop over microbatches around it only accumulates."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from tests import support

TEXT = """
HloModule m, is_scheduled=true, num_partitions=8

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

written {
  stack = f32[8,256,256]{2,1,0} parameter(0)
  part = f32[256,256]{1,0} parameter(1)
  at = s32[] parameter(2)
  slice = f32[1,256,256]{2,1,0} bitcast(part)
  zero = s32[] constant(0)
  last = s32[] constant(7)
  back = s32[] subtract(last, at)
  ROOT new = f32[8,256,256]{2,1,0} dynamic-update-slice(stack, slice, back, zero, zero)
}

moved {
  whole = f32[8,256,256]{2,1,0} parameter(0)
  ROOT half = f32[4,256,256]{2,1,0} slice(whole), slice={[0:4], [0:256], [0:256]}
}

layers {
  state = (s32[], f32[256,256]{1,0}, f32[8,256,256]{2,1,0}) parameter(0)
  bound = s32[] constant(8)
  n = s32[] get-tuple-element(state), index=0
  ROOT less = pred[] compare(n, bound), direction=LT
}

layer {
  state = (s32[], f32[256,256]{1,0}, f32[8,256,256]{2,1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  x = f32[256,256]{1,0} get-tuple-element(state), index=1
  stack = f32[8,256,256]{2,1,0} get-tuple-element(state), index=2
  y = f32[256,256]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  all = f32[256,256]{1,0} all-reduce(y), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=sum
  turned = f32[256,256]{1,0} transpose(all), dimensions={1,0}
  new = f32[8,256,256]{2,1,0} fusion(stack, turned, n), kind=kLoop, calls=written
  ROOT t = (s32[], f32[256,256]{1,0}, f32[8,256,256]{2,1,0}) tuple(next, y, new)
}

microbatches {
  state = (s32[], f32[256,256]{1,0}, f32[8,256,256]{2,1,0}) parameter(0)
  bound = s32[] constant(4)
  n = s32[] get-tuple-element(state), index=0
  ROOT less = pred[] compare(n, bound), direction=LT
}

microbatch {
  state = (s32[], f32[256,256]{1,0}, f32[8,256,256]{2,1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  x = f32[256,256]{1,0} get-tuple-element(state), index=1
  total = f32[8,256,256]{2,1,0} get-tuple-element(state), index=2
  other = f32[256,256]{1,0} negate(x)
  zero = s32[] constant(0)
  nought = f32[] constant(0)
  empty = f32[8,256,256]{2,1,0} broadcast(nought), dimensions={}
  start = (s32[], f32[256,256]{1,0}, f32[8,256,256]{2,1,0}) tuple(zero, x, empty)
  loop = (s32[], f32[256,256]{1,0}, f32[8,256,256]{2,1,0}) while(start), condition=layers, body=layer
  grads = f32[8,256,256]{2,1,0} get-tuple-element(loop), index=2
  scaled = f32[8,256,256]{2,1,0} negate(grads)
  sums = f32[8,256,256]{2,1,0} add(total, scaled)
  ROOT t = (s32[], f32[256,256]{1,0}, f32[8,256,256]{2,1,0}) tuple(next, other, sums)
}

ENTRY main {
  zero = s32[] constant(0)
  x = f32[256,256]{1,0} parameter(0)
  nought = f32[] constant(0)
  empty = f32[8,256,256]{2,1,0} broadcast(nought), dimensions={}
  start = (s32[], f32[256,256]{1,0}, f32[8,256,256]{2,1,0}) tuple(zero, x, empty)
  loop = (s32[], f32[256,256]{1,0}, f32[8,256,256]{2,1,0}) while(start), condition=microbatches, body=microbatch
  ROOT result = f32[8,256,256]{2,1,0} get-tuple-element(loop), index=2
}
"""
FETCHED = """s = ((f32[8,256,256]{2,1,0}), f32[4,256,256]{2,1,0:S(1)}, s32[]) async-start(grads), calls=moved
  r = ((f32[8,256,256]{2,1,0}), f32[4,256,256]{2,1,0:S(1)}, s32[]) async-start(OTHER), calls=moved
  d = f32[4,256,256]{2,1,0:S(1)} async-done(s)
  e = f32[4,256,256]{2,1,0:S(1)} async-done(r)
  scaled = f32[8,256,256]{2,1,0} custom-call(d, e), custom_call_target="ConcatBitcast"
"""
SCALED = "scaled = f32[8,256,256]{2,1,0} negate(grads)"


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ("", "", 1),
        (SCALED, FETCHED.replace("OTHER", "grads"), 1),
        (SCALED, FETCHED.replace("OTHER", "total"), 0),
        (SCALED, SCALED.replace("negate", "tanh"), 0),
        (SCALED, SCALED.replace("negate(grads)", "multiply(grads, grads)"), 0),
        ("tuple(next, other, sums)", "tuple(next, other, scaled)", 0),
        ("tuple(next, y, new)", "tuple(next, all, new)", 0),
        ("transpose(all), dimensions={1,0}", "tanh(all)", 0),
        ("subtract(last, at)", "partition-id()", 0),
        ("tuple(zero, x, empty)\n  loop = (s32[], f32[256,256]{1,0}, f32[8,256,256]{2,1,0}) while(start), condition=layers",
         "tuple(zero, x, total)\n  loop = (s32[], f32[256,256]{1,0}, f32[8,256,256]{2,1,0}) while(start), condition=layers",
         0),
    ],
    ids=[
        "only added", "fetched in slices", "one slice is of another array", "not linear", "squared, as for a norm",
        "not accumulated", "the iteration uses it", "not linear before it is stacked", "at another place on each device",
        "into what there was before",
    ],
)  # fmt: skip
def test_sums_of_layers_that_microbatches_add_up(before: str, after: str, count: int) -> None:
    assert before in TEXT
    module = hlo.parse(TEXT.replace(before, after) if before else TEXT)
    found = lint.run(module, lint.Config(**{**support.SAY_ALL, "select": ("C113",)}, chip="v5e"))
    assert [one.message for one in found] == count * [
        "2.00 MiB is summed over 8 devices in each of 4 iterations, and the sums are only accumulated"
    ]
    if count:
        runs, sent = 4 * 8, 256 * 256 * 4 * 2 * 7 // 8
        assert found[0].bytes == runs * sent * 3 // 4
        (start,) = (one for body in module.computations for one in body if one.name == "all")
        assert found[0].seconds == pytest.approx(
            lint.make_context(module, chip="v5e").prices.seconds(start) * 3 / 4
        )
