"""Commands on folders, packed folders and several files: what is taken, what is left out, and what is said of it."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from tests import support
from tests.cli_support import run, run_json

PACKED = support.DATA / "dumps" / "cpu.mlp_train.tar.xz"
SEVERAL = support.DATA / "dumps" / "gpu.subfolders.tar.xz"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same dump unpacked."""
    path = tmp_path_factory.mktemp("dump")
    with tarfile.open(PACKED) as archive:
        archive.extractall(path, filter="data")
    return path


COMMANDS = {
    "show": ("show",),
    "check": ("check",),
    "verify": ("verify",),
    "grep": ("grep", "dot(...)"),
    "fmt": ("fmt", "--check"),
    "lint": ("lint", "--isolated", "--exit-zero"),
    "cost": ("cost",),
    "comm": ("comm",),
    "time": ("time", "--chip", "h100"),
    "memory": ("memory",),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_and_a_packed_one(name: str, folder: Path) -> None:
    """Both are taken, and give the same but for the names of files; other reports beside the modules are no errors."""
    assert {path.name.rpartition(".")[2] for path in folder.rglob("*") if path.is_file()} > {"txt"}
    found = [run(*COMMANDS[name], path) for path in (folder, PACKED)]
    for result in found:
        assert result.exit_code == 0, result.stderr
        assert "cannot" not in result.stderr
        assert "error" not in result.stderr
    texts = [
        (result.stdout + result.stderr).replace(f"{folder}/", "").replace(f"{PACKED}:", "")
        for result in found
    ]
    if name not in ("fmt", "memory"):
        assert texts[0] == texts[1]


def test_show_has_a_row_for_each_module() -> None:
    """A table for several modules, everything about an only one; all of them with --full and in JSON."""
    result = run("show", SEVERAL)
    assert result.stdout.splitlines()[0] == f"{SEVERAL}: 3 modules"
    rows = [line.split() for line in result.stdout.splitlines() if "after_optimizations" in line]
    assert [row[0] for row in rows] == ["1990", "2653", "3316"] or len(rows) == 3
    assert "Largest arrays" not in result.stdout
    assert run("show", "--full", SEVERAL).stdout.count("Largest arrays") == 3
    assert len(run_json("show", SEVERAL)["modules"]) == 3
    assert "Largest arrays" in run("show", PACKED).stdout


def test_which_texts_of_a_folder(folder: Path) -> None:
    """The last of each compilation, both ends, or every step."""
    numbers = [
        len(run_json("show", "--which", which, PACKED)["modules"]) for which in ("last", "ends", "all")
    ]
    assert numbers[:2] == [1, 2]
    assert numbers[2] > 20
    assert f"in {numbers[2]} files" in run("check", folder).stderr


def test_a_folder_without_modules(tmp_path: Path) -> None:
    """One line that says so, and exit status 2; of a broken archive too."""
    (tmp_path / "notes.txt").write_text("nothing")
    broken = tmp_path / "x.tar.gz"
    broken.write_bytes(b"no archive")
    for command in ("show", "check", "grep", "lint"):
        words = ["_"] if command == "grep" else []
        result = run(command, *words, tmp_path)
        assert result.exit_code == 2
        assert "no module " in result.stderr
        assert run(command, *words, broken).exit_code == 2


def test_files_beside_folders(folder: Path) -> None:
    """In the order in which they are named."""
    file = support.CORPUS / "handmade" / "map.txt"
    found = run_json("show", file, folder, file)["modules"]
    assert [module["name"] for module in found] == ["map", "jit_train_step", "map"]


def test_findings_to_a_file_and_exit_zero(tmp_path: Path) -> None:
    """--output-file takes every format; --exit-zero leaves the status to what cannot be read."""
    bad = support.INVALID / "two_roots.txt"
    place = tmp_path / "found.json"
    result = run("check", bad, "--format", "json", "-o", place, "--exit-zero")
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(place.read_text())["findings"][0]["code"] == "X106"
    result = run("check", bad, "-o", place)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "X106" in place.read_text()
    assert run("check", bad, "nosuch.txt", "--exit-zero").exit_code == 2
    wasteful = support.DATA / "lint" / "compiled"
    found = run("lint", "--isolated", wasteful, "--format", "concise")
    assert found.exit_code == 1
    written = run("lint", "--isolated", wasteful, "--format", "concise", "-o", place, "--exit-zero")
    assert (written.exit_code, written.stdout) == (0, "")
    assert place.read_text() == found.stdout


def test_settings_and_files_of_lint(tmp_path: Path) -> None:
    """What would run, and on what."""
    settings = tmp_path / "hlotext.toml"
    settings.write_text('[lint]\nselect = ["L101"]\nfloor-bytes = 77\n')
    text = run("lint", "--config", settings, "--show-settings", PACKED).stdout
    assert f"from {settings}" in text
    assert "L101" in text
    assert "L102" not in text
    assert "77" in text
    result = run("lint", "--isolated", "--show-files", PACKED, SEVERAL)
    assert len(result.stdout.splitlines()) == 4


def test_arguments_and_results() -> None:
    """Each array with what the header says of its memory: results that lie in arguments' are named on both sides."""
    file = support.CORPUS / "tpu" / "transformer_decode.v5e_2x2x1.after_optimizations.txt"
    (found,) = run_json("show", "--arguments", file)["entries"]
    donated = [row for row in found["argument_arrays"] if row["is_donated"]]
    assert len(found["argument_arrays"]) == 21
    assert len(donated) == 4
    assert {row["label"] for row in donated} > {"cache[0][0]"}
    aliases = {
        tuple(row["index"]): row["aliased_with"] for row in found["result_arrays"] if row["aliased_with"]
    }
    assert {(row["number"], *row["index"]) for row in donated} == set(map(tuple, aliases.values()))
    assert {tuple(row["aliased_with"]) for row in donated} == set(aliases)
    text = run("show", "--arguments", file).stdout
    assert "Arguments (21)" in text
    assert "Results (5)" in text


def test_folders_tell_donation_and_totals(tmp_path: Path) -> None:
    text = (
        "HloModule m, is_scheduled=true{alias}, entry_computation_layout={{(f32[1024]{{0}})->f32[1024]{{0}}}}\n\n"
        "ENTRY e {{\n  a = f32[1024]{{0}} parameter(0)\n  ROOT n = f32[1024]{{0}} negate(a)\n}}\n"
    )
    for name, alias in (("old", ", input_output_alias={ {}: (0, {}, may-alias) }"), ("new", "")):
        place = tmp_path / name / "module_0000.m.cpu_after_optimizations.txt"
        place.parent.mkdir()
        place.write_text(text.format(alias=alias))
    out = run("diff", str(tmp_path / "old"), str(tmp_path / "new")).output
    assert "header: input_output_alias" in out
    assert "peak memory" in out
    assert "4,096 B -> 8,192 B" in out


@pytest.mark.parametrize("command", ["show", "memory", "comm", "triage", "dump list", "diff"])
def test_a_mistyped_path_is_answered_with_the_nearest_name(command: str, tmp_path: Path) -> None:
    """By every command, of files and of folders."""
    (tmp_path / "compiled.txt").write_text("HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")
    given = [str(tmp_path / "compild.txt")] * (2 if command == "diff" else 1)
    result = run(*command.split(), *given)
    assert result.exit_code == 2
    assert f"compild.txt does not exist; did you mean `{tmp_path / 'compiled.txt'}`?" in result.stderr
