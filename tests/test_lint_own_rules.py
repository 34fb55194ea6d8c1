"""Rules of a project's own, in a Python file that `--rules` or the settings name."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlotext import lint
from hlotext.lint import registry
from tests.cli_support import run

RULES = '''
"""Rules of this project."""

import attrs
from hlotext import lint

@attrs.frozen
class NoSine(lint.Rule):
    """A sine has no place here."""

    code = "Z001"
    name = "no-sine"
    title = "A sine"
    opcodes = frozenset({"sine"})

    def check(self, instruction, context):
        yield lint.Report(instruction, "sine of the program")
'''
MODULE = "HloModule m\n\nENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] sine(a)\n}\n"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Files of rules are known for the whole process; here each test has its own."""
    yield
    registry._of_files.clear()
    registry.all_rules.cache_clear()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "rules.py").write_text(RULES)
    (tmp_path / "module.hlo").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_of_rules(project: Path) -> None:
    result = run("lint", "module.hlo", "--isolated", "--rules", "ci/rules.py", "--select", "Z")
    assert "Z001" in result.stdout
    assert "sine of the program" in result.stdout
    assert run("lint", "module.hlo", "--isolated", "--rules", "ci/rules.py", "--ignore", "Z001").stdout == ""


def test_settings_name_it_beside_themselves(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "hlotext.toml").write_text('[lint]\nrule-files = ["ci/rules.py"]\n')
    monkeypatch.chdir(project / "ci")
    assert "Z001" in run("lint", "../module.hlo").stdout
    assert "Z001" not in run("lint", "../module.hlo", "--isolated").stdout


def test_what_is_linted_brings_no_rules(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings and rules beside a module that somebody sent are not taken."""
    (project / "hlotext.toml").write_text('[lint]\nrule-files = ["ci/rules.py"]\n')
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert "Z001" not in run("lint", project).stdout
    assert "Z001" not in run("lint", project / "module.hlo").stdout


def test_several_processes_know_it(project: Path) -> None:
    for number in range(4):
        (project / f"{number}.hlo").write_text(MODULE)
    result = run("lint", project, "--isolated", "--rules", "ci/rules.py", "-j", "2", "--format", "concise")
    assert result.stdout.count("Z001") == 5


def test_a_configuration_brings_it_to_another_process(project: Path) -> None:
    data = pickle.dumps(lint.Config(rule_files=(project / "ci" / "rules.py",)))
    registry._of_files.clear()
    registry.all_rules.cache_clear()
    assert "Z001" in [rule.code for rule in pickle.loads(data).active_rules()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "holds no subclass"),
        ("1 / 0\n", "ZeroDivisionError"),
        (RULES.replace("Z001", "C101"), "begins with Z"),
        (RULES.replace("Z001", "Z1"), "three digits"),
        (
            RULES + RULES.split('"""Rules of this project."""')[1].replace("NoSine", "Other"),
            "which another rule has",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line(project: Path, text: str, said: str) -> None:
    (project / "ci" / "rules.py").write_text(text)
    result = run("lint", "module.hlo", "--isolated", "--rules", "ci/rules.py")
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    # The next file is not spoiled by it.
    (project / "right.py").write_text(RULES)
    assert "Z001" in run("lint", "module.hlo", "--isolated", "--rules", "right.py").stdout


def test_a_file_that_is_not_there(project: Path) -> None:
    assert "nosuch.py does not exist" in run("lint", "module.hlo", "--rules", "nosuch.py").stderr
