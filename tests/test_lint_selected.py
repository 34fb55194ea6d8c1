"""Results of which a scalar selects one: `lax.cond` would compute that alone."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import cost, lint
from tests import support

_MODULE = """HloModule selected, is_scheduled=true

choose {{
  flag = pred[] parameter(0)
  a = f32[512,512]{{1,0}} parameter(1)
  b = f32[512,512]{{1,0}} parameter(2)
  flags = pred[512,512]{{1,0}} broadcast(flag), dimensions={{}}
  ROOT y = f32[512,512]{{1,0}} select(flags, a, b), metadata={{op_name="{name}"}}
}}

ENTRY main {{
  x = f32[512,512]{{1,0}} parameter(0)
  v = f32[512,512]{{1,0}} parameter(1)
  w = f32[512,512]{{1,0}} parameter(2)
  given = pred[] parameter(3)
  zero = f32[] constant(0)
  one = f32[512,512]{{1,0}} dot(x, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  other = f32[512,512]{{1,0}} {other}
  first = f32[1,1]{{1,0}} slice({read}), slice={{[0:1], [0:1]}}
  low = f32[] reshape(first)
  own = pred[] compare(low, zero), direction=LT
  ROOT y = f32[512,512]{{1,0}} fusion({flag}, one, other), kind=kLoop, calls=choose
}}
"""
_DOT = "dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
_NAME = "jit(f)/jit(_where)/select_n"


def _said(other: str, flag: str = "given", name: str = _NAME) -> tuple[str, list[lint.Finding]]:
    read = "one" if flag == "own" else "x"
    text = _MODULE.format(other=other, flag=flag, name=name, read=read)
    return text, lint.run(hlo.parse(text), lint.Config(**{**support.SAY_ALL, "select": ("G118",)}))


def test_of_two_results_one_is_computed_for_nothing() -> None:
    text, (finding,) = _said(_DOT)
    times = {one.instruction.name: one.seconds for one in cost.estimate(hlo.parse(text), "cpu").instructions}
    assert finding.severity.value == "warning"
    assert finding.seconds == pytest.approx(times["other"])
    assert finding.help.startswith("let lax.cond(flag")


def test_how_often_a_result_is_taken_is_unknown_where_the_other_is_there() -> None:
    _, (finding,) = _said("negate(x)")
    assert finding.severity.value == "note"
    assert finding.is_at_most


@pytest.mark.parametrize(
    ("other", "flag", "name"),
    [
        ("negate(x)", "own", _NAME),  # what decides is computed from the result
        (_DOT, "given", "jit(f)/jit(_gamma)/select_n"),
    ],
)
def test_what_is_needed_is_not_computed_for_nothing(other: str, flag: str, name: str) -> None:
    assert not _said(other, flag, name)[1]
