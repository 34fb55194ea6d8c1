"""Passes leave what XLA's leave, on a sample of recorded steps; the whole is measured by `python -m tests.pass_pairs`."""

from __future__ import annotations

import pytest

from hlotext.rewrite.passes import all_passes
from hlotext.rewrite.passes.agreement import AGREEMENT
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
    for row in AGREEMENT.values():
        assert row.unchanged_equal == row.unchanged
        assert row.changed_equal >= 0.8 * row.changed
