"""Taking in a release of XLA: what it has that hlotext does not know is said, and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.xla_release import __main__ as command
from tests.xla_release import records
from tests.xla_release.survey import Survey, survey, total

KNOWN = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %negate = f32[8]{0} negate(%p)
}
"""
FILES = {
    "module_0001.jit_f.before_optimizations.txt": KNOWN,
    "module_0001.jit_f.0001.simplification.after_algsimp.before_dce.txt": KNOWN,
    "module_0001.jit_f.cpu_after_optimizations.txt": KNOWN,
}
NEW = {
    "module_0001.jit_f.0002.moonlighting.after_moonbeam.before_dce.txt": KNOWN.replace(
        "negate(%p)", "moonwalk(%p)"
    ),
    "module_0001.jit_f.moon-phases.bin": "",
}


def made_up(folder: Path, files: dict[str, str]) -> Path:
    """A folder as the compiling half leaves it."""
    (folder / "dump").mkdir(parents=True)
    for name, text in files.items():
        (folder / "dump" / name).write_text(text, encoding="utf-8")
    (folder / "compiled.as_text").write_text(KNOWN, encoding="utf-8")
    cost = {"flops": 8.0, "transcendentals": 0.0, "bytes accessed": 64.0}
    facts = {"jax": "0.12.0.1", "platform": "cpu", "cost": cost}
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    return folder


def test_a_known_release_has_no_news(tmp_path: Path) -> None:
    found = Survey()
    survey(made_up(tmp_path, FILES), found)
    assert not found.news
    scores = total(found.scores, found.scores)
    assert set(scores) == {"texts", "cost"}
    assert all(right == of for right, of in scores.values())


def test_an_unknown_opcode_file_and_pipeline_are_named(tmp_path: Path) -> None:
    found = Survey()
    survey(made_up(tmp_path, FILES | NEW), found)
    assert {(news.kind, news.name) for news in found.news.values()} == {
        ("opcode", "opcode moonwalk is unknown to this release"),
        ("pipeline", "moonlighting/moonbeam"),
        ("file", "module_0001.jit_f.moon-phases.bin"),
    }


@pytest.mark.parametrize(("files", "status"), [(FILES, 0), (FILES | NEW, 1)], ids=["nothing new", "new"])
def test_exit_status(
    files: dict[str, str],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is new is printed and makes the command fail."""
    made_up(tmp_path / "99.0" / "cpu" / "program", files)
    monkeypatch.setattr(command, "installed", lambda *_: sys.executable)
    monkeypatch.setattr(command, "jobs", lambda *_: [("program", "cpu:1")])
    monkeypatch.setattr(records, "load", dict)
    monkeypatch.setattr(sys, "argv", ["xla_release", "99.0", "--platform", "cpu", "--keep", str(tmp_path)])
    assert command.main() == status
    printed = capsys.readouterr().out
    assert ("moonwalk" in printed) == bool(status)


def test_a_pass_or_a_worse_answer_than_before_is_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are compared over the programs that both releases compiled: here not those of `other`."""
    before = {"sorting": {"memory": [9, 10], "texts": [5, 5]}, "left": {"texts": [9, 9]}}
    monkeypatch.setattr(
        records, "load", lambda: {"0.12.0.1": {"cpu": {"programs": before, "passes": ["algsimp"]}}}
    )
    found = Survey(passes={"algsimp", "moonbeam"})
    found.scores = {"sorting": {"memory": [8, 10], "texts": [7, 7]}, "other": {"texts": [0, 9]}}
    assert list(records.news("0.13.0", "cpu", found)) == [
        ("moonbeam", "pass"),
        ("memory: 8 of 10, was 9 of 10", "model"),
    ]
    assert not list(records.news("0.13.0", "tpu", found))


def test_the_release_before_is_what_a_release_is_compared_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """An older release that is surveyed late is not measured by a newer one."""
    of = {
        v: {"cpu": {"programs": {"sorting": {"memory": [n, 10]}}, "passes": []}}
        for v, n in (("0.11.2", 7), ("0.13.0", 9))
    }
    monkeypatch.setattr(records, "load", lambda: of)
    found = Survey(scores={"sorting": {"memory": [8, 10]}})
    assert not list(records.news("0.12.0.1", "cpu", found))


def test_what_is_not_xlas_answer_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = Survey(program="sorting")
    found.score("passes", True, "module_0001.0002.algsimp.txt")
    found.score("passes", False, "module_0001.0003.cse.txt")
    command.report("0.13.0", "cpu", found)
    printed = capsys.readouterr().out
    assert "passes 1 of 2" in printed
    assert "not XLA's passes: sorting: module_0001.0003.cse.txt" in printed
    assert "algsimp" not in printed
