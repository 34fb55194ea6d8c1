"""State that is accepted or rejected: what was computed of a proposal is known when the next iteration begins."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from tests import support

TEXT = """HloModule sampler, is_scheduled=true

body {
  state = (s32[], f32[64,512]{1,0}, f32[512,512]{1,0}, f32[64]{0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  x = f32[64,512]{1,0} get-tuple-element(state), index=1
  w = f32[512,512]{1,0} get-tuple-element(state), index=2
  level = f32[64]{0} get-tuple-element(state), index=3
  moved = f32[64,512]{1,0} sine(x)
  PREPARED
  old = f32[64,512]{1,0} dot(GIVEN, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  new = f32[64,512]{1,0} dot(PROPOSED, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  gain = f32[64,512]{1,0} subtract(new, old)
  some = f32[64,512]{1,0} exponential(gain)
  least = f32[64,512]{1,0} cosine(some)
  better = pred[64,512]{1,0} compare(some, least), direction=GT
  PREDICATE
  kept = f32[64,512]{1,0} select(all, moved, x)
  scaled = f32[64,512]{1,0} cosine(kept)
  one = s32[] constant(1)
  next = s32[] add(n, one)
  ROOT t = (s32[], f32[64,512]{1,0}, f32[512,512]{1,0}, f32[64]{0}) tuple(next, KEPT, w, level)
}

condition {
  state = (s32[], f32[64,512]{1,0}, f32[512,512]{1,0}, f32[64]{0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(100)
  ROOT less = pred[] compare(n, limit), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  x = f32[64,512]{1,0} parameter(0)
  w = f32[512,512]{1,0} parameter(1)
  level = f32[64]{0} parameter(2)
  first = (s32[], f32[64,512]{1,0}, f32[512,512]{1,0}, f32[64]{0}) tuple(zero, x, w, level)
  ROOT loop = (s32[], f32[64,512]{1,0}, f32[512,512]{1,0}, f32[64]{0}) while(first), condition=condition, body=body
}
"""
OF_ALL = """first = pred[1,1]{1,0} slice(better), slice={[0:1], [0:1]}
  is = pred[] bitcast(first)
  all = pred[64,512]{1,0} broadcast(is), dimensions={}"""
BY_ROW = """first = pred[64,1]{1,0} slice(better), slice={[0:64], [0:1]}
  is = pred[64]{0} bitcast(first)
  all = pred[64,512]{1,0} broadcast(is), dimensions={0}"""
BY_COLUMN = """first = pred[1,512]{1,0} slice(better), slice={[0:1], [0:512]}
  is = pred[512]{0} bitcast(first)
  all = pred[64,512]{1,0} broadcast(is), dimensions={1}"""


def found(
    predicate: str, kept: str = "kept", prepared: str = "", given: str = "x", proposed: str = "moved"
) -> bool:
    """True if G122 finds that the product of the current state is known."""
    text = TEXT.replace("PREPARED", prepared).replace("PREDICATE", predicate).replace("KEPT", kept)
    text = text.replace("GIVEN", given).replace("PROPOSED", proposed)
    findings = lint.run(hlo.parse(text), lint.Config(**{**support.SAY_ALL, "select": ("G122",)}))
    assert all("or for the one that it kept" in one.message for one in findings)
    return bool(findings)


@pytest.mark.parametrize("predicate", [OF_ALL, BY_ROW])
def test_a_product_of_the_current_state_is_known(predicate: str) -> None:
    """Whether one predicate decides for all of the state, or one for each row, of which the product makes a row."""
    assert found(predicate)


def test_a_product_that_mixes_what_is_accepted_apart_is_not() -> None:
    assert not found(BY_COLUMN)


def test_a_state_that_is_changed_afterwards_is_another() -> None:
    assert not found(OF_ALL, "scaled")


def test_what_depends_on_the_iteration_too_is_not_known() -> None:
    counted = """turn = f32[] convert(n)
  every = f32[64,512]{1,0} broadcast(turn), dimensions={}
  tempered = f32[64,512]{1,0} multiply(x, every)
  proposed = f32[64,512]{1,0} multiply(moved, every)"""
    assert not found(OF_ALL, prepared=counted, given="tempered", proposed="proposed")


def test_what_depends_on_what_no_iteration_changes_is_known() -> None:
    fixed = """every = f32[64,512]{1,0} broadcast(level), dimensions={0}
  tempered = f32[64,512]{1,0} multiply(x, every)
  proposed = f32[64,512]{1,0} multiply(every, moved)"""
    assert found(BY_ROW, prepared=fixed, given="tempered", proposed="proposed")
