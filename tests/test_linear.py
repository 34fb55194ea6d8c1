"""Work that must not grow with the square of a module: counted, never timed (`python -m tests.bench.linearity` times it)."""

from __future__ import annotations

import random
from typing import Any

import pytest

import hlotext as hlo
from hlotext import rewrite
from hlotext.edit import calls, integrity
from hlotext.ir.nodes.order import Order
from hlotext.ir.nodes.rewiring import Rewiring, Wires
from hlotext.rewrite.passes import PASSES, cse
from hlotext.rewrite.rewriter import _Rewriter
from tests.bench.kinds import MODULES

N = 200


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """How often a function was called, in the one element of a list."""
    count, function = [0], getattr(owner, name)

    def call(*arguments: Any, **named: Any) -> Any:
        count[0] += 1
        return function(*arguments, **named)

    monkeypatch.setattr(owner, name, call)
    return count


def module(kind: str, n: int = N) -> hlo.Module:
    return hlo.parse(MODULES[kind][1](n))


def test_operands_of_a_wide_user_are_made_once_when_all_of_them_are_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = module("one user of equals")
    made = counted(monkeypatch, Wires, "of")
    assert PASSES["cse"]().run(m).statistics == {"instructions": N - 1}
    assert made[0] == 1
    assert len(set(m.entry.root.operands)) == 1
    assert type(m.entry.root) is hlo.Instruction
    assert integrity.problems(m) == []


def test_a_fusion_is_looked_at_once_when_many_of_its_operands_are_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = module("equal operands of a fusion")
    looked = counted(monkeypatch, cse, "deduplicate_fusion_operands")
    PASSES["cse"]().run(m)
    assert looked[0] == 1
    assert len(m.entry.root.operands) == len(m.entry.root.called_computations[0].parameters) == 1
    assert integrity.problems(m) == []


def test_insertions_at_one_place_number_only_neighbours_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    m = module("a chain", 1000)
    anchor = m.entry.instructions[500]
    assert m.entry.order[anchor]
    all_anew = counted(monkeypatch, Order, "_number")
    for _ in range(500):
        rewrite.Builder.before(anchor).sine(anchor.operands[0])
    assert all_anew[0] == 0
    assert integrity.problems(m) == []


def test_the_others_that_take_a_wide_value_are_not_visited_whenever_one_of_them_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = module("many users of many")
    visited = counted(monkeypatch, _Rewriter, "visit")
    assert PASSES["tuple-simplifier"]().run(m).changed
    assert visited[0] < 12 * N


def test_calls_of_new_copies_are_checked_from_their_side(monkeypatch: pytest.MonkeyPatch) -> None:
    m = module("a chain of calls")
    top, bottom = m.computations[-2], m.computations[0]
    looked = counted(monkeypatch, calls, "_callers")
    last = m.computations[1].root
    copy = rewrite.import_computation(m, bottom)
    last.attributes["to_apply"] = copy  # that leads to nothing, while all the chain leads to the call
    assert looked[0] < 20
    with pytest.raises(hlo.EditError, match="call itself"):
        last.attributes["to_apply"] = top


def test_numbers_of_channels_are_asked_for_where_one_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    target, library = module("a chain"), module("calls of others", 20)
    walked = counted(monkeypatch, hlo.Module, "instructions")
    for computation in library.computations[:-1]:
        rewrite.import_computation(target, computation)
    assert walked[0] < 20


@pytest.mark.parametrize("seed", range(20))
def test_wide_users_are_like_others_whatever_is_done_with_them(seed: int) -> None:
    """Exchanged operands, with looks at them in between, and all of it undone."""
    m = module("one user", 40)
    root, given = m.entry.root, m.entry.root.operands
    given[0].replace_all_uses_with(given[1])
    assert type(root) is Rewiring
    assert root.operands == (given[1], *given[1:])
    assert type(root) is hlo.Instruction
    root.change(operands=given)
    text = str(m)
    rng = random.Random(seed)
    expected = list(given)
    with m.transaction() as record:
        for _ in range(60):
            if rng.random() < 0.5:
                place = rng.randrange(len(given))
                expected[place] = rng.choice(given)
                root.replace_operand(place, expected[place])
            else:
                old, new = rng.sample(given, 2)
                old.replace_all_uses_with(new)
                expected = [new if operand is old else operand for operand in expected]
            if rng.random() < 0.2:
                assert list(root.operands) == expected
            if rng.random() < 0.1:
                root.change(operands=rng.sample(expected, len(expected)))
                expected = list(root.operands)
        assert integrity.problems(m) == []
    assert list(root.operands) == expected
    if seed % 2:
        record.undo()
        assert root.operands == given
        assert str(m) == text
    assert integrity.problems(m) == []
