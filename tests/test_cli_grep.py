"""`hlotext grep`: lines, captures, explanations, exit statuses."""

from __future__ import annotations

from tests import support
from tests.cli_support import run, run_json

FILE = support.CORPUS / "cpu" / "mlp_forward.cpu_1.before_optimizations.txt"


def test_lines() -> None:
    result = run("grep", "%x = $S dot(%a, parameter()), rhs_contracting_dims={0}", FILE)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.startswith(f"{FILE}:") and " dot(" in line for line in lines)


def test_captures_as_json() -> None:
    (match, *_) = run_json("grep", "$S dot(%a, %b)", FILE)["matches"]
    assert match["captures"].keys() == {"S", "a", "b"}
    assert match["line"] > 1
    assert match["text"].startswith(f"%{match['instruction']} = {match['captures']['S']} dot(")


def test_why_not() -> None:
    result = run("grep", "dot(dot(...), ...)", "--why", "%dot_general.5", FILE)
    assert result.stdout == f"{FILE}: operand 0 of dot_general.5, jit_relu_.3: the opcode is call, not dot\n"


def test_nothing_found() -> None:
    assert run("grep", "all-gather(...)", FILE).exit_code == 1


def test_what_is_no_pattern() -> None:
    result = run("grep", "add(", FILE)
    assert result.exit_code == 2
    assert "expected an opcode" in result.stderr
