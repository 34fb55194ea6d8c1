"""What steps change: operations that came, went, changed or were renamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotext import dumps
from hlotext.dumps.changes import Changes, changes
from hlotext.dumps.identity.states import State, usual_form
from tests.dump_cases import TAGGED, unpacked

TEXT = """HloModule m, entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[4]{0}}

%fused_computation (p0: f32[4], p1: f32[4]) -> f32[4] {
  %p0 = f32[4]{0} parameter(0)
  %p1 = f32[4]{0} parameter(1)
  ROOT %add.1 = f32[4]{0} add(%p0, %p1), metadata={op_name="jit(f)/add"}
}

ENTRY %main (a: f32[4], b: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  %b = f32[4]{0} parameter(1)
  %neg.1 = f32[4]{0} negate(%a)
  %exp.1 = f32[4]{0} exponential(%neg.1)
  ROOT %fusion.1 = f32[4]{0} fusion(%exp.1, %b), kind=kLoop, calls=%fused_computation
}
"""


def short(found: Changes) -> list[str]:
    """Each change as one word."""
    return [
        f"{c.kind} {c.old_name + '->' if c.old_name else ''}{c.name}{':' + ','.join(c.parts) if c.parts else ''}"
        for c in found
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("jit(f)/add", "jit(g)/add", []),
        ("%neg.1", "%neg.7", ["renamed neg.1->neg.7"]),
        ("%fused_computation", "%fused_computation.4", []),
        ("negate(%a)", "negate(%b)", ["changed neg.1:operands"]),
        ("negate(%a)", "abs(%a)", ["changed neg.1:opcode"]),
        ("kind=kLoop", "kind=kInput", ["changed fusion.1:attributes"]),
        (
            "  %exp.1 = f32[4]{0} exponential(%neg.1)\n",
            "  %exp.1 = f32[4]{0} exponential(%neg.1)\n  %copy = f32[4]{0} copy(%b)\n",
            ["added copy"],
        ),
    ],
)
def test_changes(old: str, new: str, expected: list[str]) -> None:
    """One thing at a time; both ways where it can be seen both ways."""
    assert short(changes(State(TEXT), State(TEXT.replace(old, new)))) == expected


def test_all_names_new() -> None:
    """A pass that renames everything changes nothing else."""
    new = TEXT
    for name in ("fusion.1", "exp.1", "neg.1", "add.1", "fused_computation", "p0", "p1", "%a", "%b"):
        new = new.replace(name, f"{name}x")
    found = changes(State(TEXT), State(new))
    assert {change.kind for change in found} == {"renamed"}
    assert {change.old_name for change in found} >= {"fusion.1", "exp.1", "neg.1", "add.1"}


def test_layouts_and_shapes() -> None:
    """What of the result changed."""
    two = TEXT.replace("f32[4]{0} negate", "f32[4]{0:T(128)} negate")
    assert short(changes(State(TEXT), State(two))) == ["changed neg.1:layout"]
    three = TEXT.replace("f32[4]{0} negate", "f32[5]{0} negate")
    found = changes(State(TEXT), State(three))
    assert short(found) == ["changed neg.1:shape"]
    assert found.bytes == 4
    assert found.changed[0].before == "f32[4]{0} negate"


def test_what_is_inside_fusions_and_reducers_is_no_result() -> None:
    """Two operations of 1 KiB become one fusion: one result less; in a loop's body results are results."""
    apart = """HloModule m

%body (p: f32[256]) -> f32[256] {
  %p = f32[256]{0} parameter(0)
  %e = f32[256]{0} exponential(%p)
  ROOT %n = f32[256]{0} negate(%e)
}

ENTRY %main (x: f32[256]) -> f32[256] {
  %x = f32[256]{0} parameter(0)
  ROOT %c = f32[256]{0} call(%x), to_apply=%body
}
"""
    fused = apart.replace(
        "ROOT %n = f32[256]{0} negate(%e)", "ROOT %f = f32[256]{0} fusion(%p), kind=kLoop, calls=%inside"
    )
    fused = fused.replace("  %e = f32[256]{0} exponential(%p)\n", "").replace(
        "%body (p",
        """%inside (q: f32[256]) -> f32[256] {
  %q = f32[256]{0} parameter(0)
  %e = f32[256]{0} exponential(%q)
  ROOT %n = f32[256]{0} negate(%e)
}

%body (p""",
    )  # fmt: skip
    found = changes(State(apart), State(fused))
    assert found.bytes == -1024
    assert changes(State(fused), State(apart)).bytes == 1024
    assert {change.name for change in found.added} == {"f", "q"}
    wider = fused.replace("%e = f32[256]{0} exponential(%q)", "%e = f64[256]{0} exponential(%q)")
    assert changes(State(fused), State(wider)).bytes == 0
    assert changes(State(apart), State(apart.replace("f32[256]{0} exp", "f64[256]{0} exp"))).bytes == 1024
    assert changes(State(apart), State(apart.replace("f32[256]{0} exp", "what[256]{0} exp"))).bytes is None


@pytest.mark.parametrize("name", TAGGED[::3])
def test_counts_agree_with_the_texts(name: str, tmp_path: Path) -> None:
    """What came less what went is how many more operations there are; a step against itself is nothing."""
    c = dumps.open(unpacked(name, tmp_path)).compilations[0]
    before = None
    for step in c.steps:
        count = sum(1 for _ in step.module.instructions())
        if before is not None:
            found = step.changes
            assert len(found.added) - len(found.removed) == count - before, step
            assert found.is_same_text == (step.file.text() == c.steps[step.index - 1].file.text())
        before = count
        step.release()
    assert changes(State(step.file.text()), State(step.file.text())) == Changes(is_same_text=True)


def test_texts_of_another_form() -> None:
    """Without percent signs the lines are those that XLA would print."""
    plain = TEXT.replace("%", "")
    assert short(changes(State(usual_form(TEXT)), State(usual_form(plain)))) == []


def test_an_operation_that_is_fused_is_renamed() -> None:
    """It came from outside the fusion: nothing but the fusion is new, and nothing is gone."""
    old = TEXT.replace("fusion(%exp.1, %b), kind=kLoop, calls=%fused_computation", "add(%exp.1, %b)").replace(
        "fusion.1", "add.9"
    )
    old = old[: old.index("%fused_computation")] + old[old.index("ENTRY") :]
    found = changes(State(old), State(TEXT))
    assert [change.name for change in found.added] == ["p0", "p1", "fusion.1"]
    assert [(change.old_name, change.name) for change in (*found.renamed, *found.changed)] == [
        ("add.9", "add.1")
    ]
    assert not found.removed
