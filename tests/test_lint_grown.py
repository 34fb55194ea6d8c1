"""Arrays that grow by one concatenation after the other, each of which writes all that there was."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.analysis.chips import CHIPS
from tests import support

STEPS = range(1, 6)


def grows(name: str = "concatenate", user: str = "reduce", steps: range = STEPS) -> str:
    rows = "\n".join(f"  row.{i} = f32[1,256]{{1,0}} parameter({i})" for i in steps)
    lines = []
    for i in steps:
        parts = ", ".join(f"row.{k}" for k in steps if k <= i)
        lines.append(
            f"  all.{i} = f32[{4096 + i},256]{{1,0}} concatenate(cache, {parts}), dimensions={{0}}, "
            f'metadata={{op_name="jit(step)/{name}"}}'
        )
        lines.append(f"  sum.{i} = f32[256]{{0}} {user.replace('ALL', f'all.{i}')}")
    sums = ", ".join(f"sum.{i}" for i in steps)
    shapes = ", ".join("f32[256]{0}" for _ in steps)
    return f"""HloModule grows, is_scheduled=true

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY main {{
  cache = f32[4096,256]{{1,0}} parameter(0)
{rows}
  zero = f32[] constant(0)
  x = f32[4096]{{0}} parameter({steps.stop})
{chr(10).join(lines)}
  ROOT sums = ({shapes}) tuple({sums})
}}
"""


SUM = "reduce(ALL, zero), dimensions={0}, to_apply=add"


def found(text: str) -> list[lint.Finding]:
    return lint.run(hlo.parse(text), lint.Config(select=("M113",), **support.SAY_ALL))


def test_what_each_step_writes_anew_is_told_once() -> None:
    (one,) = found(grows(user=SUM))
    assert one.name == "all.5"
    assert "grows from 4.00 MiB to 4.00 MiB in 5 steps" in one.message
    # Each writes 4 MiB and reads it; one of five arrays stays.
    rate = CHIPS["cpu"].rates.cache_bandwidth
    assert rate is not None
    assert one.seconds == pytest.approx(4 * 8 * 2**20 / rate.value, rel=0.01)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(grows("pad", SUM), id="the compiler joins"),
        pytest.param(grows(user=SUM, steps=range(1, 4)), id="three sizes"),
    ],
)
def test_other_concatenations_are_no_growth(text: str) -> None:
    assert not found(text)


def test_what_products_would_read_besides_is_taken_off() -> None:
    """From 1 to 64 rows: two products of all 64 in each step read as much more as the copies take."""
    rows = "\n".join(f"  row.{i} = f32[1,65536]{{1,0}} parameter({i})" for i in range(1, 65))
    lines = "\n".join(
        f"  all.{i} = f32[{i},65536]{{1,0}} concatenate({', '.join(f'row.{k}' for k in range(1, i + 1))}), dimensions={{0}}, "
        f'metadata={{op_name="jit(step)/concatenate"}}\n  sum.{i} = f32[{i}]{{0}} USE'
        f"\n  too.{i} = f32[{i}]{{0}} USE"
        for i in range(2, 65)
    )
    text = f"""HloModule grows, is_scheduled=true

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY main {{
{rows}
  zero = f32[] constant(0)
  x = f32[65536]{{0}} parameter(0)
{lines}
  ROOT sums = ({", ".join(f"f32[{i}]{{0}}" for i in range(2, 65))}) tuple({", ".join(f"sum.{i}" for i in range(2, 65))})
}}
"""

    def used(by: str) -> str:
        return "\n".join(
            line.replace(
                "USE",
                by.replace("ALL", line.strip().split(" ")[0].replace("sum", "all").replace("too", "all")),
            )
            for line in text.splitlines()
        )

    assert found(used("reduce(ALL, zero), dimensions={1}, to_apply=add"))
    assert not found(used("dot(ALL, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"))
