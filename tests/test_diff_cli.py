"""`hlotext diff`, and the same question in pytest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import hlotext as hlo
from hlotext.testing import Hlo
from tests import support
from tests.cli_support import run, run_json
from tests.diff_cases import Seeder
from tests.dump_cases import DUMPS
from tests.support import CORPUS

OLD = CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """The same with a copy more."""
    seeded = Seeder(OLD.read_text(), Random(0)).seed("copy")
    assert seeded is not None
    path = tmp_path / "new.txt"
    path.write_text(seeded[0])
    return path


def test_equal_and_different(new: Path) -> None:
    """Exit status, and what is said."""
    result = run("diff", OLD, OLD)
    assert result.exit_code == 0
    assert "equal, ignoring names, ids" in result.stdout
    result = run("diff", OLD, new)
    assert result.exit_code == 1
    assert "1 added" in result.stdout
    assert "copy.zz" in result.stdout
    for by in ("scope", "computation"):
        assert run("diff", OLD, new, "--by", by).exit_code == 1
    assert "copy.zz" in run("diff", OLD, new, "--full").stdout


def test_bounds(new: Path) -> None:
    """Only what grows too much fails."""
    assert run("diff", OLD, new, "--fail-on", "collectives+0,flops+1%").exit_code == 0
    result = run("diff", OLD, new, "--fail-on", "copy+0,collectives+0")
    assert result.exit_code == 1
    assert "copy+0 is exceeded" in result.stderr
    result = run("diff", OLD, new, "--fail-on", "nonsense+0")
    assert result.exit_code == 2
    assert "no metric is named 'nonsense'" in result.stderr
    assert run("diff", OLD, new, "--fail-on", "bytes*2").exit_code == 2


def test_formats(new: Path) -> None:
    """For programs, pull requests and GitHub's log."""
    result = run("diff", OLD, new, "--format", "json")
    facts = json.loads(result.stdout)
    assert not facts["is_equal"]
    ((change),) = facts["changes"]
    assert (change["kind"], change["name"], change["opcode"]) == ("added", "copy.zz", "copy")
    assert facts["totals"]["copy"]["difference"] == 1
    assert "| total | before | after | difference |" in run("diff", OLD, new, "--format", "markdown").stdout
    github = run("diff", OLD, new, "--format", "github", "--fail-on", "copy+0").stdout
    assert github.startswith("::error title=hlotext diff::copy+0 is exceeded")
    assert f"::notice file={new},line={change['line']},title=hlotext diff::added copy.zz" in github


def test_nothing_of_a_module_acts(tmp_path: Path) -> None:
    """Names are foreign text."""
    text = 'HloModule m\n\nENTRY e {\n  ROOT p = f32[] custom-call(), custom_call_target="%s"\n}\n'
    for name, target in (("a", "x"), ("b", "|<b>\\n::error::x\\033[31m")):
        (tmp_path / name).write_text(text % target)
    for style in ("text", "markdown", "github"):
        out = run("diff", tmp_path / "a", tmp_path / "b", "--format", style, "--full").stdout
        assert "\x1b" not in out
        assert "<b>" not in out or style != "markdown"
        assert not any(line.startswith("::error") for line in out.splitlines())


def test_golden(tmp_path: Path, new: Path) -> None:
    """Written once, compared ever after."""
    golden = tmp_path / "golden.hlo"
    assert run("diff", OLD, "--write-golden", golden).exit_code == 0
    assert run("diff", golden, OLD).exit_code == 0
    assert run("diff", golden, new).exit_code == 1
    assert run("diff", golden, new, "--write-golden", golden).exit_code == 2


def test_both_ends_of_a_folder() -> None:
    """Before optimization and after."""
    result = run("diff", DUMPS / "cpu.callback_pure.tar.xz")
    assert result.exit_code in (0, 1)
    assert "jit_f -> jit_f" in result.stdout
    assert run("diff", OLD).exit_code == 2
    assert run("diff", OLD, "nowhere.txt").exit_code == 2


def test_in_pytest(hlo: Callable[..., Hlo], new: Path) -> None:
    """The fixture asserts the same, against modules and golden files."""
    module = hlo(OLD)
    module.assert_same(OLD)
    with pytest.raises(AssertionError, match="1 x added: copy of"):
        hlo(new).assert_same(OLD)
    hlo(new).assert_same(OLD, "collectives+0")
    with pytest.raises(AssertionError, match=r"copy\+0 is exceeded"):
        hlo(new).assert_same(OLD, "copy+0")


def test_json_of_equal_modules() -> None:
    """All figures are there."""
    facts = run_json("diff", OLD, OLD)
    assert facts["is_equal"]
    assert facts["totals"]["collectives"]["difference"] == 0


def test_what_is_in_no_scope_is_no_header() -> None:
    """Operations outside all scopes stand at the top level."""
    old = hlo.parse("HloModule m\n\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n")
    line = '  ROOT n = f32[2] negate(p), metadata={op_name="jit(f)/neg"}'
    new = hlo.parse(f"HloModule m\n\nENTRY e {{\n  p = f32[2] parameter(0)\n{line}\n}}\n")
    assert len(hlo.diff.compare(old, new).by_scope()["(top level)"]) == 1


def test_one_rename_is_one(tmp_path: Path) -> None:
    """And no plural of it."""
    paths = []
    for name, last in (("a", "cosine"), ("b", "negate")):
        paths.append(tmp_path / f"{name}.txt")
        paths[-1].write_text(
            f"HloModule m\n\nENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n  {name} = f32[8]{{0}} sine(p)\n"
            f"  ROOT r = f32[8]{{0}} {last}({name})\n}}\n"
        )
    assert "1 operation renamed only" in run("diff", *paths).stdout


SMALL = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[8]{0} parameter(0)
  q = f32[4096]{0} parameter(1)
  ROOT t = (f32[8]{0}, f32[4096]{0}) tuple(p, q)
}
"""
MORE = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[8]{0} parameter(0)
  q = f32[4096]{0} parameter(1)
  a = f32[8]{0} negate(p)
  b = f32[8]{0} negate(a)
  c = f32[8]{0} negate(b)
  s = f32[4096]{0} sine(q)
  ROOT t = (f32[8]{0}, f32[4096]{0}) tuple(c, s)
}
"""


def test_changes_are_listed_by_their_bytes_and_platforms_are_said(tmp_path: Path) -> None:
    """Three small operations weigh less than a large one."""
    old, new, tpu = (tmp_path / name for name in ("old.txt", "new.txt", "tpu.txt"))
    old.write_text(SMALL)
    new.write_text(MORE)
    tpu.write_text(MORE.replace("]{0}", "]{0:T(256)}"))
    lines = [line.split() for line in run("diff", old, new).stdout.splitlines()]
    added = [line for line in lines if line[:1] == ["added:"]]
    assert added[0][1] == "sine"
    assert "platforms" not in run("diff", old, new).stdout
    second = run("diff", old, tpu).stdout.splitlines()[1]
    assert second == "  compiled for different platforms: CPU -> TPU"
    assert json.loads(run("diff", old, tpu, "--format", "json").stdout)["platforms"] == ["CPU", "TPU"]


def test_a_golden_file_has_the_donations_of_its_module(tmp_path: Path) -> None:
    """It lacks the names of arguments: their numbers tell which is which."""
    text = support.ROOT / "corpus/tpu/data_parallel.v5e_2x2x1.after_codegen.txt"
    golden = tmp_path / "golden.hlo"
    assert run("diff", text, "--write-golden", golden).exit_code == 0
    result = run("diff", golden, text)
    assert (result.exit_code, "donat" in result.stdout) == (0, False)
    changed = tmp_path / "changed.txt"
    changed.write_text(text.read_text().replace("{0}: (0, {}, may-alias), ", ""))
    assert "no longer donated in argument" in run("diff", golden, changed).stdout
