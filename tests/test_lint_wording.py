"""How findings name arrays."""

from __future__ import annotations

import hlotext as hlo
from hlotext.lint import wording

SOFTMAX = """HloModule m, is_scheduled=true

max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

fused {
  x = f32[8,512,512] parameter(0)
  least = f32[] constant(-inf)
  most = f32[8,512,512] reduce-window(x, least), window={size=1x1x1023 pad=0_0x0_0x511_511}, to_apply=max
  less = f32[8,512,512] subtract(x, most)
  e = f32[8,512,512] exponential(less)
  zero = f32[] constant(0)
  total = f32[8,512] reduce(e, zero), dimensions={2}, to_apply=sum
  same = f32[8,512,512] bitcast(e)
  ROOT t = (f32[8,512], f32[8,512,512]) tuple(total, same)
}

ENTRY main {
  x = f32[8,512,512] parameter(0)
  ROOT f = (f32[8,512], f32[8,512,512]) fusion(x), kind=kOutput, calls=fused
}
"""


def test_an_array_is_named_by_the_operation_that_writes_it() -> None:
    """Of a fusion's outputs each by its own, whatever else the fusion does."""
    fusion = hlo.parse(SOFTMAX).entry.root
    assert wording.written(fusion, (1,)) == "the exponential of 8x512x512"
    assert wording.written(fusion, (0,)) == "the reduce of 8x512"
    text = SOFTMAX.replace("(total, same)", "(total, x)").replace(
        "8,512,512] bitcast(e)", "8,512,512] bitcast(x)"
    )
    assert "reduce-window" in wording.written(hlo.parse(text).entry.root, (1,))


ADDED = """HloModule added

fused {
  x = bf16[64,32] parameter(0)
  w = bf16[32,16] parameter(1)
  y = f32[64,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  narrow = bf16[64,16] convert(y)
  bias = bf16[64,16] parameter(2)
  ROOT sum = bf16[64,16] add(bias, narrow)
}

ENTRY main {
  x = bf16[64,32] parameter(0)
  w = bf16[32,16] parameter(1)
  b = bf16[64,16] parameter(2)
  ROOT f = bf16[64,16] fusion(x, w, b), kind=kOutput, calls=fused
}
"""


def test_a_product_to_which_something_is_added_is_named_as_the_product() -> None:
    """Its bias or the residual says nothing of what takes the memory."""
    assert wording.written(hlo.parse(ADDED).entry.root) == "the matmul of 64x32 and 32x16"
