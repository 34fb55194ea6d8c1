"""Real modules with one line damaged, or cut: what was not touched is read as if nothing had happened."""

from __future__ import annotations

from collections import Counter

import pytest

import hlotext as hlo
from tests.fuzz import damage

COUNT = 150
"""`python -m tests.fuzz.damage` does more."""


def test_a_damaged_line_costs_itself() -> None:
    """Of the other op lines 95% are the same: name, shape, operands, attributes, the computation around them."""
    losses = list(damage.losses(COUNT, seed=1))
    others = sum(loss.others for loss in losses)
    assert others > 50 * COUNT
    assert sum(loss.unchanged for loss in losses) >= 0.95 * others
    assert sum(loss.share < 0.95 for loss in losses) < 0.1 * COUNT
    assert len(Counter(loss.kind for loss in losses)) > 10


def test_a_cut_text_keeps_its_complete_computations() -> None:
    """All of those before the cut, with every instruction."""
    cuts = list(damage.missing_after_cut(COUNT, seed=1))
    assert [(path.name, cut, lost) for path, cut, lost in cuts if lost] == []


def test_losses_are_seen() -> None:
    """What is measured is not always 100%: an op line that is gone is missed, and so is a changed attribute."""
    text = "HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] negate(p), sharding={replicated}\n}\n"
    facts = damage._instructions([hlo.parse(text)])
    assert len(facts) == 2
    assert (
        len(damage._instructions(hlo.parse_tolerant(text.replace("[4] parameter", "[4 parameter")).modules))
        == 1
    )
    changed = damage._instructions([hlo.parse(text.replace("replicated", "manual"))])
    assert changed.keys() == facts.keys()
    assert changed != facts
    assert damage._instructions([hlo.parse(text.replace("ENTRY e", "ENTRY f"))]) != facts


@pytest.mark.parametrize(
    "cut", ["ENTRY e {", "ENTRY e {\n", "f {\n  ROOT a = f32[2] parameter(0)\n}\n\nENTRY e {\n  "]
)
def test_a_text_that_ends_behind_a_brace_is_cut_not_empty(cut: str) -> None:
    """The reports of all errors say one thing: the computation is not closed."""
    (error,) = hlo.parse_tolerant(f"HloModule m\n\n{cut}").diagnostics
    assert error.code == "X101"
    assert "the text ends inside computation e" in error.message


def test_a_header_that_is_cut_is_one_error() -> None:
    (error,) = hlo.parse_tolerant('HloModule m\n\nFileNames\n1 "/a').diagnostics
    assert error.code == "X101"
