"""Views of passes without a model, and what all models say about one instruction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import hlotext as hlo
from hlotext import compiler, dumps
from hlotext.cli import main
from hlotext.compiler.pass_diff import PassDiff
from tests.support import ROOT

STEPS = ROOT / "tests" / "data" / "steps"
PROGRAM = """ENTRY e {
  x = f32[64,8]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  c = f32[64,8]{1,0} copy(x), sharding={devices=[4,1]<=[4]}
  ROOT t = (f32[64,8]{1,0}, f32[64,8]{1,0}) tuple(c, c)
}"""


def explained(name: str, pass_name: str, platform: str, suffix: str = ".txt") -> compiler.Explanation:
    before, after = (STEPS / f"{name}.{when}{suffix}" for when in ("before", "after"))
    return compiler.explain(before, after, pass_name, platform=platform)


def test_rematerialization() -> None:
    """Clones, their originals, and what the peak is before and after."""
    found = explained("remat", "rematerialization", "gpu", ".txt.xz")
    clones = compiler.rematerialized(found.accounting)
    assert clones
    for clone in clones:
        assert ".remat" in clone.clone.name
        assert found.before.find(clone.clone.name) is None
        assert clone.original is not None
        assert clone.original.opcode == clone.clone.opcode
        assert clone.is_original_gone == (found.after.find(clone.original.name) is None)
        assert clone.bytes is not None
    (view,) = found.views
    assert sum(int(row[2]) for row in view.rows) == len(clones)
    assert any("peak memory" in line and "less" in line for line in view.lines)


def test_overlap() -> None:
    """What stands between a start and its done is counted on both sides."""
    found = explained("overlap", "latency-hiding-scheduler", "gpu")
    rows = compiler.overlaps(found.accounting)
    assert any(row.after > (row.before or 0) for row in rows)
    for row in rows:
        done = next(user for user in row.start.users if user.opcode.endswith("-done"))
        home = row.start.computation
        assert home is not None
        lines = list(home)
        between = lines[lines.index(row.start) + 1 : lines.index(done)]
        assert row.after <= len(between)


def test_partitioning() -> None:
    """Every sharded operation with what a device holds; the entry has the shapes that follow."""
    found = explained("spmd", "spmd-partitioner", "cpu")
    shards, collectives = found.views
    assert {row[0].split(" ")[0] for row in shards.rows} == {
        i.name for i in found.before.instructions() if i.sharding
    }
    assert shards.lines
    for line in shards.lines:
        words = line.split()
        assert words[1] == words[3] != "0"
    known = {i.name for i in found.before.instructions()}
    came = [c for c in hlo.analysis.communications(found.after) if c.instruction.name not in known]
    assert [row[0] for row in collectives.rows] == [c.instruction.name for c in came]


def test_views_are_for_their_passes() -> None:
    accounting = PassDiff(hlo.parse(PROGRAM), hlo.parse(PROGRAM))
    assert compiler.explain(PROGRAM, PROGRAM, "dce").views == ()
    assert compiler.overlaps(accounting) == ()
    assert compiler.rematerialized(accounting) == ()


def test_why_in_a_module() -> None:
    """What models that fit would decide, and what a device holds."""
    answers = {answer.model: answer for answer in compiler.why_in(hlo.parse(PROGRAM), "t", "cpu")}
    assert {d.rule for d in answers["copy-insertion"].decisions} == {"read-only result", "result twice"}
    held = {answer.model: answer for answer in compiler.why_in(hlo.parse(PROGRAM), "x", "cpu")}
    assert "f32[16,8]" in held["sharding"].decisions[0].because
    with pytest.raises(LookupError):
        compiler.why_in(hlo.parse(PROGRAM), "nosuch")


_FINAL = """HloModule m, is_scheduled=true

write {
  a = f32[8]{0} parameter(0)
  u = f32[1]{0} parameter(1)
  i = s32[] parameter(2)
  ROOT d = f32[8]{0} dynamic-update-slice(a, u, i)
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  u = f32[1]{0} parameter(1)
  i = s32[] parameter(2)
  c = f32[8]{0} copy(p)
  ROOT f = f32[8]{0} fusion(c, u, i), kind=kLoop, calls=write
}
"""


@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_why_a_copy_of_the_final_module_is_there(platform: str) -> None:
    """It stands in the text, so no pass has removed it: the reason is what it protects, or unknown."""
    (answer,) = compiler.why_in(hlo.parse(_FINAL), "c", platform)
    (decision,) = answer.decisions
    assert (decision.instruction, decision.rule, decision.others) == ("c", "read-only", ("p",))
    assert "an argument that is not donated" in decision.because
    donated = _FINAL.replace("=true", "=true, input_output_alias={ {}: (0, {}, may-alias) }", 1)
    assert compiler.why_in(hlo.parse(donated), "c", platform) == ()
    twice = _FINAL.replace("ROOT f =", "d = f32[8]{0} copy(p)\n  f =").replace(
        "calls=write\n}\n",
        "calls=write\n  g = f32[8]{0} fusion(d, u, i), kind=kLoop, calls=write\n"
        "  ROOT t = (f32[8]{0}, f32[8]{0}) tuple(f, g)\n}\n",
    )
    rules = {name: compiler.why_in(hlo.parse(twice), name, platform)[0].decisions[0].rule for name in "cd"}
    assert rules == {"c": "read-only", "d": "kept: result of the computation"}


def test_why_in_a_compilation() -> None:
    """Each step with a model that speaks of the instruction, under the names that it had."""
    c = dumps.open(ROOT / "tests/data/dumps/gpu.loops.tar.xz").compilations[0]
    answers = compiler.why(c, "copy.35")
    assert [answer.model for answer in answers][-1] == "copy-insertion"
    assert all(answer.step is not None and answer.verdict == "agrees" for answer in answers)
    assert "it is kept because" in answers[-1].decisions[0].because
    c = dumps.open(ROOT / "tests/data/dumps/cpu.mlp_train.tar.xz").compilations[0]
    (answer, *_) = compiler.why(c, "broadcast_maximum_fusion")
    assert (answer.model, {d.rule for d in answer.decisions}) == ("fusion", {"fused"})


_REDUCED = """HloModule m

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %e (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  BODY
}
"""
_SYNC = """%NAME = f32[8]{0} all-reduce(%x), channel_id=1, use_global_device_ids=true, replica_groups={{0,1}}, to_apply=%add
  ROOT %n = f32[8]{0} negate(%NAME)"""
_ASYNC = (
    _SYNC.replace("%NAME =", "%NAME-start =")
    .replace("all-reduce(", "all-reduce-start(")
    .replace("  ROOT", "  %NAME-done = f32[8]{0} all-reduce-done(%NAME-start)\n  ROOT")
    .replace("negate(%NAME)", "negate(%NAME-done)")
)


def test_a_model_is_asked_under_the_name_of_its_step(tmp_path: Path) -> None:
    """Neither the first nor the last one."""
    texts = {
        "before_optimizations": _SYNC.replace("NAME", "first"),
        "0000.p.after_rename.before_async-collective-creator": _SYNC.replace("NAME", "second"),
        "0001.p.after_async-collective-creator.before_rename": _ASYNC.replace("NAME", "third"),
        "0002.p.after_rename.before_end": _ASYNC.replace("NAME", "fourth"),
        "sm_9.0_gpu_after_optimizations": _ASYNC.replace("NAME", "fourth"),
    }
    for name, body in texts.items():
        (tmp_path / f"module_0000.m.{name}.txt").write_text(_REDUCED.replace("BODY", body))
    (answer,) = compiler.why(dumps.open(tmp_path).compilations[0], "fourth-start")
    assert [decision.instruction for decision in answer.decisions] == ["second"]


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`hlotext dump why` of a module alone, and `hlotext dump pass` with views."""
    monkeypatch.chdir(ROOT)
    file = tmp_path / "m.txt"
    file.write_text(PROGRAM)
    result = CliRunner().invoke(main, ["dump", "why", str(file), "-i", "t"])
    assert result.exit_code == 0
    assert "copy-insertion" in result.output
    result = CliRunner().invoke(main, ["dump", "why", str(file), "-i", "t", "--format", "json"])
    assert "copy-insertion" in [answer["model"] for answer in json.loads(result.output)["answers"]["t"]]
    assert CliRunner().invoke(main, ["dump", "why", str(file), "-i", "nosuch"]).exit_code == 1
    paths = [f"tests/data/steps/spmd.{when}.txt" for when in ("before", "after")]
    result = CliRunner().invoke(main, ["explain", *paths, "--pass", "spmd-partitioner"])
    assert "per-device shapes" in result.output
    assert "communication added" in result.output
