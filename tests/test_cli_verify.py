"""`hlotext verify` and `hlotext help rule`: formats, exit statuses, what counts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.reports.human import coloured
from hlotext.syntax.source import codes as syntax_codes
from hlotext.verify.codes import CODES
from tests import support
from tests.cli_support import run, run_process

WRONG = """ENTRY e {
  x = f32[4]{0} parameter(0)
  y = f32[5]{0} parameter(1)
  ROOT z = f32[4]{0} add(x, y), metadata={op_name="sum, of: both"}
}
"""
RIGHT = "ENTRY e {\n  x = f32[4]{0} parameter(0)\n  ROOT y = f32[4]{0} negate(x)\n}\n"
NOTED = f"unused {{\n  ROOT p = f32[] parameter(0)\n}}\n\n{RIGHT}"
UNREADABLE = "ENTRY e {\n  x = f32[4]{0} parameter(0\n}\n"
FINAL = "ENTRY e {\n  x = f32[2,3]{1,0} parameter(0)\n  ROOT t = (f32[2,3]{0,1}) tuple(x)\n}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One file of each sort."""
    for name, text in (
        ("wrong", WRONG),
        ("right", RIGHT),
        ("noted", NOTED),
        ("unreadable", UNREADABLE),
        ("final", FINAL),
    ):
        (tmp_path / f"{name}.hlo").write_text(text)
    return tmp_path


# ---- exit status


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (["right"], 0),
        (["noted"], 0),
        (["wrong"], 1),
        (["right", "wrong"], 1),
        (["unreadable"], 2),
        (["wrong", "unreadable"], 2),
        (["missing"], 2),
        (["missing", "right"], 2),
    ],
)
@pytest.mark.parametrize("form", ["text", "json", "github", "sarif"])
def test_exit_status(folder: Path, names: list[str], status: int, form: str) -> None:
    result = run("verify", "--format", form, *(folder / f"{name}.hlo" for name in names))
    assert result.exit_code == status


def test_a_missing_file_is_named(folder: Path) -> None:
    """The others are looked at all the same."""
    result = run("verify", folder / "missing.hlo", folder / "wrong.hlo")
    assert "missing.hlo does not exist" in result.stderr
    assert "V102" in result.stdout


def test_usage_error(folder: Path) -> None:
    assert run("verify").exit_code == 2
    assert run("verify", "--format", "xml", folder / "right.hlo").exit_code == 2


# ---- formats


def test_text(folder: Path) -> None:
    """The line with a caret, the operands, and on standard error a line that counts."""
    path = folder / "wrong.hlo"
    result = run("verify", path, folder / "noted.hlo")
    assert result.stdout.startswith(
        f"{path}:4:22: error[V102]: add of different sizes: f32[4] and f32[5]\n"
        '  4 |   ROOT z = f32[4]{0} add(x, y), metadata={op_name="sum, of: both"}\n'
        "    |                      ^^^\n"
        f"{path}:2:3: operand 0 is f32[4]{{0}}\n"
    )
    assert "note[V309]" in result.stdout
    assert result.stderr == "hlotext: 1 error, 1 note in 2 files\n"
    assert "\x1b" not in result.stdout


def test_quiet(folder: Path) -> None:
    """No notes and no counting."""
    result = run("verify", "--quiet", folder / "noted.hlo", folder / "right.hlo")
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)


def test_colour_on_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words; only on a terminal, and not against the user's will."""
    plain = run("verify", folder / "wrong.hlo").stdout
    monkeypatch.setattr("hlotext.cli.findings.is_colourful", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = run("verify", folder / "wrong.hlo").stdout
    assert "\x1b[1;31merror[V102]" in shown
    assert _without_codes(shown) == plain


def _without_codes(text: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_json(folder: Path) -> None:
    path = folder / "wrong.hlo"
    report = json.loads(run("verify", "--format", "json", path, folder / "noted.hlo").stdout)
    assert report["files"] == [str(path), str(folder / "noted.hlo")]
    assert report["summary"] == {"errors": 1, "warnings": 0, "notes": 1}
    first = report["findings"][0]
    assert (first["code"], first["severity"], first["line"], first["column"]) == ("V102", "error", 4, 22)
    assert (first["computation"], first["instruction"], first["op_name"]) == ("e", "z", "sum, of: both")
    assert [place["line"] for place in first["related"]] == [2, 3]


def test_github(folder: Path) -> None:
    """One workflow command for each finding, commas and colons escaped in the fields."""
    path = folder / "wrong.hlo"
    title = CODES["V102"].title.replace(",", "%2C")
    assert run("verify", "--format", "github", path).stdout == (
        f"::error file={path},line=4,endLine=4,col=22,endColumn=25,title=V102 {title}"
        "::add of different sizes: f32[4] and f32[5]\n"
    )


def test_sarif(folder: Path) -> None:
    """Valid by the schema of SARIF 2.1.0, with a rule for each code and the places of the operands."""
    schema = json.loads((support.DATA / "reports" / "sarif-schema-2.1.0.json").read_text())
    names = ("wrong", "noted", "unreadable", "right")
    log = json.loads(run("verify", "--format", "sarif", *(folder / f"{name}.hlo" for name in names)).stdout)
    jsonschema.validate(log, schema)
    (one,) = log["runs"]
    assert [rule["id"] for rule in one["tool"]["driver"]["rules"]] == ["V102", "V309", "X101"]
    assert [result["ruleId"] for result in one["results"]] == ["V102", "V309", "X101"]
    wrong = one["results"][0]
    region = wrong["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 4, "startColumn": 22, "endLine": 4, "endColumn": 25}
    assert len(wrong["relatedLocations"]) == 2


def test_nothing_found_is_a_valid_report(folder: Path) -> None:
    path = folder / "right.hlo"
    assert json.loads(run("verify", "--format", "json", path).stdout)["findings"] == []
    assert json.loads(run("verify", "--format", "sarif", path).stdout)["runs"][0]["results"] == []
    assert run("verify", "--format", "github", path).stdout == ""


def test_standard_input() -> None:
    result = run("verify", "-", input=WRONG)
    assert result.exit_code == 1
    assert result.stdout.startswith("<stdin>:4:22: error[V102]")


# ---- options


def test_layouts(folder: Path) -> None:
    """`--layouts final` checks what is not scheduled as if it were."""
    assert run("verify", folder / "final.hlo").exit_code == 0
    result = run("verify", "--layouts", "final", folder / "final.hlo")
    assert (result.exit_code, "V205" in result.stdout) == (1, True)


def test_mixed_precision(tmp_path: Path) -> None:
    path = tmp_path / "mixed.hlo"
    path.write_text("ENTRY e {\n  x = f32[4]{0} parameter(0)\n  ROOT y = bf16[4]{0} negate(x)\n}\n")
    assert run("verify", path).exit_code == 1
    assert run("verify", "--mixed-precision", "yes", path).exit_code == 0


# ---- real modules


def test_real_modules_in_a_process() -> None:
    """What a CI job runs: nothing is found, in any of the formats."""
    paths = [
        "corpus/cpu/mlp_forward.cpu_1.after_optimizations.txt",
        "corpus/tpu/int2.v5e_2x2x1.after_optimizations.txt",
    ]
    for form in ("text", "github"):
        result = run_process("verify", "--format", form, *paths)
        assert (result.returncode, result.stdout) == (0, b"")


# ---- rule


def test_rule() -> None:
    """The page of a code, in whatever case it is typed."""
    assert run("rule", "v101").stdout == CODES["V101"].page()
    result = run("rule", "V101", "X101")
    assert result.stdout == f"{CODES['V101'].page()}\n{syntax_codes.RULES['X101'].page()}"


def test_rule_lists_every_code() -> None:
    text = run("rule").stdout
    for code in (*CODES.values(), *syntax_codes.RULES.values()):
        assert f"{code.name}  {code.severity.value}" in text
        assert code.title in text


def test_rule_of_no_code() -> None:
    result = run("rule", "V9999")
    assert (result.exit_code, "V9999" in result.stderr) == (2, True)


def test_rule_json() -> None:
    (row,) = json.loads(run("rule", "V501", "--format", "json").stdout)["codes"]
    assert (row["code"], row["severity"], row["title"]) == ("V501", "error", CODES["V501"].title)
    assert row["page"] == CODES["V501"].page()


def test_severities_of_the_api() -> None:
    """A program that asks for the severity gets a member of the enumeration at the door."""
    assert [d.severity for d in hlo.verify(hlo.parse(WRONG))] == [hlo.Severity.ERROR]


def test_colours_have_no_background_and_go_on_in_the_next_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A black background is a bar in a light terminal; a saving that is broken is not half dim."""
    monkeypatch.setattr("hlotext.cli.help_rule.is_colourful", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    page = run("help", "rule", "M103").stdout
    assert "\x1b[1;36m" in page
    assert not re.search(r"\x1b\[[\d;]*;4[0-7]m", page)
    module = hlo.load(support.DATA / "lint" / "compiled" / "waste_memory.v5e_2x2x1.after_optimizations.txt")
    (finding,) = lint.run(module, lint.Config(select=("M105",)))
    text = coloured(finding, with_origin=True, width=40)
    start = text.plain.index("  saves: ")
    end = text.plain.index("\n  help: ")
    assert "\n    " in text.plain[start:end]
    assert not [span for span in text.spans if span.style == "dim" and start < span.start < end]


def test_operands_that_a_broadcast_would_fit_are_told_of_it(tmp_path: Path) -> None:
    """Other libraries broadcast implicitly."""
    path = tmp_path / "m.txt"
    path.write_text(
        "HloModule m\n\nENTRY e {\n  x = f32[4,8] parameter(0)\n  b = f32[8] parameter(1)\n  ROOT y = f32[4,8] add(x, b)\n}\n"
    )
    assert "`f32[4,8] broadcast(...), dimensions={1}`" in run("verify", path).stdout
    path.write_text(
        "HloModule m\n\nENTRY e {\n  x = f32[4,8] parameter(0)\n  b = f32[9] parameter(1)\n  ROOT y = f32[4,8] add(x, b)\n}\n"
    )
    assert "broadcast implicitly" not in run("verify", path).stdout
