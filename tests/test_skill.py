"""The pages for agents: every command line in them runs, within its bound, and names what exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from hlotext.cli import COMMANDS
from hlotext.cli.skill import pages_of_skill
from tests.agent_questions import DUMP, QUESTIONS, Question
from tests.cli_support import run
from tests.dump_cases import unpacked
from tests.support import ROOT

PAGES = pages_of_skill()
LINES = [
    (name, line)
    for name, text in PAGES.items()
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
]
MOST = 12_000


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(DUMP, tmp_path_factory.mktemp("skill"))


@pytest.mark.parametrize(("page", "line"), LINES, ids=[line[:60] for _, line in LINES])
def test_lines(page: str, line: str, dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each prints something, in its bound."""
    if "xplane" in line:
        pytest.importorskip("google.protobuf")
    monkeypatch.chdir(ROOT)
    words = [str(dump) if word == "DUMP" else word for word in shlex.split(line)]
    assert words[0] == "hlotext"
    result = run(*words[1:])
    assert result.exit_code in (0, 1), result.stderr
    assert 0 < len(result.stdout) <= MOST


def test_pages() -> None:
    """The first page is short and leads to all others; commands that are named exist."""
    first = PAGES["SKILL.md"]
    assert len(first.splitlines()) < 150
    assert first.startswith("---\nname: hlotext\ndescription: ")
    assert set(re.findall(r"\]\((\w+\.md)\)", first)) == set(PAGES) - {"SKILL.md"}
    named = {name for text in PAGES.values() for name in re.findall(r"`hlotext ([a-z]+)", text)}
    assert named <= set(COMMANDS)
    # Each page has a command line that is run, but for the first, whose commands stand in the others.
    assert {page for page, _ in LINES} == set(PAGES) - {"SKILL.md"}


def shape_of(line: str) -> tuple[str, frozenset[str]]:
    """The command of a line, with a subcommand of `dump`, and its options."""
    words = shlex.split(line)
    options = frozenset(word for word in words if re.fullmatch(r"-[a-z]|--[a-z-]+", word))
    return " ".join(words[: 2 if words[0] in ("dump", "help") else 1]), options


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_questions_need_nothing_else(question: Question) -> None:
    """The command lines that answer the twenty questions are among those of the pages, with other names and bounds."""
    taught = [
        shape_of(line) for page in PAGES.values() for line in re.findall(r"hlotext ([a-z][^`\n]*)", page)
    ]
    for line in question.lines:
        command, options = shape_of(line)
        assert any(command == one and options - {"--limit"} <= known for one, known in taught), line


def test_command(tmp_path: Path) -> None:
    """Copies the pages, and replaces none unasked."""
    place = Path(run("skill").stdout.strip())
    assert {path.name for path in place.glob("*.md")} == set(PAGES)
    target = tmp_path / "skills" / "hlotext"
    assert run("skill", target).exit_code == 0
    assert {path.name: path.read_text("utf-8") for path in target.iterdir()} == PAGES
    (target / "SKILL.md").write_text("mine", "utf-8")
    again = run("skill", target)
    assert again.exit_code == 2
    assert "overwrite with --force" in again.stderr
    assert (target / "SKILL.md").read_text("utf-8") == "mine"
    assert run("skill", target, "--force").exit_code == 0
    assert (target / "SKILL.md").read_text("utf-8") == PAGES["SKILL.md"]
