"""The walk over used elements: what each operation asks of its operand, as a part of it."""

from __future__ import annotations

from typing import Any

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.lint.demand import fraction
from hlotext.lint.demanded import demands
from hlotext.lint.operand_demands import operand_demands
from tests import support

_LAST = "r = f32[1,6]{1,0} slice(y), slice={[3:4], [0:6]}"
"""One of four rows of `y`."""
_CASES = {
    "a slice": ("y = f32[4,6]{1,0} exponential(x)", _LAST, 1 / 4),
    "a transpose": ("y = f32[4,6]{1,0} transpose(t), dimensions={1,0}", _LAST, 1 / 4),
    "rows joined": (
        "y = f32[4,6]{1,0} exponential(x)",
        "f = f32[24]{0} reshape(y)\n  r = f32[6]{0} slice(f), slice={[6:12]}",
        1 / 4,
    ),
    "across joined rows": (
        "y = f32[4,6]{1,0} exponential(x)",
        "f = f32[24]{0} reshape(y)\n  r = f32[6]{0} slice(f), slice={[3:9]}",
        1 / 2,
    ),
    "joined and split again": (
        "y = f32[4,6]{1,0} exponential(x)",
        "f = f32[24]{0} reshape(y)\n  g = f32[4,6]{1,0} reshape(f)\n"
        "  r = f32[1,6]{1,0} dynamic-slice(g, n, n), dynamic_slice_sizes={1,6}",
        1 / 4,
    ),
    "the same place twice": (
        "y = f32[4,6]{1,0} exponential(x)",
        "a = f32[1,6]{1,0} dynamic-slice(y, n, n), dynamic_slice_sizes={1,6}\n"
        "  b = f32[1,6]{1,0} dynamic-slice(y, n, n), dynamic_slice_sizes={1,6}\n  r = f32[1,6]{1,0} add(a, b)",
        1 / 4,
    ),
    "two places": (
        "y = f32[4,6]{1,0} exponential(x)",
        "a = f32[1,6]{1,0} dynamic-slice(y, n, n), dynamic_slice_sizes={1,6}\n"
        "  b = f32[1,6]{1,0} dynamic-slice(y, m, n), dynamic_slice_sizes={1,6}\n  r = f32[1,6]{1,0} add(a, b)",
        1 / 2,
    ),
    "padding taken away": (
        "y = f32[4,6]{1,0} exponential(x)",
        "r = f32[1,6]{1,0} pad(y, z), padding=-3_0x0_0",
        1 / 4,
    ),
    "rows of which a bitcast makes padding": (
        "y = f32[4,6]{1,0:T(8,128)} exponential(x)",
        "c = f32[4,5]{1,0:T(8,128)} bitcast(y)\n  r = f32[1,4]{1,0} slice(c), slice={[3:4], [0:4]}",
        1 / 4,
    ),
    "a part of a concatenation": (
        "y = f32[4,6]{1,0} exponential(x)",
        "c = f32[8,6]{1,0} concatenate(y, x), dimensions={0}\n  r = f32[2,6]{1,0} slice(c), slice={[3:5], [0:6]}",
        1 / 4,
    ),
    "a sum over the sliced rows": (
        "y = f32[4,6]{1,0} exponential(x)",
        "s = f32[4]{0} reduce(y, z), dimensions={1}, to_apply=sum\n  r = f32[1]{0} slice(s), slice={[0:1]}",
        1 / 4,
    ),
    "a sum over all rows": (
        "y = f32[4,6]{1,0} exponential(x)",
        "s = f32[6]{0} reduce(y, z), dimensions={0}, to_apply=sum\n  r = f32[1]{0} slice(s), slice={[0:1]}",
        1 / 6,
    ),
    "rows of a product": (
        "y = f32[4,6]{1,0} exponential(x)",
        "p = f32[4,4]{1,0} dot(y, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "  r = f32[1,4]{1,0} slice(p), slice={[3:4], [0:4]}",
        1 / 4,
    ),
    "columns of a product": (
        "y = f32[4,6]{1,0} exponential(x)",
        "p = f32[4,4]{1,0} dot(y, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "  r = f32[4,1]{1,0} slice(p), slice={[0:4], [3:4]}",
        1,
    ),
    "two users": (
        "y = f32[4,6]{1,0} exponential(x)",
        f"{_LAST.replace('r =', 'a =')}\n  r = f32[4,6]{{1,0}} add(y, x)",
        1,
    ),
    "a gathered row": (
        "y = f32[4,6]{1,0} exponential(x)",
        "r = f32[1,6]{1,0} gather(y, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
        "slice_sizes={1,6}",
        1 / 4,
    ),
    "a one-hot factor": (
        "y = f32[4,6]{1,0} exponential(x)",
        "c = s32[4,6]{1,0} iota(), iota_dimension=1\n  k = s32[4,6]{1,0} broadcast(w), dimensions={0}\n"
        "  e = pred[4,6]{1,0} compare(c, k), direction=EQ\n  o = f32[4,6]{1,0} convert(e)\n"
        "  r = f32[4,6]{1,0} multiply(y, o)",
        1 / 6,
    ),
    "an unknown operation": (
        "y = f32[4,6]{1,0} exponential(x)",
        'c = f32[4,6]{1,0} custom-call(y), custom_call_target="any"\n  r = f32[1,6]{1,0} slice(c), slice={[0:1], [0:6]}',
        1,
    ),
}
_TEXT = """HloModule m, is_scheduled=true

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY e {{
  x = f32[4,6]{{1,0}} parameter(0)
  t = f32[6,4]{{1,0}} parameter(1)
  n = s32[] parameter(2)
  m = s32[] parameter(3)
  i = s32[1,1]{{1,0}} parameter(4)
  w = s32[4]{{0}} parameter(5)
  z = f32[] constant(0)
  {made}
  {used}
  ROOT result = (f32[]) tuple(z)
}}
"""


@pytest.mark.parametrize("case", _CASES)
def test_part_that_is_asked_for(case: str) -> None:
    made, used, part = _CASES[case]
    text = _TEXT.format(made=made, used=used).replace("  ROOT result = (f32[]) tuple(z)\n", "")
    head, _, last = text.rpartition("r = ")
    module = hlo.parse(f"{head}ROOT r = {last}")
    y = next(one for one in module.entry if one.name == "y")
    assert fraction(demands(module).get(y), y.shape) == pytest.approx(part)


def test_a_mask_of_positions_is_evaluated() -> None:
    """A band of 16 below the diagonal of 256 rows: (16 * 256 - 120) / 65536 of the elements."""
    text = """HloModule m, is_scheduled=true

ENTRY e {
  x = f32[256,256]{1,0} parameter(0)
  y = f32[256,256]{1,0} exponential(x)
  i = s32[256,256]{1,0} iota(), iota_dimension=0
  j = s32[256,256]{1,0} iota(), iota_dimension=1
  d = s32[256,256]{1,0} subtract(i, j)
  n = s32[] constant(16)
  w = s32[256,256]{1,0} broadcast(n), dimensions={}
  a = pred[256,256]{1,0} compare(i, j), direction=GE
  b = pred[256,256]{1,0} compare(d, w), direction=LT
  k = pred[256,256]{1,0} and(a, b)
  z = f32[] constant(0)
  o = f32[256,256]{1,0} broadcast(z), dimensions={}
  ROOT r = f32[256,256]{1,0} select(k, y, o)
}
"""
    module = hlo.parse(text)
    y = next(one for one in module.entry if one.name == "y")
    assert fraction(demands(module).get(y), y.shape) == pytest.approx((16 * 256 - 120) / 65536, abs=0.01)


def _layers(count: int, index: str = "n") -> hlo.Module:
    """Layers that each take the first row of what a fusion of their own makes, and the row at an index."""
    bodies = "".join(
        f"f{k} {{\n  p = f32[4,6]{{1,0}} parameter(0)\n  i = s32[] parameter(1)\n  o = s32[] constant(0)\n"
        f"  e = f32[4,6]{{1,0}} exponential(p)\n  ROOT d = f32[1,6]{{1,0}} dynamic-slice(e, i, o), "
        "dynamic_slice_sizes={1,6}\n}\n"
        for k in range(count)
    )
    lines = [
        f"  x{k} = f32[4,6]{{1,0}} parameter({k + 2})\n"
        f"  y{k} = f32[4,6]{{1,0}} negate(x{k})\n"
        f"  r{k} = f32[1,6]{{1,0}} fusion(y{k}, {index if k else 'n'}), kind=kLoop, calls=f{k}\n"
        for k in range(count)
    ]
    names = ", ".join(f"r{k}" for k in range(count))
    shapes = ", ".join("f32[1,6]" for _ in range(count))
    return hlo.parse(
        f"HloModule m\n{bodies}ENTRY e {{\n  n = s32[] parameter(0)\n  m = s32[] parameter(1)\n"
        f"{''.join(lines)}  ROOT t = ({shapes}) tuple({names})\n}}\n"
    )


def test_equal_layers_are_walked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal fusions ask the same, inside too, where they are given the same index; another index is asked for its own row."""
    walked: list[hlo.Instruction] = []

    def counted(one: hlo.Instruction, *rest: Any) -> Any:
        if one.computation is not None and not one.computation.is_entry:
            walked.append(one)
        return operand_demands(one, *rest)

    monkeypatch.setattr("hlotext.lint.demanded.operand_demands", counted)
    for module, times in ((_layers(1), 1), (_layers(9), 1), (_layers(9, "m"), 2)):
        walked.clear()
        found = demands(module)
        assert len(walked) == 2 * times
        for k, body in enumerate(module.computations[:-1]):
            assert fraction(found[body["e"]], body["e"].shape) == pytest.approx(1 / 4)
            assert fraction(found[module.entry[f"y{k}"]], body["e"].shape) == pytest.approx(1 / 4)


_ATTENTION = """HloModule m, is_scheduled=true

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

most {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}

ENTRY e {
  q = f32[1024,64]{1,0} parameter(0)
  k = f32[1024,64]{1,0} parameter(1)
  v = f32[1024,64]{1,0} parameter(2)
  i = s32[1024,1024]{1,0} iota(), iota_dimension=0
  j = s32[1024,1024]{1,0} iota(), iota_dimension=1
  n = s32[] constant(WIDTH)
  w = s32[1024,1024]{1,0} broadcast(n), dimensions={}
  d = s32[1024,1024]{1,0} subtract(i, j)
  before = pred[1024,1024]{1,0} compare(i, j), direction=GE
  near = pred[1024,1024]{1,0} compare(d, w), direction=LT
  keep = pred[1024,1024]{1,0} and(before, near)
  low = f32[] constant(LOW)
  lows = f32[1024,1024]{1,0} broadcast(low), dimensions={}
  nought = f32[] constant(0)
  zeros = f32[1024,1024]{1,0} broadcast(nought), dimensions={}
  least = f32[] constant(-inf)
  scores = f32[1024,1024]{1,0} dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  MASKED
  top = f32[1024]{0} reduce(masked, least), dimensions={1}, to_apply=most
  tops = f32[1024,1024]{1,0} broadcast(top), dimensions={0}
  less = f32[1024,1024]{1,0} subtract(masked, tops)
  powers = f32[1024,1024]{1,0} exponential(less)
  total = f32[1024]{0} reduce(powers, nought), dimensions={1}, to_apply=sum
  totals = f32[1024,1024]{1,0} broadcast(total), dimensions={0}
  weights = f32[1024,1024]{1,0} divide(powers, totals)
  ROOT r = f32[1024,64]{1,0} dot(weights, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
_SELECTED = "masked = f32[1024,1024]{1,0} select(keep, scores, lows)"
_ADDED = """bias = f32[1024,1024]{1,0} select(keep, zeros, lows)
  masked = f32[1024,1024]{1,0} add(scores, bias)"""

_COPIED = "masked = f32[1024,1024]{1,0} copy(scores)"


def _attention(masked: str, width: int = 128, low: str = "-inf") -> hlo.Module:
    return hlo.parse(_ATTENTION.replace("MASKED", masked).replace("WIDTH", str(width)).replace("LOW", low))


@pytest.mark.parametrize(("masked", "low"), [(_SELECTED, "-inf"), (_SELECTED, "-1e9"), (_ADDED, "-1e9")])
def test_what_a_mask_leaves_out_stays_zero_through_softmax_into_the_second_product(
    masked: str, low: str
) -> None:
    module = _attention(masked, low=low)
    found = demands(module)
    for name in ("scores", "less", "powers", "weights"):
        one = module.entry[name]
        assert fraction(found.get(one), one.shape) == pytest.approx(0.117, abs=0.01)
        # In blocks of 128 each row touches its own and, but the first, the one before.
        assert fraction(found.get(one), one.shape, by_blocks=True) == pytest.approx(15 / 64, abs=0.01)


@pytest.mark.parametrize(
    ("masked", "low"),
    [(_SELECTED, "-1"), (_ADDED, "-1"), (_COPIED, "-inf")],
)
def test_a_small_constant_or_no_mask_leaves_nothing_out(masked: str, low: str) -> None:
    module = _attention(masked, low=low)
    found = demands(module)
    assert all(found.get(module.entry[name]) is None for name in ("less", "powers", "weights"))


@pytest.mark.parametrize(("width", "part"), [(128, 15 / 64), (1024, 36 / 64)])
def test_masked_attention_is_priced_with_its_softmax_and_both_products(width: int, part: float) -> None:
    (found,) = lint.run(_attention(_SELECTED, width), lint.Config(**{**support.SAY_ALL, "select": ("G118",)}))
    assert "1 operation before or after it" in found.message
    assert found.flops == pytest.approx(2 * 2 * 1024 * 1024 * 64 * (1 - part), rel=0.02)
