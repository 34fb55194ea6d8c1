"""The README's Python sessions run, and its first screen holds the commands that CI pastes."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from hlotext.cli import COMMANDS
from tests import support

README = (support.ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_python_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the README shows is what one gets, run as one session in the root of the project."""
    monkeypatch.chdir(support.ROOT)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks("pycon")), {}, "README.md", "README.md", 0)
    report: list[str] = []
    results = doctest.DocTestRunner().run(session, out=report.append)
    assert results.attempted > 10
    assert not results.failed, "".join(report)


@pytest.mark.slow
def test_python_sessions_are_typed(tmp_path: Path) -> None:
    """They pass mypy's strict checks as they stand: nothing needs an assertion or a cast."""
    api = pytest.importorskip("mypy.api")
    examples = doctest.DocTestParser().get_examples("\n".join(blocks("pycon")))
    place = tmp_path / "session.py"
    place.write_text("".join(one.source for one in examples), encoding="utf-8")
    said, wrong, status = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(place)])
    assert status == 0, said + wrong


def test_the_first_screen_holds_both_commands() -> None:
    """Installing and the main job, then the tests: two sh blocks, before anything is explained at length."""
    main_job, tests = blocks("sh")[:2]
    assert "hlotext show corpus/tpu/" in main_job
    assert "-m pytest" in tests
    assert len(README[: README.index(tests)].splitlines()) < 30


def test_it_is_short() -> None:
    """At most 150 lines, and commands that it names exist."""
    assert len(README.splitlines()) <= 150
    named = set(re.findall(r"`hlotext (\w+)", README))
    assert len(named) > 10
    assert named <= set(COMMANDS)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_links_lead_somewhere(target: str) -> None:
    """Links in the README are to files and folders of the project."""
    assert (support.ROOT / target).exists()
