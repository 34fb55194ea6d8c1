"""Passes leave what XLA's leave, on a sample of recorded steps; the whole is measured by `python -m tests.pass_pairs`."""

from __future__ import annotations

import re

import pytest

from hlotext.rewrite.passes import all_passes
from hlotext.rewrite.passes.agreement import AGREEMENT, NEWEST, NEWEST_AGREEMENT, Agreement
from tests.cli_support import run
from tests.pass_pairs import MODELS, ON_PLATFORM, Pair, model, sampled

PAIRS = sampled()


@pytest.mark.parametrize(
    "pair",
    PAIRS,
    ids=[f"{p.name}-{p.platform}-{p.program}-{'changed' if p.after else 'kept'}" for p in PAIRS],
)
def test_pair(pair: Pair) -> None:
    assert pair.is_equal()


def test_table() -> None:
    """Every counterpart of a pass of XLA's was measured, has a pair here, and keeps what XLA keeps."""
    assert set(AGREEMENT) == {*MODELS.values(), *ON_PLATFORM.values()} <= set(all_passes())
    assert {model(pair.name, pair.platform) for pair in PAIRS} == set(AGREEMENT)
    for row in (*AGREEMENT.values(), *NEWEST_AGREEMENT.values()):
        assert row.unchanged_equal == row.unchanged
        assert row.changed_equal >= 0.6 * row.changed
    assert set(NEWEST_AGREEMENT) <= set(AGREEMENT)


def test_what_is_not_kept_up_is_marked() -> None:
    behind = [name for name, row in NEWEST_AGREEMENT.items() if not row.keeps_up]
    for name in (*behind, "cse", "layout-normalization"):
        said = run("help", "pass", name).stdout
        assert ("too few to rely on" in said) is (name in behind)
        assert not re.search(r"option \w+=?$", said, re.MULTILINE)
        assert (f"Not compared with JAX {NEWEST}" in said) is (name not in NEWEST_AGREEMENT)


@pytest.mark.parametrize(
    ("counts", "keeps_up"),
    [
        ((33, 32, 0, 0), True),
        ((33, 31, 0, 0), False),
        ((100, 97, 5, 5), True),
        ((100, 96, 0, 0), False),
        ((9, 9, 5, 4), False),
    ],
)
def test_bars(counts: tuple[int, int, int, int], keeps_up: bool) -> None:
    assert Agreement("", *counts).keeps_up is keeps_up
