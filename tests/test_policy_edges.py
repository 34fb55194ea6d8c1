"""Edges of policy that sampled mutants survived: see `tests/mutants`."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint, rewrite
from hlotext.lint import beside

TWO = """HloModule m

ENTRY e {
  x = f32[4,4] parameter(0)
  y = f32[4,4] parameter(1)
  t = f32[4,4] transpose(x), dimensions={1,0}
  ROOT r = f32[4,4] add(t, y)
}
"""


def test_an_attribute_that_only_its_instruction_reads_is_checked() -> None:
    module = hlo.parse(TWO)
    with pytest.raises(hlo.EditError):
        module.instruction("t").attributes["dimensions"] = (0, 0)
    assert str(module) == TWO


def test_a_parameter_comes_after_the_others() -> None:
    module = hlo.parse(TWO)
    rewrite.add_parameter(module.entry, "f32[8]", "z")
    assert [i.name for i in module.entry] == ["x", "y", "z", "t", "r"]


@pytest.mark.parametrize(("codes", "wanted"), [(("V1",), ["V101"]), (("V3",), [])])
def test_the_verifier_reports_the_codes_that_are_asked_for(codes: tuple[str, ...], wanted: list[str]) -> None:
    """A code of its own that is on selects no other."""
    text = TWO.replace("ROOT r = f32[4,4]", "ROOT r = f32[4,5]")
    found = lint.lint_source(hlo.Source(text), lint.Config(ignore=("G", "L"), extend_select=codes)).findings
    assert [one.code for one in found if one.code.startswith("V")] == wanted


@pytest.mark.parametrize(("need", "left"), [(1.0, ["t"]), (2.0, ["t"]), (0.5, [])])
def test_work_beside_a_transfer_that_needs_as_much_is_taken(need: float, left: list[str]) -> None:
    """What the scheduler put beside one is of use to another only where that needs more than the first."""
    module = hlo.parse(
        TWO.replace("add(t, y)", "dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    )
    t, product = module.instruction("t"), module.entry.root
    found = beside._without_work(module.entry, {t: 1.0}, {product: 3.0}, {product: (need, product)})
    assert [i.name for i in found] == left


def test_lists_of_words_are_taken_as_text() -> None:
    module = hlo.parse(
        TWO.replace("add(t, y)", "dot(t, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    )
    module.entry.root.attributes["operand_precision"] = ["high", "default"]
    assert "operand_precision={high,default}" in str(module)


def test_a_module_without_memory_saves_none() -> None:
    context = lint.make_context(
        hlo.parse("HloModule m, is_scheduled=true\n\nENTRY e {\n  ROOT t = token[] after-all()\n}\n")
    )
    assert (context.assignment is not None, context.peak) == (True, 0)
    assert context.saved_peak({}) is None
    assert context.most_saved(()) is None
