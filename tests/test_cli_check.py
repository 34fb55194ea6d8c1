"""`hlotext check`: every error of several files, in each format, and the exit status."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import jsonschema
import pytest

from tests import support
from tests.cli_support import run, run_process

RIGHT = "ENTRY e {\n  x = f32[4]{0} parameter(0)\n  ROOT y = f32[4]{0} negate(x)\n}\n"
NOTED = RIGHT.replace("negate", "frobnicate")
BROKEN = """HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] paramter(1)
  ROOT c = f32[] add(a, bb)
}
I0000 00:00:1760000000.000000   12345 service.cc:152] XLA service initialized

ENTRY e {
  x = f32[4]{0} parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(x, z), dimension={0}, to_apply=add, shiny=1
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One file of each sort."""
    for name, text in (("right", RIGHT), ("noted", NOTED), ("broken", BROKEN)):
        (tmp_path / f"{name}.hlo").write_text(text)
    (tmp_path / "empty.hlo").write_bytes(b"")
    (tmp_path / "binary.hlo").write_bytes(bytes(range(256)))
    (tmp_path / "cut.hlo").write_bytes(gzip.compress(RIGHT.encode())[:-12])
    return tmp_path


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (["right"], 0),
        (["noted", "right"], 0),
        (["broken"], 1),
        (["right", "broken", "noted"], 1),
        (["empty"], 2),
        (["binary"], 2),
        (["missing"], 2),
        (["broken", "missing"], 2),
        (["cut"], 2),
    ],
)
@pytest.mark.parametrize("form", ["text", "json", "github", "sarif"])
def test_exit_status(folder: Path, names: list[str], status: int, form: str) -> None:
    result = run("check", "--format", form, *(folder / f"{name}.hlo" for name in names))
    assert result.exit_code == status


def test_usage_error(folder: Path) -> None:
    assert run("check").exit_code == 2
    assert run("check", "--format", "xml", folder / "right.hlo").exit_code == 2


def test_text(folder: Path) -> None:
    """All errors of a file in the order of its lines, not only the first, each with its line and a caret."""
    path = folder / "broken.hlo"
    result = run("check", path, folder / "noted.hlo")
    reports = result.stdout.split("\n\n")
    firsts = [report.splitlines()[0].removeprefix(f"{path}:") for report in reports]
    assert [first.split(" ")[:2] for first in firsts] == [
        ["5:13:", "error[X101]:"],
        ["6:25:", "error[X102]:"],
        ["8:1:", "error[X101]:"],
        ["13:18:", "error[X110]:"],
        ["13:32:", "warning[X203]:"],
        ["13:61:", "note[X203]:"],
        [f"{folder / 'noted.hlo'}:3:22:", "note[X201]:"],
    ]
    assert "help: did you mean `parameter`?" in reports[0]
    assert reports[1].splitlines()[1:3] == [
        "  6 |   ROOT c = f32[] add(a, bb)",
        "    |                         ^^",
    ]
    assert all("^" in report for report in reports)
    assert result.stderr == "hlotext: 4 errors, 1 warning, 2 notes in 2 files\n"
    assert "\x1b" not in result.stdout


def test_quiet(folder: Path) -> None:
    """No notes and no counting."""
    result = run("check", "--quiet", folder / "noted.hlo", folder / "right.hlo")
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)


def test_colour_on_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hlotext.cli.findings.is_colourful", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;31merror[X102]" in run("check", folder / "broken.hlo").stdout


def test_json(folder: Path) -> None:
    path = folder / "broken.hlo"
    report = json.loads(run("check", "--format", "json", path, folder / "right.hlo").stdout)
    assert report["files"] == [str(path), str(folder / "right.hlo")]
    assert report["summary"] == {"errors": 4, "warnings": 1, "notes": 1}
    found = report["findings"][1]
    assert (found["code"], found["line"], found["column"], found["end_column"]) == ("X102", 6, 25, 27)


def test_github(folder: Path) -> None:
    """One workflow command for each finding."""
    path = folder / "broken.hlo"
    lines = run("check", "--format", "github", "--quiet", path).stdout.splitlines()
    assert [line.split(",")[0] for line in lines] == [*[f"::error file={path}"] * 4, f"::warning file={path}"]
    assert "line=6,endLine=6,col=25,endColumn=27" in lines[1]


def test_sarif(folder: Path) -> None:
    """Valid by the schema of SARIF 2.1.0, whatever the bytes are."""
    schema = json.loads((support.DATA / "reports" / "sarif-schema-2.1.0.json").read_text())
    names = ("broken", "right", "empty", "binary")
    log = json.loads(run("check", "--format", "sarif", *(folder / f"{name}.hlo" for name in names)).stdout)
    jsonschema.validate(log, schema)
    codes = [result["ruleId"] for result in log["runs"][0]["results"]]
    assert codes == ["X101", "X102", "X101", "X110", "X203", "X203", "X123", "X123"]


def test_standard_input() -> None:
    result = run("check", "-", input=BROKEN)
    assert result.exit_code == 1
    assert "<stdin>:6:25: error[X102]" in result.stdout


def test_thousands_of_errors_are_counted(tmp_path: Path) -> None:
    """The first 1,000 are listed."""
    path = tmp_path / "many.hlo"
    lines = "".join(f"  x{i} = f32[] negate(y{i})\n" for i in range(1_500))
    path.write_text(f"ENTRY e {{\n{lines}}}\n")
    result = run("check", path, "--limit", "0")
    assert result.stdout.count("error[X102]") == 1_000
    assert "500 more findings not listed" in result.stderr


def test_every_broken_file_in_a_process() -> None:
    """What a CI job runs, over all that the corpus has of broken files: each is reported, none ends the command."""
    paths = sorted(path for path in support.INVALID.iterdir() if path.suffix != ".xz")
    result = run_process("check", "--format", "json", *map(str, paths))
    assert result.returncode == 2  # some hold no HLO
    assert result.stderr == b""
    found = {finding["file"] for finding in json.loads(result.stdout)["findings"]}
    assert found == set(map(str, paths))


@pytest.mark.parametrize("command", ["check", "verify"])
def test_a_misspelt_name_is_a_warning_and_a_new_one_a_note(command: str, tmp_path: Path) -> None:
    """XLA rejects `addd`; an opcode of a later release resembles none that is known, and counts with --strict only."""
    text = "HloModule m\n\nENTRY e {{\n  p = f32[4]{{0}} parameter(0)\n  ROOT a = f32[4]{{0}} {}(p, p)\n}}\n"
    misspelt, new = tmp_path / "misspelt.hlo", tmp_path / "new.hlo"
    misspelt.write_text(text.format("addd"))
    new.write_text(text.format("frobnicate"))
    result = run(command, misspelt)
    assert (result.exit_code, "warning[X201]" in result.stdout) == (1, True)
    result = run(command, new)
    assert (result.exit_code, "note[X201]" in result.stdout) == (0, True)
    assert run(command, new, "--strict", "-q").exit_code == 1
    assert run(command, misspelt, "--exit-zero").exit_code == 0
    printed = tmp_path / "printed.hlo"
    layout = "entry_computation_layout={(f32[4]{0})->f32[4]{0}}"
    printed.write_text(text.format("addd").replace("HloModule m", f"HloModule m, {layout}"))
    result = run(command, printed)  # with the header that XLA prints
    assert (result.exit_code, "warning[X201]" in result.stdout) == (1, True)
