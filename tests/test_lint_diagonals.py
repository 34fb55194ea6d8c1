"""Matrices that are zero except on a few diagonals, and sums over all pairs of rows."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.lint.diagonals import diagonals
from hlotext.lint.values import Value
from tests import support

TEXT = """HloModule bands, is_scheduled=true

ENTRY main {
  d = f32[1024]{0} parameter(0)
  a = f32[1024,1024]{1,0} parameter(1)
  x = f32[1024,64]{1,0} parameter(2)
  index = s32[1024]{0} parameter(3)
  rows = s32[1024]{0} iota(), iota_dimension=0
  two = s32[] constant(2)
  twos = s32[1024]{0} broadcast(two), dimensions={}
  later = s32[1024]{0} add(rows, twos)
  row = s32[1024,1024]{1,0} broadcast(rows), dimensions={0}
  after = s32[1024,1024]{1,0} broadcast(later), dimensions={0}
  column = s32[1024,1024]{1,0} iota(), iota_dimension=1
  any = s32[1024,1024]{1,0} broadcast(index), dimensions={0}
  zero = f32[] constant(0)
  zeros = f32[1024,1024]{1,0} broadcast(zero), dimensions={}
  ds = f32[1024,1024]{1,0} broadcast(d), dimensions={0}
  on = pred[1024,1024]{1,0} compare(row, column), direction=EQ
  above = pred[1024,1024]{1,0} compare(column, after), direction=EQ
  chosen = pred[1024,1024]{1,0} compare(any, column), direction=EQ
  from.on = pred[1024,1024]{1,0} compare(row, column), direction=LE
  diagonal = f32[1024,1024]{1,0} select(on, ds, zeros)
  ones = f32[1024,1024]{1,0} convert(above)
  upper = f32[1024,1024]{1,0} multiply(ones, a)
  lower = f32[1024,1024]{1,0} transpose(upper), dimensions={1,0}
  turned = f32[1024,1024]{0,1} bitcast(upper)
  sum = f32[1024,1024]{1,0} subtract(diagonal, lower)
  both = f32[1024,1024]{1,0} add(sum, upper)
  one.hot = f32[1024,1024]{1,0} select(chosen, a, zeros)
  triangle = f32[1024,1024]{1,0} select(from.on, a, zeros)
  shifted = f32[1024,1024]{1,0} add(both, a)
  ROOT product = f32[1024,64]{1,0} dot(MATRIX, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize(
    ("matrix", "offsets"),
    [
        ("diagonal", {0}),
        ("upper", {2}),
        ("lower", {-2}),
        ("turned", {-2}),
        ("sum", {0, -2}),
        ("both", {0, 2, -2}),
        ("one.hot", None),
        ("triangle", None),
        ("shifted", None),
        ("a", None),
    ],
)
def test_the_diagonals_of_a_matrix(matrix: str, offsets: set[int] | None) -> None:
    """Their offsets from comparisons of rows with columns; data and whole triangles tell of none."""
    module = hlo.parse(TEXT.replace("MATRIX", "a"))
    assert diagonals(Value(module.entry[matrix])) == offsets


@pytest.mark.parametrize(("matrix", "is_found"), [("both", True), ("shifted", False), ("triangle", False)])
def test_a_product_with_a_few_diagonals(matrix: str, is_found: bool) -> None:
    config = lint.Config(**{**support.SAY_ALL, "select": ("D107",)})
    messages = [one.message for one in lint.run(hlo.parse(TEXT.replace("MATRIX", matrix)), config)]
    assert [("3 diagonals (offsets -2, 0, 2)" in one) for one in messages] == [True] * is_found


PAIRS = """HloModule pairs, is_scheduled=true

plus {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

all {
  x = f32[512,16]{1,0} parameter(0)
  y = f32[256,16]{1,0} parameter(1)
  xs = f32[512,256,16]{2,1,0} broadcast(x), dimensions={0,2}
  ys = f32[512,256,16]{2,1,0} broadcast(y), dimensions={1,2}
  apart = f32[512,256,16]{2,1,0} subtract(xs, ys)
  term = f32[512,256,16]{2,1,0} TERM
  zero = f32[] constant(0)
  ROOT sum = RESULT reduce(term, zero), dimensions={SUMMED}, to_apply=plus
}

ENTRY main {
  x = f32[512,16]{1,0} parameter(0)
  y = f32[256,16]{1,0} parameter(1)
  ROOT total = RESULT fusion(x, y), kind=kLoop, calls=all
}
"""


@pytest.mark.parametrize(
    ("term", "result", "summed", "is_found"),
    [
        ("multiply(apart, apart)", "f32[]", "0,1,2", True),
        ("multiply(xs, ys)", "f32[16]{0}", "0,1", True),
        ("abs(apart)", "f32[]", "0,1,2", False),
        ("multiply(xs, xs)", "f32[]", "0,1,2", False),
    ],
)
def test_a_sum_over_all_pairs_of_rows(term: str, result: str, summed: str, is_found: bool) -> None:
    """Found if each term is a product of one factor from each, which can be summed first."""
    text = PAIRS.replace("TERM", term).replace("RESULT", result).replace("SUMMED", summed)
    config = lint.Config(**{**support.SAY_ALL, "select": ("G123",)})
    found = [one.message for one in lint.run(hlo.parse(text), config)]
    assert ["all pairs are summed" in one for one in found] == [True] * is_found


SORTED = """HloModule ends, is_scheduled=true

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}

ENTRY main {
  x = f32[64,4096]{1,0} parameter(0)
  s = f32[64,4096]{1,0} sort(x), dimensions={1}, to_apply=less, metadata={op_name="jit(f)/sort"}
  low = f32[64,FIRST]{1,0} slice(s), slice={[0:64], [0:FIRST]}
  high = f32[64,1]{1,0} slice(s), slice={[0:64], [4095:4096]}
  ROOT t = (f32[64,FIRST]{1,0}, f32[64,1]{1,0}) tuple(low, high)
}
"""


@pytest.mark.parametrize(("first", "help"), [(1, "jnp.min or jnp.max"), (5, "jax.lax.top_k"), (2000, "")])
def test_a_sort_of_which_both_ends_are_used(first: int, help: str) -> None:
    config = lint.Config(**{**support.SAY_ALL, "select": ("G118",)})
    found = lint.run(hlo.parse(SORTED.replace("FIRST", str(first))), config)
    assert len(found) == bool(help)
    assert all(f"({first} from the beginning, 1 from the end)" in one.message for one in found)
    assert all(help in one.help for one in found)


CHANNELS = """HloModule channels, is_scheduled=true

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[16,32,32,64]{3,2,1,0} parameter(0)
  g = f32[32,32,16,64]{3,2,1,0} parameter(1)
  k = f32[64,3,3,64]{3,2,1,0} parameter(2)
  turned = f32[64,32,32,16]{3,2,1,0} transpose(x), dimensions={3,1,2,0}
  all = f32[64,3,3,64]{3,2,1,0} convolution(turned, g), window={size=32x32 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  row = s32[64,3,3,64]{3,2,1,0} iota(), iota_dimension=0
  column = s32[64,3,3,64]{3,2,1,0} iota(), iota_dimension=3
  same = pred[64,3,3,64]{3,2,1,0} compare(row, column), direction=EQ
  zero = f32[] constant(0)
  zeros = f32[64,3,3,64]{3,2,1,0} broadcast(zero), dimensions={}
  positive = pred[64,3,3,64]{3,2,1,0} compare(k, zeros), direction=GT
  kept = f32[64,3,3,64]{3,2,1,0} select(same, all, zeros)
  ROOT r = f32[3,3,64]{2,1,0} reduce(kept, zero), dimensions={0}, to_apply=sum
}
"""


def test_gradients_of_grouped_convolutions_that_are_computed_for_all_pairs_of_channels() -> None:
    """Compiled for CPU and run, shifted slices take 2.1 s where this takes 17 s. What data select is not told by channels."""
    config = lint.Config(**{**support.SAY_ALL, "select": ("G118",)})
    (found,) = lint.run(hlo.parse(CHANNELS), config)
    assert found.name == "all"
    assert "convolution of 64x32x32x16 and 32x32x16x64" in found.message
    assert "sum each channel separately" in found.help
    assert found.is_at_most
    assert not lint.run(hlo.parse(CHANNELS.replace("select(same,", "select(positive,")), config)


def test_an_argument_that_a_convolution_reads_as_it_is_would_be_copied_for_it() -> None:
    config = lint.Config(**{**support.SAY_ALL, "select": ("L103",)})
    forward = (
        "  w = f32[3,3,64,64]{3,2,1,0} parameter(3)\n"
        "  y = f32[16,32,32,64]{3,2,1,0} convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f\n"
    )
    module = CHANNELS.replace("  row = ", f"{forward}  row = ")
    once, twice = (lint.run(hlo.parse(text), config) for text in (CHANNELS, module))
    assert [one.name for one in once] == ["turned"]
    assert not twice
