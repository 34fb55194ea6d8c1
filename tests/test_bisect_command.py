"""`hlotext bisect`: which pass, flag or environment makes a command fail."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from hlotext.execution.narrowing import Verdict, first_bad, smallest
from tests.cli_support import run

CHECK = """
import os, sys
flags = os.environ["XLA_FLAGS"]
off = {name for word in flags.split() if "disable" in word for name in word.partition("=")[2].split(",")}
sys.exit(%s)
"""


def script(tmp_path: Path, status: str) -> tuple[str, ...]:
    path = tmp_path / "check.py"
    path.write_text(CHECK % status)
    return "--", sys.executable, str(path)


def folder(tmp_path: Path) -> Path:
    place = tmp_path / "dumps"
    place.mkdir()
    for number, name in enumerate(("algsimp", "cse", "dce", "fusion", "reshape-mover")):
        path = place / f"module_0000.jit_f.{number:04d}.simplification.after_{name}.before_next.txt"
        path.write_text(
            "HloModule jit_f\n\nENTRY %e (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n"
        )
    return place


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ("0 if 'cse' in off else 1", ["cse"]),
        ("0 if {'algsimp', 'fusion'} <= off else 3", ["algsimp", "fusion"]),
        ("125 if 'dce' in off and 'cse' not in off else 0 if 'cse' in off else 1", ["cse"]),
    ],
)
def test_passes(tmp_path: Path, status: str, found: list[str]) -> None:
    """One, two that only help together, and where some sets do not compile."""
    result = run("bisect", "--passes", folder(tmp_path), "--format", "json", *script(tmp_path, status))
    assert json.loads(result.stdout)["found"] == found


def test_nothing_to_find(tmp_path: Path) -> None:
    """A command that never fails, and one that always does."""
    place = folder(tmp_path)
    assert run("bisect", "--passes", place, *script(tmp_path, "0")).exit_code == 1
    assert run("bisect", "--passes", place, *script(tmp_path, "1")).exit_code == 1
    assert run("bisect", *script(tmp_path, "1")).exit_code == 2


def test_flags(tmp_path: Path) -> None:
    """As texts and as files; a flag that is missing is a change too."""
    bad = tmp_path / "bad.txt"
    bad.write_text("--xla_a=2\n--xla_c=1  # new\n")
    check = script(tmp_path, "'--xla_c=1' in flags and '--xla_b' not in flags")
    result = run("bisect", "--flags", "--xla_a=1 --xla_b=1", str(bad), "--format", "json", *check)
    assert json.loads(result.stdout)["found"] == ["without --xla_b=1", "--xla_c=1"]


def test_environments(tmp_path: Path) -> None:
    """The first that is bad, by halving."""
    places = []
    for number in range(5):
        place = tmp_path / f"venv{number}" / "bin"
        place.mkdir(parents=True)
        os.symlink(sys.executable, place / "python")
        places += ["--python", str(place.parent)]
    words = ("--", "sh", "-c", "case {python} in *venv[34]*) exit 1;; esac")
    result = run("bisect", *places, "--format", "json", *words)
    assert [Path(place).name for place in json.loads(result.stdout)["found"]] == ["venv3"]
    assert run("bisect", "--python", tmp_path, *words).exit_code == 2


def test_skipped_neighbours_stand_between() -> None:
    def verdict(n: int) -> Verdict:
        return Verdict.SKIP if n == 2 else Verdict.BAD if n > 2 else Verdict.GOOD

    found = first_bad(range(5), verdict)
    assert (found.good, found.bad) == (1, 3)
    with pytest.raises(ValueError, match="the first is bad"):
        first_bad(range(3), lambda _: Verdict.BAD)


def test_a_smallest_set_of_many() -> None:
    """Found in few runs, and each of it is needed."""
    found = smallest(
        300, lambda some: Verdict.GOOD if {7, 150, 299} <= set(some) else Verdict.BAD, Verdict.GOOD
    )
    assert found.chosen == (7, 150, 299)
    assert found.tests < 300
