"""Operations that a compiler makes out of one of the program's: nobody can edit what is inside of them."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from tests import support

_IMAGINARY = """HloModule imaginary, is_scheduled=true

ENTRY main {
  x = f32[256,512]{1,0} parameter(0)
  table = f32[512,512]{1,0} parameter(1)
  number = f32[] constant(NUMBER)
  half = f32[256,512]{1,0} broadcast(number), dimensions={}
  imaginary = f32[256,512]{1,0} dot(half, table), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  real = f32[256,512]{1,0} dot(x, table), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  cross = f32[256,512]{1,0} multiply(real, half)
  a = f32[256,512]{1,0} subtract(imaginary, cross)
  ROOT r = f32[256,512]{1,0} cosine(a)
}
"""


@pytest.mark.parametrize("number", ["0", "1"])
def test_nothing_selects_from_what_is_zero_everywhere(number: str) -> None:
    """A Fourier transform of real numbers, which the TPU compiler multiplies out with an imaginary half of zeros."""
    module = hlo.parse(_IMAGINARY.replace("NUMBER", number))
    assert not lint.run(module, lint.Config(**support.SAY_ALL, select=("D107", "G118")))


_EXPANDED = """HloModule expanded, is_scheduled=true

body {
  s = (s32[], f32[2048,2048]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = f32[2048,2048]{1,0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(n, one)
  count = f32[2048,2048]{1,0} iota(), iota_dimension=0, metadata={op_name="NAME"}
  table = f32[2048,2048]{1,0} cosine(count), metadata={op_name="NAME"}
  p = f32[2048,2048]{1,0} dot(x, table), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="NAME"}
  part = f32[2048,100]{1,0} slice(p), slice={[0:2048], [0:100]}
  zero = f32[] constant(0)
  y = f32[2048,2048]{1,0} pad(part, zero), padding=0_0x0_1948
  ROOT r = (s32[], f32[2048,2048]) tuple(next, y)
}

condition {
  s = (s32[], f32[2048,2048]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  k = s32[] constant(8)
  ROOT less = pred[] compare(n, k), direction=LT
}

ENTRY main {
  x = f32[2048,2048]{1,0} parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[2048,2048]) tuple(zero, x)
  ROOT w = (s32[], f32[2048,2048]) while(s), body=body, condition=condition
}
"""


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("jit(f)/while/body/dot_general", {"G116", "G118"}),
        ("jit(f)/while/body/jit(fft)", set()),
        ("jit(f)/while/body/jit(fft)/fft", set()),
    ],
)
def test_sizes_and_tables_of_an_expanded_fourier_transform_are_the_compilers(
    name: str, codes: set[str]
) -> None:
    """It computes frequencies that a real transform does not return, from tables that it makes in each iteration."""
    module = hlo.parse(_EXPANDED.replace("NAME", name))
    found = (lint.run(module, lint.Config(**support.SAY_ALL, select=(code,))) for code in ("G116", "G118"))
    assert {one.code for each in found for one in each} == codes
