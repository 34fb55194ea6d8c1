"""No error of another kind than documented; and where a check of hlotext fails, that is a finding of its file alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import hlotext as hlo
from hlotext import rewrite
from hlotext.cli import main
from hlotext.ir.errors import EditError
from hlotext.semantics import operation
from hlotext.semantics.infer.errors import ShapeInferenceError
from hlotext.verify import run as verify_run

TEXT = """HloModule {name}

ENTRY e {{
  p = f32[4] parameter(0)
  ROOT r = f32[{size}] {opcode}(p)
}}
"""
GOOD, WRONG, ODD = (
    TEXT.format(name="good", size=4, opcode="negate"),
    TEXT.format(name="wrong", size=5, opcode="negate"),
    TEXT.format(name="odd", size=4, opcode="sine"),
)
RANKS = """HloModule ranks

ENTRY e {
  p = f32[4,4] parameter(0)
  ROOT ag = f32[4,8] all-gather(p), dimensions={1}, replica_groups={}
}
"""


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of sines is broken."""

    def broken(instruction: hlo.Instruction, facts: Any) -> Any:
        if instruction.opcode == "sine":
            raise IndexError("of all things")
        return operation.check_operation(instruction, facts)

    monkeypatch.setattr(verify_run, "check_operation", broken)


def test_a_check_that_fails_is_a_finding(failing: None) -> None:
    (found,) = hlo.verify(hlo.parse(ODD))
    assert (found.code, found.line) == ("X900", 5)
    assert found.message == "the check of sine failed: IndexError: of all things"
    assert "Traceback" in found.help


def test_a_check_of_the_module_that_fails_is_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(verify_run, "_OF_SURVEY", (broken, *verify_run._OF_SURVEY))
    assert [found.code for found in hlo.verify(hlo.parse(WRONG))] == ["X900", "V101"]


def test_the_other_files_go_on(failing: None, tmp_path: Path) -> None:
    paths = []
    for name, text in (("odd", ODD), ("wrong", WRONG), ("good", GOOD)):
        (tmp_path / name).write_text(text)
        paths.append(str(tmp_path / name))
    run = CliRunner().invoke(main, ["verify", "--format", "json", *paths])
    assert run.exit_code == 2
    assert [one["code"] for one in json.loads(run.stdout)["findings"]] == ["X900", "V101"]
    shown = CliRunner().invoke(main, ["verify", *paths])
    assert "Traceback" not in shown.output
    assert "HLOTEXT_DEBUG=1 shows the traceback" in shown.output


@pytest.mark.parametrize("command", ["check", "verify", "show", "cost", "comm"])
def test_an_internal_error_costs_one_file(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In every command that takes several files."""
    paths = []
    for name, text in (("odd", ODD), ("good", GOOD)):
        (tmp_path / name).write_text(text)
        paths.append(str(tmp_path / name))
    read = hlo.parse_tolerant

    def broken(text: str, **options: Any) -> hlo.ParseResult:
        if "sine" in text:
            raise IndexError("of all things")
        return read(text, **options)

    monkeypatch.setattr(hlo, "parse_tolerant", broken)
    run = CliRunner().invoke(main, [command, *paths])
    assert run.exit_code == 2
    assert f"{paths[0]}: internal error: IndexError: of all things" in run.stderr
    assert command in ("check", "verify") or "good" in run.stdout


def test_lint_of_a_file_that_cannot_be_read_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from hlotext.lint import engine, files

    def broken(*_: object) -> None:
        raise IndexError("of all things")

    monkeypatch.setattr(engine, "make_context", broken)
    assert [found.code for found in hlo.lint.run(hlo.parse(GOOD))] == ["X900"]
    monkeypatch.setattr(files, "_lint_place", broken)
    linted = files.lint_file(hlo.lint.Config(), "a").linted
    assert linted is not None
    assert linted.has_failed


def _rank_less() -> hlo.Module:
    module = hlo.parse(RANKS.replace("f32[4,8]", "f32[]"))
    assert [found.code for found in hlo.verify(module)] == ["V102"]
    return module


def _call_of_nothing() -> hlo.Instruction:
    result = hlo.parse_tolerant(TEXT.format(name="c", size=4, opcode="call"))
    assert result.module is not None
    return result.module.entry.root


def _infer_rank_less() -> None:
    hlo.infer_shape(_rank_less().entry.root)


def _infer_of_a_scalar() -> None:
    module = hlo.parse(RANKS.replace("f32[4,4]", "f32[]").replace("f32[4,8]", "f32[]"))
    hlo.infer_shape(module.entry.root)


def _set_rank_less() -> None:
    hlo.parse(RANKS).entry.root.shape = hlo.parse_shape("f32[]")


def _inline_nothing() -> None:
    rewrite.inline(_call_of_nothing())


def _bad_layout() -> None:
    rewrite.change_entry_layout(hlo.parse(GOOD), {0: "{0"})


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (_infer_rank_less, ShapeInferenceError),
        (_infer_of_a_scalar, ShapeInferenceError),
        (_set_rank_less, EditError),
        (_inline_nothing, EditError),
        (_bad_layout, EditError),
    ],
)
def test_errors_are_of_the_documented_kind(act: Callable[[], None], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        act()


def test_a_page_is_utf_8_whatever_the_system_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(GOOD)
    run = CliRunner(charset="cp1252").invoke(main, ["graph", str(tmp_path / "a.hlo"), "-o", "-"])
    assert run.exit_code == 0, run.output
    assert "charset" in run.stdout_bytes.decode("utf-8")
