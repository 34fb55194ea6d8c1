"""The same work at both ends of an iteration, on loop-invariant arrays of which compilers wrote one for each use."""

from __future__ import annotations

import pytest

from hlotext import lint
from hlotext.ir.nodes.source import Source
from tests import support

_STATE = "(s32[], f32[64,64]{1,0}, f32[64,64]{1,0}, f32[64,64]{1,0})"


def text(second: str, initial: str) -> str:
    """The module on which the rule fires, with two matrices in its loop state, each used once in an iteration."""
    fires = (support.DATA / "lint" / "G122.txt").read_text().partition("HloModule silent")[0]
    state = _STATE.replace(")", ", f32[64,64]{1,0})")
    fires = (
        fires.replace(_STATE, state)
        .replace(", w)\n", ", w, w.again)\n")
        .replace("fusion(w, moved)", "fusion(w.again, moved)")
    )
    fires = fires.replace(
        "  before =", "  w.again = f32[64,64]{1,0} get-tuple-element(state), index=4\n  before ="
    )
    before = f"""  scale = f32[64]{{0}} parameter(3)
  rows = f32[64,64]{{1,0}} broadcast(scale), dimensions={{0}}
  scaled = f32[64,64]{{1,0}} multiply(w, rows)
  {second}
  first ="""
    return fires.replace("  first =", before).replace(
        "tuple(zero, x, v, w, w.again)", f"tuple(zero, x, v, scaled, {initial})"
    )


_ROWS = "rows.again = f32[64,64]{1,0} broadcast(scale), dimensions={0}"
_PRODUCT = "again = f32[64,64]{1,0} multiply(rows.again, w)"


@pytest.mark.parametrize(
    ("second", "initial", "count"),
    [
        ("", "scaled", 1),
        (f"{_ROWS}\n  {_PRODUCT}", "again", 1),
        (f"{_ROWS}\n  {_PRODUCT}".replace("={0}", "={1}"), "again", 0),
        (f"{_ROWS}\n  {_PRODUCT}".replace("multiply", "divide"), "again", 0),
        ("again = f32[64,64]{1,0} parameter(4)", "again", 0),
    ],
)
def test_equal_initial_values_are_one(second: str, initial: str, count: int) -> None:
    found = lint.lint_source(
        Source(text(second, initial), "m.txt"), lint.Config(select=("G122",), **support.SAY_ALL)
    )
    assert found.modules == 1
    assert len(found.findings) == count
