"""Loops that mostly start kernels, however much these write."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.analysis import Backend
from tests import support

_WAVES = """HloModule waves, is_scheduled=true, frontend_attributes={fingerprint_before_lhs="0"}

next {
  i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT n = s32[] add(i, one)
}

less {
  i = s32[] parameter(0)
  most = s32[] constant(2000)
  ROOT l = pred[] compare(i, most), direction=LT
}

wave {
  x = f32[SIZE]{0} parameter(0)
  ROOT y = f32[SIZE]{0} cosine(x)
}

body {
  s = (s32[], f32[SIZE]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[SIZE]{0} get-tuple-element(s), index=1
  n = s32[] fusion(i), kind=kLoop, calls=next
  y = f32[SIZE]{0} fusion(x), kind=kLoop, calls=wave
  ROOT t = (s32[], f32[SIZE]{0}) tuple(n, y)
}

condition {
  s = (s32[], f32[SIZE]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  ROOT l = pred[] fusion(i), kind=kLoop, calls=less
}

ENTRY main {
  x = f32[SIZE]{0} parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[SIZE]{0}) tuple(zero, x)
  ROOT loop = (s32[], f32[SIZE]{0}) while(s), condition=condition, body=body
}
"""


@pytest.mark.parametrize(
    ("size", "ending"),
    [
        (
            4096,
            "write only 16.0 KiB per iteration (4,000 kernel launches in total): launch overhead dominates",
        ),
        (262144, "write 1.00 MiB per iteration (4,000 kernel launches in total): launch overhead dominates"),
        (524288, "launching takes 47% of their time"),
        (2097152, None),
    ],
)
def test_starting_kernels_takes_most_of_a_loop(size: int, ending: str | None) -> None:
    """Two kernels of 1 us, of which one writes the state."""
    settings = {**support.SAY_ALL, "select": ("G113",), "profile": Backend.GPU, "chip": "h100"}
    found = lint.run(hlo.parse(_WAVES.replace("SIZE", str(size))), lint.Config(**settings))
    assert [one.message.endswith(ending or "") for one in found] == [True] * (ending is not None)
