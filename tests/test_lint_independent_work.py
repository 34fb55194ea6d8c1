"""Work that does not depend on other work: small iterations with library calls, and solves one after another."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.analysis import Backend
from hlotext.findings.errors import Severity
from tests import support

FILTER = """HloModule filter, is_scheduled=true

condition {
  state = (s32[], f32[N,N]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  bound = s32[] constant(10000)
  ROOT less = pred[] compare(n, bound), direction=LT
}

body {
  state = (s32[], f32[N,N]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  x = f32[N,N]{1,0} get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(n, one)
  lu = (f32[N,N]{0,1}, s32[N]{0}, s32[]) custom-call(x), custom_call_target="cusolver_getrf_ffi"
  y = f32[N,N]{0,1} get-tuple-element(lu), index=0
  z = f32[N,N]{1,0} negate(y)
  ROOT t = (s32[], f32[N,N]{1,0}) tuple(next, z)
}

ENTRY main {
  zero = s32[] constant(0)
  p0 = f32[N,N]{1,0} parameter(0)
  start = (s32[], f32[N,N]{1,0}) tuple(zero, p0)
  ROOT loop = (s32[], f32[N,N]{1,0}) while(start), condition=condition, body=body
}
"""


def found(text: str, code: str, chip: str) -> list[lint.Finding]:
    """The findings of a rule in a text."""
    return list(lint.run(hlo.parse(text), lint.Config(select=(code,), chip=chip, profile=Backend.GPU)))


@pytest.mark.parametrize(("size", "is_small"), [(3, True), (64, True), (512, False)])
def test_iterations_that_factor_small_matrices_are_small(size: int, is_small: bool) -> None:
    """A library call that is given little does little; of others nobody knows what they take."""
    findings = found(FILTER.replace("[N", f"[{size}").replace(",N]", f",{size}]"), "G113", "h100")
    assert bool(findings) is is_small
    if findings:
        (finding,) = findings
        assert finding.severity is Severity.WARNING
        assert "1 custom call for small arrays" in finding.help


SOLVES = (support.DATA / "lint" / "G131.txt").read_text().split("\n\nHloModule silent")[0]


def test_what_is_read_once_for_all_is_saved_in_all_loops_but_one() -> None:
    (finding,) = found(SOLVES, "G131", "h100")
    assert finding.seconds == pytest.approx(100 * 4096 * 4096 * 4 / 3.35e12)


def test_loops_until_convergence_give_a_bound() -> None:
    """The batch runs until the last one has converged."""
    text = SOLVES.replace("bound = s32[] constant(100)", "bound = s32[] get-tuple-element(state), index=0")
    (finding,) = found(text, "G131", "h100")
    assert finding.is_at_most


def test_sums_of_elements_are_no_products() -> None:
    """Whether several of them read an array once is up to the compiler."""
    dot = "dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    text = SOLVES.replace(
        f"y = f32[4096]{{0}} {dot}", 'y = f32[4096]{0} custom-call(a, x), custom_call_target="f"'
    )
    assert text != SOLVES
    assert not found(text, "G131", "h100")
