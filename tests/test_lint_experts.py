"""Experts that are computed for all tokens, of which a mask then takes each token's own."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from tests import support

_FIND = """
larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  up = pred[] compare(a, b), direction=GT
  most = f32[] select(up, a, b)
  at = s32[] select(up, i, j)
  ROOT t = (f32[], s32[]) tuple(most, at)
}
"""
_INDEX = """  scores = f32[4096,8]{1,0} parameter(0)
  x = f32[4096,512]{1,0} parameter(1)
  ws = f32[8,512,512]{2,1,0} parameter(2)
  zero = f32[] constant(0)
  first = s32[] constant(0)
  places = s32[4096,8]{1,0} iota(), iota_dimension=1
  found = (f32[4096]{0}, s32[4096]{0}) reduce(scores, places, zero, first), dimensions={1}, to_apply=larger
  own = s32[4096]{0} get-tuple-element(found), index=INDEX
  none = f32[4096,512]{1,0} broadcast(zero), dimensions={}
"""
_LOOP = """HloModule experts, is_scheduled=true
FIND
body {
  state = STATE parameter(0)
  n = s32[] get-tuple-element(state), index=0
  y = f32[4096,512]{1,0} get-tuple-element(state), index=1
  x = f32[4096,512]{1,0} get-tuple-element(state), index=2
  ws = f32[8,512,512]{2,1,0} get-tuple-element(state), index=3
  experts = s32[8]{0} get-tuple-element(state), index=4
  own = s32[4096]{0} get-tuple-element(state), index=5
  zero = s32[] constant(0)
  one = s32[] constant(1)
  next = s32[] add(n, one)
  cut = f32[1,512,512]{2,1,0} dynamic-slice(ws, n, zero, zero), dynamic_slice_sizes={1,512,512}
  w = f32[512,512]{1,0} bitcast(cut)
  z = f32[4096,512]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  number = s32[1]{0} dynamic-slice(experts, n), dynamic_slice_sizes={1}
  expert = s32[] reshape(number)
  all = s32[4096]{0} broadcast(expert), dimensions={}
  is = pred[4096]{0} compare(own, all), direction=EQ
  mask = pred[4096,512]{1,0} broadcast(is), dimensions={0}
  chosen = f32[4096,512]{1,0} select(mask, z, y)
  ROOT t = STATE tuple(next, chosen, x, ws, experts, own)
}

condition {
  state = STATE parameter(0)
  n = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(8)
  ROOT less = pred[] compare(n, limit), direction=LT
}

ENTRY main {
ROUTING  experts = s32[8]{0} iota(), iota_dimension=0
  start = STATE tuple(first, none, x, ws, experts, own)
  loop = STATE while(start), condition=condition, body=body
  ROOT r = f32[4096,512]{1,0} get-tuple-element(loop), index=1
}
"""
_STATE = "(s32[], f32[4096,512]{1,0}, f32[4096,512]{1,0}, f32[8,512,512]{2,1,0}, s32[8]{0}, s32[4096]{0})"


def _written_out(experts: int, compared: int) -> str:
    """Experts one after another in the text, of which so many have a mask."""
    lines = [_INDEX.replace("INDEX", "1")]
    result = "none"
    for e in range(experts):
        lines.append(
            f"  cut.{e} = f32[1,512,512]{{2,1,0}} slice(ws), slice={{[{e}:{e + 1}], [0:512], [0:512]}}"
        )
        lines.append(f"  w.{e} = f32[512,512]{{1,0}} bitcast(cut.{e})")
        lines.append(
            f"  z.{e} = f32[4096,512]{{1,0}} dot(x, w.{e}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        )
        if e < compared:
            lines.append(f"  expert.{e} = s32[] constant({e})")
            lines.append(f"  all.{e} = s32[4096]{{0}} broadcast(expert.{e}), dimensions={{}}")
            lines.append(f"  is.{e} = pred[4096]{{0}} compare(own, all.{e}), direction=EQ")
            lines.append(f"  mask.{e} = pred[4096,512]{{1,0}} broadcast(is.{e}), dimensions={{0}}")
            lines.append(f"  y.{e} = f32[4096,512]{{1,0}} select(mask.{e}, z.{e}, none)")
        part = f"y.{e}" if e < compared else f"z.{e}"
        lines.append(f"  sum.{e} = f32[4096,512]{{1,0}} add({result}, {part})")
        result = f"sum.{e}"
    lines.append(f"  ROOT r = f32[4096,512]{{1,0}} negate({result})")
    return "\n".join(["HloModule experts, is_scheduled=true", _FIND, "ENTRY main {", *lines, "}"])


def _said(text: str) -> list[lint.Finding]:
    return lint.run(hlo.parse(text), lint.Config(**{**support.SAY_ALL, "select": ("G118",)}))


def _in_loop() -> str:
    text = _LOOP.replace("FIND", _FIND).replace("ROUTING", _INDEX.replace("INDEX", "1"))
    return text.replace("STATE", _STATE)


def test_experts_in_a_loop_are_computed_for_all_tokens() -> None:
    """Of eight experts each token takes one, so an eighth of the products is used: at most that much is saved."""
    (finding,) = _said(_in_loop())
    assert finding.message.startswith(
        "only 12% of the elements of the matmul of 4096x512 and 512x512 are used"
    )
    assert finding.is_at_most
    assert finding.flops == 2 * 4096 * 512 * 512 * 8 * 7 // 8


def test_experts_that_are_written_out_are_computed_for_all_tokens() -> None:
    (finding,) = _said(_written_out(8, 8))
    assert finding.flops == 2 * 4096 * 512 * 512 * 8 * 7 // 8


@pytest.mark.parametrize("compared", [1, 7])
def test_how_many_tokens_take_one_expert_is_unknown(compared: int) -> None:
    """Only all of the experts together have all tokens."""
    assert not _said(_written_out(8, compared))


def test_indices_that_are_given_may_be_of_any_class() -> None:
    """Only of the position of a maximum it is known among how many it is."""
    given = _in_loop().replace(
        "own = s32[4096]{0} get-tuple-element(found), index=1", "own = s32[4096]{0} parameter(3)"
    )
    assert not _said(given)
