"""Convolutions that are products of matrices: `hlotext.cost.convolution_dimensions` against their values."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

import hlotext as hlo
from hlotext import cost
from hlotext.ir.values.window import Window, WindowDimension


def convolved(x: NDArray[np.int64], k: NDArray[np.int64], w: WindowDimension, size: int) -> NDArray[np.int64]:
    """`b0f,0io->b0f` by its definition."""
    found = np.zeros((x.shape[0], size, k.shape[2]), np.int64)
    for out, tap in itertools.product(range(size), range(w.size)):
        place = out * w.stride + tap * w.window_dilation - w.padding_low
        at = w.size - 1 - tap if w.window_reversal else tap
        if place % w.base_dilation == 0 and 0 <= place // w.base_dilation < x.shape[1]:
            found[:, out] += x[:, place // w.base_dilation] @ k[at]
    return found


def multiplied(
    x: NDArray[np.int64], k: NDArray[np.int64], found: cost.ConvolutionDimensions
) -> NDArray[np.int64]:
    """The product that the dimensions tell, as einsum computes it: letters are those of the result, others are summed."""
    left, right, result = ["?"] * 3, ["?"] * 3, ["?"] * 3
    letters = iter("abcdefgh")
    for a, b, c in found.batch:
        left[a] = right[b] = result[c] = next(letters)
    for a, c in found.lhs:
        left[a] = result[c] = next(letters)
    for b, c in found.rhs:
        right[b] = result[c] = next(letters)
    for a, b in found.summed:
        left[a] = right[b] = next(letters)
    # What an operand or the result lacks is a dimension of one element.
    names = ["".join(one for one in each if one != "?") for each in (left, right, result)]
    whole: NDArray[np.int64] = np.einsum(
        f"{names[0]},{names[1]}->{names[2]}",
        x.reshape([n for n, one in zip(x.shape, left, strict=True) if one != "?"]),
        k.reshape([n for n, one in zip(k.shape, right, strict=True) if one != "?"]),
    )
    for axis, one in enumerate(result):
        if one == "?":
            whole = np.expand_dims(whole, axis)
    return whole


def test_the_dimensions_give_what_the_convolution_gives() -> None:
    """For every window over a few elements; each form is met, and all others are no products."""
    numbers = np.random.default_rng(0)
    met = set()
    for size, taps, stride, low, high, window_dilation, base_dilation, is_reversed in itertools.product(
        (1, 2, 3), (1, 2, 3), (1, 2, 3), (0, 1, 2), (0, 1, 2), (1, 2), (1, 2, 3), (False, True)
    ):
        w = WindowDimension(taps, stride, low, high, window_dilation, base_dilation, is_reversed)
        reach = (taps - 1) * window_dilation + 1
        count = (low + (size - 1) * base_dilation + 1 + high - reach) // stride + 1
        if count < 1:
            continue
        text = f"""HloModule m

ENTRY e {{
  x = s32[2,{size},3] parameter(0)
  k = s32[{taps},3,4] parameter(1)
  ROOT c = s32[2,{count},4] convolution(x, k), window={Window((w,))}, dim_labels=b0f_0io->b0f
}}
"""
        found = cost.convolution_dimensions(hlo.parse(text).entry.root)
        if found is None:
            continue
        x, k = numbers.integers(-9, 9, (2, size, 3)), numbers.integers(-9, 9, (taps, 3, 4))
        assert np.array_equal(multiplied(x, k, found), convolved(x, k, w, count)), text
        met.add((len(found.batch), len(found.lhs), len(found.rhs), len(found.summed)))
    assert met == {(1, 1, 1, 1), (0, 2, 1, 1), (0, 1, 2, 1), (0, 1, 1, 2)}


def test_sizes_of_a_product_of_batches() -> None:
    """As the TPU compiler writes it."""
    text = """HloModule m

ENTRY e {
  x = f32[4,8,10,20] parameter(0)
  k = f32[4,8,20,30] parameter(1)
  ROOT c = f32[4,8,10,30] convolution(x, k), window={size=4x8 stride=3x7 lhs_dilate=4x8}, dim_labels=01bf_01io->01bf
}
"""
    root = hlo.parse(text).entry.root
    assert cost.product_sizes(root) == (32, 10, 30, 20)
    assert cost.product_flops(root) == 2 * 32 * 10 * 30 * 20
    grouped = text.replace("dim_labels", "feature_group_count=2, dim_labels").replace("8,20,30", "8,10,30")
    assert cost.product_sizes(hlo.parse(grouped).entry.root) is None
