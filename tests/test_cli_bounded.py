"""Text output is bounded unless asked for more, and says so; documents are complete unless a limit is given."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hlotext.cli import findings, grep
from tests.cli_support import run

LINES = "".join(f"  %x{n} = f32[8]{{0}} add(%p, %missing{n})\n" for n in range(150))
HEAD = "HloModule m\n\nENTRY %e (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
DAMAGED = f"{HEAD}{LINES}  ROOT %r = f32[8]{{0}} negate(%p)\n}}\n"


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "damaged.hlo"
    path.write_text(DAMAGED, "utf-8")
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.hlo"
    lines = "".join(f"  %x{n} = f32[8]{{0}} add(%p, %p)\n" for n in range(150))
    path.write_text(DAMAGED.replace(LINES, lines), "utf-8")
    return path


def test_grep(good: Path) -> None:
    """The first hundred, how many there are, and what shows them all; json has all, or says what is left out."""
    shown = run("grep", "add(...)", good)
    assert (len(shown.stdout.splitlines()), shown.exit_code) == (grep._MOST_SHOWN, 0)
    assert "100 of 150 matches shown (all: --limit 0" in shown.stderr
    assert len(run("grep", "add(...)", good, "--limit", "0").stdout.splitlines()) == 150
    assert len(run("grep", "add(...)", good, "--limit", "7").stdout.splitlines()) == 7
    assert run("grep", "-c", "add(...)", good).stdout.endswith(":150\n")
    document = json.loads(run("grep", "add(...)", good, "--format", "json").stdout)
    assert len(document["matches"]) == 150
    assert "total" not in document
    document = json.loads(run("grep", "add(...)", good, "--format", "json", "--limit", "3").stdout)
    assert (len(document["matches"]), document["total"], document["truncated"]) == (3, 150, True)


def test_check(damaged: Path) -> None:
    """So do findings; the exit status is that of all of them."""
    shown = run("check", damaged)
    assert (shown.stdout.count("error["), shown.exit_code) == (findings.MOST_SHOWN, 1)
    assert "100 of 150 findings shown (all: --limit 0" in shown.stderr
    assert "150 errors" in shown.stderr
    assert run("check", damaged, "--limit", "0").stdout.count("error[") == 150
    document = json.loads(run("check", damaged, "--format", "json").stdout)
    assert len(document["findings"]) == 150
    assert "truncated" not in document
    document = json.loads(run("check", damaged, "--format", "json", "--limit", "2").stdout)
    assert (len(document["findings"]), document["total"], document["truncated"]) == (2, 150, True)
    [sarif] = json.loads(run("check", damaged, "--format", "sarif", "--limit", "2").stdout)["runs"]
    assert (len(sarif["results"]), sarif["properties"]) == (2, {"total": 150, "truncated": True})
    junit = run("check", damaged, "--format", "junit", "--limit", "2")
    assert ET.fromstring(junit.stdout).attrib["failures"] == "2"
    assert "2 of 150 findings" in junit.stdout
    assert junit.exit_code == 1


@pytest.mark.parametrize("command", ["verify", "lint"])
def test_the_other_commands_of_findings(command: str, damaged: Path) -> None:
    """They have the option too."""
    document = json.loads(run(command, damaged, "--format", "json", "--limit", "1").stdout)
    assert len(document["findings"]) <= 1
    assert document["total"] >= len(document["findings"])
