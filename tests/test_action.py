"""The composite action: its inputs go through the environment alone, and its steps do what they say with a made-up GitHub."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import support
from tests.test_builds import GATHER, program

yaml = pytest.importorskip("yaml")

FOLDER = support.ROOT / ".github" / "actions" / "hlotext"
ACTION: dict[str, Any] = yaml.safe_load((FOLDER / "action.yml").read_text("utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
_GH = """#!/bin/bash
printf '%s\\n' "$*" >> "$CALLS"
case "$*" in *--jq*) cat "$KNOWN" ;; esac
"""


def test_inputs_are_no_part_of_scripts() -> None:
    """An input in `run:` would be code; each is declared, described and handed over as a variable."""
    assert ACTION["runs"]["using"] == "composite"
    for step in STEPS.values():
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
    used = set(re.findall(r"inputs\.([\w-]+)", str([step.get("env") for step in STEPS.values()])))
    assert used == set(ACTION["inputs"])
    assert all(one["description"] for one in ACTION["inputs"].values())


def env_of(step: dict[str, Any], given: dict[str, str]) -> dict[str, str]:
    """The variables of a step, as GitHub fills them in."""
    values = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()} | given
    return {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: values[match[1]], text)
        for name, text in step.get("env", {}).items()
    }


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("known", ["", "77\n"], ids=["new", "sticky"])
def test_a_night_that_got_worse(tmp_path: Path, known: str) -> None:
    """Three builds by the action itself: the last fails, with a page, a summary, and one comment that is replaced."""
    bin_, calls, told = tmp_path / "bin", tmp_path / "calls", tmp_path / "known"
    bin_.mkdir()
    told.write_text(known)
    (bin_ / "gh").write_text(_GH)
    (bin_ / "hlotext").write_text(f'#!/bin/bash\nexec "{sys.executable}" -m hlotext "$@"\n')
    for one in bin_.iterdir():
        one.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "PYTHONPATH": str(support.ROOT),
        "GITHUB_ACTION_PATH": str(FOLDER),
        "GITHUB_REPOSITORY": "owner/project",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "CALLS": str(calls),
        "KNOWN": str(told),
    }
    statuses = []
    for build in ("2026-01-01", "2026-01-02", "2026-01-03"):
        dumps = tmp_path / "dumps"
        dumps.mkdir(exist_ok=True)
        text = program(GATHER if build.endswith("3") else "")
        (dumps / "train.after_optimizations.txt").write_text(text)
        given = {"path": str(dumps), "build": build, "dataset": str(tmp_path / "tables"), "comment": "12"}
        given |= {"fail-on": "any", "page": str(tmp_path / "page.html"), "token": "secret"}
        for name in ("tables", "report"):
            step = STEPS[name]
            done = subprocess.run(
                ["bash", "-c", step["run"]],
                cwd=tmp_path,
                env=environment | env_of(step, given),
                capture_output=True,
                text=True,
            )
        statuses.append(done.returncode)
        assert done.returncode <= 1, done.stderr
    assert statuses == [0, 0, 1]
    assert "all-gather" in (tmp_path / "page.html").read_text("utf-8")
    assert "bytes sent" in (tmp_path / "summary").read_text("utf-8")
    changes = [line for line in calls.read_text().splitlines() if "--method" in line]
    assert len(changes) == 3
    way = "--method PATCH repos/owner/project/issues/comments/77" if known else "--method POST"
    assert all(way in line for line in changes)
