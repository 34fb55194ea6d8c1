"""`hlotext.compiler.explain`: every operation accounted for, on a recorded step of every pass, with the reasons of models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import hlotext as hlo
from hlotext import compiler
from hlotext.cli import main
from hlotext.compiler.pass_diff import ADDED, CHANGED, MOVED, ORDERED, REMOVED, RENAMED
from tests.explain_pairs import Step, steps
from tests.support import ROOT

STEPS = steps()
COPIES = next(step for step in STEPS if step.name == "adding_copies_to_resolve_interference")
DUMP = "tests/data/dumps/cpu.mlp_train.tar.xz"


SOME = [
    pytest.param(step, id=step.name, marks=() if number % 3 == 0 else pytest.mark.slow)
    for number, step in enumerate(STEPS)
]
"""Every third by default."""


@pytest.mark.parametrize("step", SOME)
def test_every_operation_is_accounted_for(step: Step) -> None:
    found = compiler.explain(step.before, step.after, step.name, platform=step.platform, log=step.log)
    assert found.changes
    assert found.accounting.adds_up()
    assert sum(len(group.changes) for group in found.groups) == len(found.changes)
    for node in found.after.instructions():
        assert (node in found.accounting.old_of) + any(
            c.new is node and c.kind == ADDED for c in found.changes
        ) == 1
    gone = [change for change in found.changes if change.kind == REMOVED]
    came = [change for change in found.changes if change.kind == ADDED]
    before, after = (sum(1 for _ in module.instructions()) for module in (found.before, found.after))
    assert after - before == len(came) - len(gone)
    assert {change.kind for change in found.changes} <= {ADDED, REMOVED, CHANGED, RENAMED, MOVED, ORDERED}


@pytest.mark.parametrize("step", STEPS[::6], ids=[step.name for step in STEPS[::6]])
def test_nothing_changed_is_no_change(step: Step) -> None:
    found = compiler.explain(step.before, step.before)
    assert found.changes == ()
    assert found.groups == ()


def test_a_change_is_not_lost() -> None:
    """Whatever is edited shows."""
    text = "ENTRY e { x = f32[4] parameter(0)  a = f32[4] add(x, x)  c = f32[4] copy(a)  ROOT n = f32[4] negate(c) }"
    for other, kind, what in (
        (text.replace("add(x, x)", "multiply(x, x)"), CHANGED, "add -> multiply"),
        (text.replace("f32[4]", "f32[8]"), CHANGED, "parameter: dimensions"),
        (text.replace("negate(c)", "negate(a)"), CHANGED, "negate: operands"),
        (text.replace(" a =", " b =").replace("(a)", "(b)"), RENAMED, "operations"),
        (text.replace("c = f32[4] copy(a)  ", "").replace("(c)", "(a)"), REMOVED, "copy of add"),
        (
            text.replace("negate(c)", "negate(c), control-predecessors={a}"),
            CHANGED,
            "negate: control-predecessors",
        ),
        (text.replace("ENTRY", "HloModule m, replica_count=2\n\nENTRY"), CHANGED, "header: replica_count"),
    ):
        found = compiler.explain(text, other)
        assert (kind, what) in [(change.kind, change.what) for change in found.changes], other
        assert found.accounting.adds_up()


def test_reasons_of_copies() -> None:
    """Each copy that XLA added has the model's reason, under the name that XLA gave it."""
    found = compiler.explain(COPIES.before, COPIES.after, COPIES.name, platform=COPIES.platform)
    assert found.verdict == "agrees"
    copies = [change.name for change in found.changes if change.kind == ADDED and change.opcode == "copy"]
    decided = {decision.instruction: decision for decision in found.decisions}
    assert copies
    for name in copies:
        assert decided[name].because
        assert all(found.after.find(other) or found.before.find(other) for other in decided[name].others)
        assert found.of(name)[1]


def test_a_model_that_cannot_tell_gives_no_reasons() -> None:
    """What a model raises is a note."""
    module = hlo.parse("ENTRY e { x = f32[] parameter(0)  ROOT r = f32[] negate(x) }")
    found = compiler.explain(module, module, "post-scheduling-copies")
    assert found.outcome is None
    assert "no schedule" in found.notes[0]


def test_no_model_is_said() -> None:
    found = compiler.explain(
        "ENTRY e { ROOT x = f32[] parameter(0) }", "ENTRY e { ROOT x = f32[] parameter(0) }", "nosuch"
    )
    assert "no model" in found.notes[0]


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["explain", *arguments])
    return result.exit_code, result.output


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files, a folder, one instruction."""
    monkeypatch.chdir(ROOT)
    before, after = tmp_path / "before.txt", tmp_path / "after.txt"
    before.write_text(COPIES.before)
    after.write_text(COPIES.after)
    status, text = run(str(before), str(after), "--pass", COPIES.name)
    assert status == 0
    assert "added: copy of" in text
    assert "why" in text
    status, text = run(str(before), str(after), "--pass", COPIES.name, "--format", "json")
    assert status == 0
    (found,) = json.loads(text)["explanations"]
    assert found["verdict"] == "agrees"
    assert sum(group["count"] for group in found["groups"]) == sum(found["counts"].values())
    status, text = run(DUMP, "--pass", "algsimp")
    assert (status, "--step" in text) == (0, True)
    assert run(DUMP, "--pass", "nosuch")[0] == 1
    assert run(DUMP)[0] == 2
    assert run("nosuch.txt", "nosuch.txt")[0] == 2
    name = next(d["instruction"] for d in found["decisions"])
    status, text = run(str(before), str(after), "--pass", COPIES.name, "-i", name)
    assert (status, name in text) == (0, True)
    assert run(str(before), str(after), "-i", "nosuch")[0] == 1
