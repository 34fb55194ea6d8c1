"""Repairs that lint makes in a copy of a text: what is edited, and that time and memory are those of the edited module."""

from __future__ import annotations

import json

import attrs
import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.lint.helpers import size_of
from hlotext.lint.repairing import RepairError, applied
from hlotext.lint.repairs import Hoist, Reuse, StoreInOrder, SumOnce
from hlotext.reports import full_text
from tests import support
from tests.cli_support import run

TRIED = lint.Config(what_if=True, **support.SAY_ALL)


def case(code: str) -> str:
    """The module of a rule's data file that the rule finds something in."""
    text = (support.DATA / "lint" / f"{code}.txt").read_text()
    return text[text.index("HloModule") : text.index("HloModule", text.index("HloModule") + 1)]


def outcome(text: str, code: str) -> tuple[lint.Finding, hlo.findings.finding.RepairOutcome]:
    found = next(one for one in lint.run(hlo.parse(text), TRIED) if one.code == code)
    assert found.what_if is not None
    return found, found.what_if


def test_a_finding_without_an_edit_says_so() -> None:
    """Silence would pass for an edit that changes nothing."""
    found, done = outcome(case("G123"), "G123")
    assert (done.edit, done.seconds_after) == ("", None)
    assert "hlotext cannot apply this repair to the text" in done.reason
    assert "what if: not applied: hlotext cannot apply this repair to the text" in full_text(found, True)


@pytest.mark.parametrize(
    ("code", "edit"),
    [("G116", "1 instruction moved out of loop"), ("C113", "1 all-reduce moved after loop")],
)
def test_what_a_finding_says_it_saves_is_what_the_edit_saves(code: str, edit: str) -> None:
    found, done = outcome(case(code), code)
    assert done.edit == edit
    assert done.seconds_after is not None
    assert found.seconds == pytest.approx(done.seconds_before - done.seconds_after, rel=0.02)
    assert done.peak_before is not None
    assert done.peak_after is not None


def test_a_donated_argument_lowers_the_peak() -> None:
    found, done = outcome(case("M103"), "M103")
    assert done.edit.endswith("donated")
    assert done.peak_before is not None
    assert done.peak_after is not None
    assert found.peak_bytes is not None
    assert 0 < found.peak_bytes <= done.peak_before - done.peak_after
    arguments = [one.shape for one in hlo.parse(case("M103")).entry.parameters]
    assert done.peak_after >= sum(size_of(shape) for shape in arguments)  # which are in memory all the time


def test_the_module_itself_stays() -> None:
    module = hlo.parse(case("G116"))
    before = str(module)
    lint.run(module, TRIED)
    assert str(module) == before


def test_hoisted_work_leaves_the_body() -> None:
    module = hlo.parse(case("G116"))
    copy, _ = applied([Hoist(module.instruction("loop"), frozenset([module.instruction("square")]))], module)
    body = copy.module.computation("body")
    assert [one.opcode for one in body].count("dot") == 1
    assert [one.opcode for one in copy.module.entry].count("dot") == 1
    assert not [one for one in hlo.verify(copy.module) if one.severity is hlo.Severity.ERROR]


def test_a_sum_that_starts_with_something_is_refused() -> None:
    """The initial value of the loop is summed over the devices too, which is right only for zeros."""
    text = case("C113").replace(
        "g0 = f32[256,256]{1,0} broadcast(nought), dimensions={}", "g0 = f32[256,256]{1,0} parameter(1)"
    )
    module = hlo.parse(text)
    with pytest.raises(RepairError, match="does not start at zero"):
        applied([SumOnce(module.instruction("loop"), {module.instruction("all"): (2,)})], module)


def test_equal_values_are_used_again() -> None:
    text = """
HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8,8]{1,0} parameter(0)
  a = f32[8,8]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[8,8]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[8,8]{1,0} add(a, b)
}
"""
    module = hlo.parse(text)
    copy, done = applied([Reuse(((module.instruction("b"), module.instruction("a")),))], module)
    assert done == ["b replaced by a"]
    assert [one.name for one in copy.module.entry] == ["p", "a", "c"]


def test_an_argument_comes_in_the_order_of_its_copy() -> None:
    text = """
HloModule m, is_scheduled=true, entry_computation_layout={(f32[8,4]{1,0})->f32[8,4]{0,1}}
ENTRY e {
  p = f32[8,4]{1,0} parameter(0)
  c = f32[8,4]{0,1} copy(p)
  ROOT n = f32[8,4]{0,1} negate(c)
}
"""
    module = hlo.parse(text)
    copy, _ = applied([StoreInOrder(module.instruction("c"))], module)
    assert [str(one.shape) for one in copy.module.entry] == ["f32[8,4]{0,1}"] * 2
    assert "{(f32[8,4]{0,1})->f32[8,4]{0,1}}" in str(copy.module)
    with pytest.raises(RepairError):
        applied([StoreInOrder(module.instruction("n"))], module)


def test_text_and_json_show_both_figures() -> None:
    path = support.DATA / "lint" / "G116.txt"
    shown = run("lint", str(path), "--what-if", "--isolated", "--select", "G116")
    asked = run("lint", str(path), "--what-if", "--isolated", "--select", "G116", "--format", "json")
    found = json.loads(asked.stdout)["findings"]
    for one in found:
        assert set(one["what_if"]) == {
            field.name for field in attrs.fields(hlo.findings.finding.RepairOutcome)
        }
        assert "what if: 1 instruction moved out of loop: step" in shown.stdout
