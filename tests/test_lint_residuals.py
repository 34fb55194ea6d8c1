"""Residuals of layers are worth knowing where they leave little of the chip's memory."""

from __future__ import annotations

import re

import pytest

import hlotext as hlo
from hlotext import lint
from tests import support

SCAN = (support.DATA / "lint" / "M116.txt").read_text().partition("HloModule silent")[0]
LAYERS = (support.DATA / "lint" / "M124.txt").read_text().partition("HloModule silent")[0]


@pytest.mark.parametrize("code", ["M116", "M121", "M124", "M125"])
def test_memory_is_worth_time_where_the_module_needs_much_of_it(code: str) -> None:
    """From the given part of the chip's memory on; a host's is taken for 64 GiB."""
    text = (support.DATA / "lint" / f"{code}.txt").read_text().partition("HloModule silent")[0]
    module = hlo.parse(text)
    share = lint.make_context(module).memory_share
    assert 0 < share < 0.5

    def found(**settings: float) -> list[lint.Finding]:
        return list(lint.run(module, lint.Config(select=(code,), **{**support.SAY_ALL, **settings})))

    (finding,) = found(scarce_memory=share)
    assert finding.peak_bytes
    assert [one.seconds is not None for one in found(scarce_memory=share * 1.01)] == [True] * (
        finding.seconds is not None
    )
    assert not lint.run(module, lint.Config(select=(code,)))


def test_layers_keep_what_a_scan_would_keep() -> None:
    """Of few iterations as of many: of 8 rows of gates and as many of the state, a fourth as long, less one row."""
    text = SCAN.replace("f32[64,4096]", "f32[8,4096]").replace("constant(64)", "constant(8)")
    (finding,) = lint.run(hlo.parse(text), lint.Config(select=("M116",), **support.SAY_ALL))
    assert finding.peak_bytes == pytest.approx(8 * 4096 * 4 * (1 - 1 / 4 - 1 / 8), rel=0.05)


def test_three_layers_are_the_least() -> None:
    """Two equal arrays of one line may be anything."""
    text = re.sub(r'op_name="jit\(f\)/jvp\(\)', lambda found: f"{found[0]}/{'ab'[found.start() % 2]}", LAYERS)
    numbers = iter(range(100))
    text = re.sub(r"/[ab]/", lambda _: f"/{'abcdefgh'[next(numbers) // 6]}/", text)
    assert not lint.run(hlo.parse(text), lint.Config(select=("M124",), **support.SAY_ALL))
