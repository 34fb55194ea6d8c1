"""Work on all rows of a table of which a gather takes a few, and shifted state that is one of several results."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import cost, lint
from tests import support

_TABLE = """HloModule table, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

normalized {
  table = f32[65536,256]{1,0} parameter(0)
  zero = f32[] constant(0)
  squares = f32[65536,256]{1,0} multiply(table, table)
  norms = f32[65536]{0} reduce(squares, zero), dimensions={1}, to_apply=add
  wide = f32[65536,256]{1,0} broadcast(norms), dimensions={0}
  ROOT rows = f32[65536,256]{1,0} divide(table, wide), metadata={op_name="jit(f)/div"}
}

ENTRY main {
  table = f32[65536,256]{1,0} parameter(0)
  ids = s32[COUNT,1]{1,0} parameter(1)
  all = f32[65536,256]{1,0} fusion(table), kind=kLoop, calls=normalized, metadata={op_name="jit(f)/div"}
  ROOT few = f32[COUNT,256]{1,0} gather(all, ids), offset_dims={1}, collapsed_slice_dims={0}, DIMS
}
""".replace("DIMS", "start_index_map={0}, index_vector_dim=1, slice_sizes={1,256}")


def _said(text: str, code: str) -> list[lint.Finding]:
    return lint.run(hlo.parse(text), lint.Config(**{**support.SAY_ALL, "select": (code,)}))


def test_rows_that_no_gather_takes_are_computed_for_nothing() -> None:
    text = _TABLE.replace("COUNT", "512")
    (finding,) = _said(text, "G118")
    assert finding.message.startswith("only 512 of 65,536 indices of dimension 0 of the fused")
    whole = cost.estimate(hlo.parse(text), "cpu").seconds
    assert finding.seconds == pytest.approx(whole, rel=0.02)
    assert finding.peak_bytes == pytest.approx(65536 * 1024, rel=0.02)


def test_most_rows_are_not_few() -> None:
    assert not _said(_TABLE.replace("COUNT", "32768"), "G118")


def test_copies_of_few_rows_are_the_compilers() -> None:
    """In another layout, which it reads."""
    text = _TABLE.replace("COUNT", "512").replace(
        "fusion(table), kind=kLoop, calls=normalized", "copy(table)"
    )
    assert not _said(text, "G118")


_WINDOW = """HloModule window, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

shift {
  old = f32[4096,1024]{1,0} parameter(0)
  new = f32[1,1024]{1,0} parameter(1)
  zero = f32[] constant(0)
  kept = f32[4095,1024]{1,0} slice(old), slice={[1:4096], [0:1024]}
  next = f32[4096,1024]{1,0} concatenate(kept, new), dimensions={0}
  sum = f32[1024]{0} reduce(next, zero), dimensions={0}, to_apply=add
  ROOT both = (f32[1024]{0}, f32[4096,1024]{1,0}) tuple(sum, next)
}

body {
  s = (s32[], f32[1024]{0}, f32[4096,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[1024]{0} get-tuple-element(s), index=1
  old = f32[4096,1024]{1,0} get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  row = f32[1,1024]{1,0} bitcast(x)
  both = (f32[1024]{0}, f32[4096,1024]{1,0}) fusion(old, row), kind=kInput, calls=shift
  sum = f32[1024]{0} get-tuple-element(both), index=0
  new = f32[4096,1024]{1,0} get-tuple-element(both), index=1
  ROOT n = (s32[], f32[1024]{0}, f32[4096,1024]{1,0}) tuple(next, sum, new)
}

condition {
  s = (s32[], f32[1024]{0}, f32[4096,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  most = s32[] constant(64)
  ROOT more = pred[] compare(i, most), direction=LT
}

ENTRY main {
  x = f32[1024]{0} parameter(0)
  old = f32[4096,1024]{1,0} parameter(1)
  zero = s32[] constant(0)
  s = (s32[], f32[1024]{0}, f32[4096,1024]{1,0}) tuple(zero, x, old)
  ROOT loop = (s32[], f32[1024]{0}, f32[4096,1024]{1,0}) while(s), condition=condition, body=body
}
"""


def test_a_shift_that_is_one_of_several_results_costs_its_writing() -> None:
    """The sum still reads the array."""
    (finding,) = _said(_WINDOW, "M111")
    whole = cost.estimate(hlo.parse(_WINDOW), "cpu").seconds
    assert finding.seconds == pytest.approx(whole / 2, rel=0.02)
