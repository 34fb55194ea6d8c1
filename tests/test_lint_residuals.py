"""Residuals of layers are worth knowing where they leave little of the chip's memory."""

from __future__ import annotations

import re

import pytest

import hlotext as hlo
from hlotext import lint
from tests import support

SCAN = (support.DATA / "lint" / "M116.txt").read_text().partition("HloModule silent")[0]
LAYERS = (support.DATA / "lint" / "M124.txt").read_text().partition("HloModule silent")[0]


def _scan(iterations: int, row: int) -> str:
    """The scan with so many iterations that each keep a row of so many elements, twice their state."""
    text = SCAN.replace("64,4096]", f"{iterations},4096]").replace("constant(64)", f"constant({iterations})")
    text = re.sub(r"\b1024\b", str(row // 2), text.replace("[4,1024]", "[2,1024]"))
    return re.sub(r"\b4096\b", str(row), text)


@pytest.mark.parametrize(
    ("iterations", "row", "found"), [(16, 1 << 28, 1), (16, 1 << 25, 0), (64, 1 << 25, 1)]
)
def test_few_iterations_may_keep_what_leaves_room(iterations: int, row: int, found: int) -> None:
    """Of a host's memory nobody knows the size; it is taken for 64 GiB. 16 GiB are stacked, and 2 GiB; then 8 of many."""
    reports = lint.run(hlo.parse(_scan(iterations, row)), lint.Config(select=("M116",), **support.SAY_ALL))
    assert len(reports) == found
    if found:
        stack = 4 * iterations * row
        assert reports[0].peak_bytes == pytest.approx(stack * (1 - 1 / 2 - 1 / iterations), rel=0.05)


@pytest.mark.parametrize(("chip", "found"), [("h100", 1), ("mi300x", 0)])
def test_unrolled_layers_may_keep_what_leaves_room(chip: str, found: int) -> None:
    """6 GiB are 7.5% of the memory of one chip and 3.1% of the other's."""
    config = lint.Config(select=("M124",), chip=chip, **support.SAY_ALL)
    assert len(lint.run(hlo.parse(LAYERS), config)) == found


def test_three_layers_are_the_least() -> None:
    """Two equal arrays of one line may be anything."""
    text = re.sub(r'op_name="jit\(f\)/jvp\(\)', lambda found: f"{found[0]}/{'ab'[found.start() % 2]}", LAYERS)
    numbers = iter(range(100))
    text = re.sub(r"/[ab]/", lambda _: f"/{'abcdefgh'[next(numbers) // 6]}/", text)
    assert not lint.run(hlo.parse(text), lint.Config(select=("M124",), **support.SAY_ALL))
