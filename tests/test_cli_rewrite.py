"""`hlotext rewrite`, `passes`, `extract` and `reduce`: output, exit statuses, bad input."""

from __future__ import annotations

import sys
from pathlib import Path

import hlotext as hlo
from tests import support
from tests.cli_support import run, run_json

FILE = support.CORPUS / "cpu" / "mlp_forward.cpu_1.before_optimizations.txt"
TEXT = "ENTRY e {\n  x = f32[] parameter(0)\n  y = f32[] sine(x)\n  z = f32[] cosine(x)\n  ROOT r = f32[] negate(y)\n}\n"


def test_rewrite_keeps_what_no_pass_touched() -> None:
    result = run("rewrite", "-p", "dce,cse,algsimp{max_iterations=10}", "--stats", "-", input=TEXT)
    assert result.exit_code == 0
    assert result.stdout == TEXT.replace("  z = f32[] cosine(x)\n", "")
    assert "dce: 1 instructions (" in result.stderr


def test_rewrite_in_place_and_dumps(tmp_path: Path) -> None:
    file = tmp_path / "module.txt"
    file.write_text(TEXT)
    assert run("rewrite", "-i", "-p", "dce", "--dump-to", tmp_path / "dumps", file).exit_code == 0
    assert "cosine" not in file.read_text()
    assert len(list((tmp_path / "dumps").iterdir())) == 2


def test_rewrite_says_what_is_wrong() -> None:
    unknown = run("rewrite", "-p", "nothing", FILE)
    assert (unknown.exit_code, "no pass nothing" in unknown.stderr) == (2, True)
    failed = run(
        "rewrite", "-p", "layout-normalization", "-", input="ENTRY e { ROOT x = f32[2] parameter(0) }"
    )
    assert (failed.exit_code, "requires that every array has a layout" in failed.stderr) == (1, True)


def test_passes() -> None:
    assert "algsimp" in run("passes").stdout
    assert "HloCSE" in run("passes", "cse").stdout
    assert run("passes", "nothing").exit_code == 2
    (found,) = run_json("passes", "dce")["passes"]
    assert found["options"] == {"computations": True}


def test_extract() -> None:
    result = run("extract", FILE, "-i", "dot_general.5", "--depth", "1")
    assert result.exit_code == 0
    assert [i.opcode for i in hlo.parse(result.stdout).entry] == ["parameter", "parameter", "dot"]
    assert run("extract", FILE, "-i", "nothing").exit_code == 1


def test_extract_is_bounded_unless_all_is_asked_for() -> None:
    """A result of a long chain comes with the operands that are near; the chain itself is asked for."""
    lines = "".join(f"  x{n} = f32[4] negate(x{n - 1})\n" for n in range(1, 100))
    text = (
        f"HloModule m\n\nENTRY e {{\n  x0 = f32[4] parameter(0)\n{lines}  ROOT y = f32[4] negate(x99)\n}}\n"
    )
    near = hlo.parse(run("extract", "-", "-i", "y", input=text).stdout)
    assert len(near.entry) == len(
        hlo.parse(run("extract", "-", "-i", "y", "--depth", "3", input=text).stdout).entry
    )
    assert len(near.entry) < 10
    assert len(hlo.parse(run("extract", "-", "-i", "y", "--whole", input=text).stdout).entry) == 101


def test_reduce(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text("import sys\nsys.exit('sine(' in open(sys.argv[1]).read())\n")
    file = tmp_path / "module.txt"
    file.write_text(TEXT)
    result = run("reduce", file, "--", sys.executable, script)
    assert result.exit_code == 0
    assert [i.opcode for i in hlo.parse(result.stdout).entry] == ["parameter", "sine"]
    assert run("reduce", FILE, "--", sys.executable, script).exit_code == 1
