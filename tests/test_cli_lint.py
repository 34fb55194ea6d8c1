"""`hlotext lint`: exit statuses, formats, baselines, directories, several processes, and the codes in `hlotext help rule`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.syntax.source.inputs import read_source
from tests import support
from tests.cli_support import run, run_process

NOISY = support.DATA / "lint" / "compiled" / "waste_gather_in_loop.cpu_8.after_optimizations.txt"
QUIET = support.CORPUS / "cpu" / "mlp_forward.cpu_1.after_optimizations.txt"
NOTES = support.CORPUS / "tpu" / "pallas_matmul.tpu7x_2x2x1.after_codegen.txt"
BROKEN = next(path for path in sorted(support.INVALID.iterdir()) if path.stat().st_size > 50)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration but the test's own."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([QUIET], 0),
        ([NOISY], 1),
        ([NOTES], 0),
        ([QUIET, NOISY], 1),
        ([NOISY, "--ignore", "c1"], 0),
        ([QUIET, "--select", "G111", "--extend-select", "K102,D"], 0),
        (["nothing.txt", NOISY], 2),
        ([QUIET, "--select", "Q"], 2),
        ([QUIET, "--config", "nothing.toml"], 2),
        ([QUIET, "--baseline", "nothing.json"], 2),
        ([BROKEN], 2),
    ],
)
def test_exit_status(arguments: list[str | Path], status: int) -> None:
    """0 for nothing but notes, 1 for findings, 2 for what could not be looked at."""
    assert run("lint", *arguments).exit_code == status


def test_full_report() -> None:
    """Place, rule, line with a caret, the operation and the Python frame, the estimate, and what to do."""
    result = run("lint", NOISY, "--select", "C101")
    first = result.stdout.split("\n\n")[0].splitlines()
    assert first[0].startswith(f"{NOISY}:")
    assert ": warning[C101]: " in first[0]
    assert set(first[2].strip(" |")) == {"^"}
    assert [line.split(":")[0].strip() for line in first[3:]] == ["op_name", "from", "saves", "help"]
    assert "in 1 file" in result.stderr


def test_nothing_found_says_which_rules_did_not_run(tmp_path: Path) -> None:
    """Rules that are off by default may find something; asked for, nothing is left to say."""
    (tmp_path / "m.txt").write_text("HloModule m\n\nENTRY e {\n  ROOT a = f32[] parameter(0)\n}\n")
    said = run("lint", tmp_path / "m.txt", "--isolated").stderr
    assert re.search(r"\d+ rules disabled by default did not run \(--extend-select ALL runs them\)", said)
    for options in (["--extend-select", "ALL"], ["--select", "C101"], ["--quiet"], ["--format", "json"]):
        assert "off by default" not in run("lint", tmp_path / "m.txt", "--isolated", *options).stderr


def test_formats() -> None:
    """Each format holds the same findings."""
    count = len(run("lint", NOISY, "--format", "concise").stdout.splitlines())
    assert count
    outputs = {
        name: run("lint", NOISY, "--format", name)
        for name in ("json", "json-lines", "junit", "github", "gitlab", "sarif")
    }
    assert {result.exit_code for result in outputs.values()} == {1}
    assert len(json.loads(outputs["json"].stdout)["findings"]) == count
    assert len(outputs["json-lines"].stdout.splitlines()) == count
    assert ET.fromstring(outputs["junit"].stdout).get("failures") == str(count)
    assert len(outputs["github"].stdout.splitlines()) == count
    assert len(json.loads(outputs["gitlab"].stdout)) == count
    assert len(json.loads(outputs["sarif"].stdout)["runs"][0]["results"]) == count
    assert f"| C115 | {count} |" in run("lint", NOISY, "--format", "markdown").stdout
    assert run("lint", NOISY, "--statistics").stdout == f"{count}  C115  {lint.all_rules()['C115'].title}\n"


def test_sarif_of_real_findings_is_valid() -> None:
    """By the schema, with every rule and the reader's errors."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((support.DATA / "reports" / "sarif-schema-2.1.0.json").read_text("utf-8"))
    files = sorted((support.CORPUS / "handmade").iterdir())[:12]
    log = json.loads(run("lint", *files, NOISY, "--select", "ALL", "--format", "sarif").stdout)
    jsonschema.validate(log, schema)
    assert len(log["runs"][0]["results"]) > 12


def test_baseline_on_the_command_line(tmp_path: Path) -> None:
    """What is written is known; what is gone is told; new files fail again."""
    file = tmp_path / "known.json"
    assert run("lint", NOISY, "--write-baseline", file).exit_code == 0
    again = run("lint", NOISY, "--baseline", file)
    assert (again.exit_code, again.stdout) == (0, "")
    assert "1 known finding suppressed" in again.stderr
    gone = run("lint", QUIET, "--baseline", file)
    assert "known finding no longer occurs (C" in gone.stderr
    assert run("lint", NOISY, "--diff-against", NOISY).stdout == ""
    assert run("lint", NOISY, "--diff-against", QUIET).exit_code == 1


def test_configuration_is_read(tmp_path: Path) -> None:
    """From the folder where the command runs; the command line says the last word."""
    (tmp_path / "hlotext.toml").write_text("[lint]\nignore = ['C']\n")
    assert run("lint", NOISY).exit_code == 0
    assert run("lint", NOISY, "--isolated").exit_code == 1
    assert run("lint", NOISY, "--extend-select", "C101").exit_code == 1
    (tmp_path / "hlotext.toml").write_text("[lint]\nignored = ['G']\n")
    result = run("lint", NOISY)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "hlotext.toml: no setting 'ignored'; did you mean `ignore`?" in result.stderr


def test_directories_are_searched_for_final_modules(tmp_path: Path) -> None:
    """Those after optimization, at any depth, packed or not; other passes and reports are left out."""
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    for name in (
        "module_0001.jit_f.cpu_after_optimizations.txt",
        "module_0001.jit_f.before_optimizations.txt",
    ):
        shutil.copy(NOISY, below / name)
    (below / "module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt").write_text("no HLO")
    found = json.loads(run("lint", tmp_path, "--format", "json").stdout)
    assert [Path(file).name for file in found["files"]] == ["module_0001.jit_f.cpu_after_optimizations.txt"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no module found in" in run("lint", empty).stderr


def test_processes_find_the_same() -> None:
    """In the same order, whatever their number."""
    folder = str(support.DATA / "lint" / "compiled")
    one = run_process("lint", folder, "--jobs", "1", "--format", "json-lines")
    two = run_process("lint", folder, "--jobs", "2", "--format", "json-lines")
    assert one.stdout == two.stdout
    assert one.returncode == two.returncode == 1
    assert len(one.stdout.splitlines()) > 5


def test_standard_input() -> None:
    """`-` is read like a file."""
    result = run("lint", "-", "--format", "concise", input=NOISY.read_bytes())
    assert result.exit_code == 1
    assert result.stdout.startswith("<stdin>:")


def test_rules_are_explained() -> None:
    """`hlotext help rule` knows the linter's codes."""
    result = run("rule", "c101")
    assert result.stdout == lint.all_rules()["C101"].page()
    assert all(code in run("rule").stdout for code in lint.all_rules())


def test_fixes_keep_what_they_do_not_touch(tmp_path: Path) -> None:
    """Dead code goes, every other line stays byte for byte; other findings are reported."""
    text = (
        (support.DATA / "lint" / "G104.txt")
        .read_text()
        .split("HloModule silent")[0]
        .replace(" // expect: G104", "")
    )
    file = tmp_path / "m.hlo"
    file.write_text(text)
    before = run("lint", file, "--select", "G104", "--format", "json-lines")
    assert json.loads(before.stdout)["fix"] == {"pass": "dce", "safety": "safe"}
    result = run("lint", file, "--select", "G104", "--fix")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "changed by dce" in result.stderr
    assert file.read_text() == "".join(line for line in text.splitlines(True) if "dead =" not in line)
    assert run("lint", NOTES, "--fix").exit_code == 0
    assert run("lint", "-", "--fix").exit_code == 2


@pytest.mark.parametrize("path", support.corpus_files(("cpu", "gpu", "tpu"))[::6], ids=support.corpus_id)
def test_fixed_modules_are_well_formed(path: Path) -> None:
    """Nothing that a fix leaves is worse than before, to the verifier."""
    source = read_source(path)
    text, passes = lint.fix_text(source, lint.Config(select=("G103", "G104", "G112")))
    assert (text == source.text) is (not passes)
    assert not lint.run(hlo.parse(text), lint.Config(select=("G103", "G104")))
    before, after = ([d.code for d in hlo.verify(hlo.parse(t))] for t in (source.text, text))
    assert set(after) <= set(before)


LARGE = """HloModule m, is_scheduled=true

ENTRY e {
  a = f32[1048576,4096]{1,0:T(8,128)} parameter(0)
  b = f32[1048576,4096]{1,0:T(8,128)} negate(a)
  ROOT c = f32[1048576,4096]{1,0:T(8,128)} exponential(b)
}
"""


def test_what_was_compiled_for_another_device_is_said_as_cost_says_it() -> None:
    """Also by `triage`; nothing is said of a chip that the text was compiled for."""
    file = support.DATA / "lint" / "compiled" / "caches_turned_in_scan.tpu1.after_optimizations.txt.xz"
    told = "although compiled for TPU"
    for command in ("lint", "triage"):
        assert told in run(command, file, "--chip", "h100").stdout
        assert "although" not in run(command, file, "--chip", "v5p").stdout
    assert "TPU, not for this chip" in run("cost", file, "--chip", "h100").stdout


def test_a_baseline_says_how_many_findings_it_holds(tmp_path: Path) -> None:
    """As many as lint shows: one cause in several places is one finding."""
    file = support.DATA / "lint" / "compiled" / "waste_argument_layout.v5e_2x2x1.after_optimizations.txt"
    shown = run("lint", file, "--isolated", "--extend-select", "ALL")
    assert "in 1 file" in shown.stderr
    count = len([line for line in shown.stdout.splitlines() if line.startswith(str(file))])
    written = run(
        "lint", file, "--isolated", "--extend-select", "ALL", "--write-baseline", tmp_path / "base.json"
    )
    assert re.match(rf"hlotext: {count} findings? in \d+ places written to ", written.stderr)


@pytest.mark.parametrize("condition", ["share>2", "share>=1", "share>1.5"])
def test_a_share_above_all_is_refused(condition: str) -> None:
    """Without a percent sign it would never be met."""
    result = run("lint", "-", "--fail-on", condition, input="")
    assert result.exit_code == 2
    assert f"did you mean {condition}%?" in result.stderr


def test_what_does_not_fit_is_an_error(tmp_path: Path) -> None:
    """As `hlotext memory` says it, where the chip is known; a finding like others, at any share."""
    file = tmp_path / "m.hlo"
    file.write_text(LARGE)
    told = "32.0 GiB of HBM needed, 15.8 GiB usable: 16.2 GiB too much"
    assert told in run("memory", file, "--chip", "v5e").stdout
    found = run("lint", file, "--chip", "v5e", "--fail-on", "share>3%", "--quiet")
    assert found.exit_code == 1
    assert f"error[M118]: the module does not fit in the memory of v5e: {told}" in found.stdout
    for arguments in (
        (file,),
        (file, "--chip", "v5p"),
        (file, "--chip", "h100"),
        (file, "--chip", "v5e", "--ignore", "M118"),
    ):
        assert "does not fit" not in run("lint", *arguments).stdout
    shown = run("triage", file, "--chip", "v5e").stdout.splitlines()
    assert shown[1].split() == ["does", "not", "fit", "m:", *told.split()]
    assert "Error 1: M118 does-not-fit" in shown
    assert shown[-1].split()[1:] == ["hlotext", "lint", str(file), "--select", "M118", "--chip", "v5e"]


@pytest.mark.parametrize("option", [["--explain-silence", "M103"], ["--fix"]], ids=lambda one: one[0])
def test_trips_of_no_loop_are_refused(option: list[str], tmp_path: Path) -> None:
    """As without these options, and before anything is written."""
    file = tmp_path / "m.hlo"
    file.write_text(NOISY.read_text())
    result = run("lint", file, *option, "--trips", "nobody=3")
    assert result.exit_code == 2
    assert "no loop or loop body is named nobody" in result.stderr
    assert file.read_text() == NOISY.read_text()


def test_a_folder_of_protos(tmp_path: Path) -> None:
    """Final modules that were dumped as protos are linted; of earlier stages alone it is said what to name."""
    pytest.importorskip("google.protobuf")
    data = hlo.parse(NOISY.read_text()).to_proto()
    early = tmp_path / "module_0001.jit_f.before_optimizations.hlo.pb"
    early.write_bytes(data)
    ended = run("lint", tmp_path)
    assert (ended.exit_code, f"only earlier stages; to lint one, name it: {early}" in ended.stderr) == (
        2,
        True,
    )
    (tmp_path / "module_0001.jit_f.cpu_after_optimizations.hlo.pb").write_bytes(data)
    assert "in 1 file" in run("lint", tmp_path).stderr
