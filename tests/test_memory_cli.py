"""`hlotext memory`: what it says of recorded compilations, and of what it cannot use."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hlotext import dumps
from hlotext.analysis.chips import CHIPS, with_figures
from hlotext.cli.memory_limit import peak_limit
from tests.cli_support import run, run_json
from tests.support import CORPUS, DATA, read_text

DUMPS = DATA / "memory"
GPU, TPU, CPU = (
    DUMPS / "gpu.mlp_train.h100_1x1x1",
    DUMPS / "tpu.nested_loops.v5e_2x2x1",
    DUMPS / "cpu.mlp_train.cpu_1",
)


def text_of(dump: Path) -> Path:
    return next(dump.glob("*after_optimizations.txt.xz"))


def alone(dump: Path, folder: Path) -> Path:
    """The text of a dump without XLA's files beside it."""
    place = folder / f"{dump.name}.txt.xz"
    shutil.copy(text_of(dump), place)
    return place


def facts(*arguments: str | Path) -> dict[str, Any]:
    (found,) = run_json("memory", *arguments)["modules"]
    assert isinstance(found, dict)
    return found


def test_files_beside_the_text_are_read_and_say_the_same(tmp_path: Path) -> None:
    """The same peak and the same arrays, whether read or computed; and the report says which."""
    read, computed = facts(text_of(GPU)), facts(alone(GPU, tmp_path))
    assert (read["source"], computed["source"]) == ("files", "text")
    for name in ("statistics", "memory_spaces", "time", "live_count"):
        assert read[name] == computed[name]
    assert "read from XLA's files" in run("memory", text_of(GPU)).stdout
    assert "computed from the text" in run("memory", alone(GPU, tmp_path)).stdout


def test_the_peak_adds_up() -> None:
    """Static bytes and the rows of the table are the peak; the largest row comes first."""
    found = facts(text_of(GPU), "--limit", "0")
    (space,) = found["memory_spaces"]
    assert sum(row["bytes"] for row in found["live"]) == space["peak"]
    assert space["static"] + space["heap"] == space["needed"] >= space["peak"]
    sizes = [row["bytes"] for row in found["live"]]
    assert sizes == sorted(sizes, reverse=True)
    assert any(row["place"] and row["place"]["line"] for row in found["live"])


def test_bytes_by_scope_are_the_rows_summed() -> None:
    """`--by` loses nothing."""
    found = facts(text_of(TPU), "--by", "line", "--space", "1", "--limit", "0", "--chip", "v5e")
    assert sum(group["bytes"] for group in found["groups"]) == sum(row["bytes"] for row in found["live"]) > 0
    assert found["memory_spaces"][1]["is_estimated"] is False or found["source"] == "text"


def test_another_moment() -> None:
    """By name and by number it is the same moment."""
    by_number = facts(text_of(GPU), "--at", "3")
    name = run("memory", text_of(GPU), "--at", "3").stdout.split(" at step 3 (")[1].split(")")[0]
    assert facts(text_of(GPU), "--at", name)["live"] == by_number["live"]


def test_who_shares_a_buffer() -> None:
    """A donated parameter and the result in it, and the reason."""
    result = run("memory", text_of(GPU), "--buffer", "v_0___w__.1")
    assert result.exit_code == 0
    assert "an output uses the buffer of parameter 13" in result.stdout
    temporaries = [row["name"] for row in facts(text_of(GPU))["live"] if row["kind"] == "temporary"]
    refused = [facts(text_of(GPU), "--buffer", name)["buffer"][0]["refusals"] for name in temporaries[:4]]
    assert any("not donated" in refusal["why"] for refusals in refused for refusal in refusals)


def test_what_if_lowers_the_peak_where_a_parameter_takes_a_result(tmp_path: Path) -> None:
    """Without the header's aliases the peak is higher by what is donated; donating gives it back."""
    place = alone(CPU, tmp_path)
    text = read_text(place).decode()
    header, rest = text.split("\n", 1)
    start = header.index("input_output_alias=")
    end = header.index(", entry_computation_layout")
    plain = tmp_path / "plain.txt"
    plain.write_text(f"{header[:start].rstrip(', ')}{header[end:]}\n{rest}")
    before, donated = facts(plain)["statistics"], facts(place)["statistics"]
    assert donated["alias_size_in_bytes"] > 0 == before["alias_size_in_bytes"]
    parameters = ",".join(map(str, range(18)))
    (outcome,) = facts(plain, "--what-if", f"donate={parameters}")["what_if"]
    assert outcome["is_estimate"]
    assert outcome["peak_after"] < outcome["peak_before"]
    assert outcome["peak_after"] == facts(place)["memory_spaces"][0]["peak"]


def test_pictures_are_xml_without_scripts(tmp_path: Path) -> None:
    """Offsets over time and padding by scope, with tooltips."""
    for arguments in ([], ["--by", "scope"]):
        place = tmp_path / "picture.svg"
        assert run("memory", text_of(TPU), "--space", "1", *arguments, "--svg", place).exit_code == 0
        root = ElementTree.fromstring(place.read_text())
        tags = {element.tag.rsplit("}", 1)[-1] for element in root.iter()}
        assert {"rect", "title", "text"} <= tags
        assert "script" not in tags


def test_the_timeline_has_one_peak_mark() -> None:
    """Bars for a terminal; the largest is marked."""
    lines = run("memory", text_of(GPU), "--timeline").stdout.splitlines()
    bars = [line for line in lines if "█" in line or "░" in line]
    assert len(bars) > 10
    assert any(line.startswith(">") for line in bars)


@pytest.mark.parametrize("dump", [GPU, CPU, TPU], ids=lambda dump: dump.name)
def test_check_agrees_with_xla(dump: Path) -> None:
    """Status 0 where equal to XLA's files."""
    chip = ["--chip", "v5e"] if dump is TPU else []
    result = run("memory", dump, "--check", *chip)
    assert result.exit_code == 0, result.stdout
    assert "equal to XLA's files" in result.stdout


def test_check_finds_another_platform() -> None:
    """Status 1 and a table where it is not; 2 where there is nothing to compare with."""
    result = run("memory", CPU, "--check", "--platform", "gpu")
    assert result.exit_code == 1
    assert "differences" in result.stdout


def test_check_needs_files(tmp_path: Path) -> None:
    result = run("memory", alone(CPU, tmp_path), "--check")
    assert result.exit_code == 2
    assert "nothing to compare" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--at", "nobody"], 1, "no scheduled instruction is named nobody"),
        (["--at", "99999999"], 1, "the schedule ends at"),
        (["--buffer", "nobody"], 1, "no instruction is named nobody"),
        (["--what-if", "remat=nobody"], 1, "no instruction is named nobody"),
        (["--what-if", "donate=77"], 2, "--what-if: no parameter 77; parameters are 0 to"),
        (["--what-if", "hope"], 2, "--what-if takes donate=ARGUMENT, donate=0-9 or remat=NAME"),
        (["--chip", "v99"], 2, "no chip is named 'v99'"),
        (["--chip", "h100"], 2, "h100 is a GPU, but the module is for CPU; its chips: "),
    ],
)
def test_what_is_not_there_is_said(arguments: list[str], status: int, said: str) -> None:
    """One line on standard error."""
    result = run("memory", text_of(CPU), *arguments)
    assert (result.exit_code, said in result.stderr) == (status, True), result.stderr


def test_json_is_one_document() -> None:
    """Several modules in one list; lives and places as numbers."""
    result = run("memory", text_of(GPU), text_of(CPU), "--format", "json")
    documents = json.loads(result.stdout)["modules"]
    assert [document["platform"] for document in documents] == ["gpu", "cpu"]


def test_a_small_value_in_large_memory_is_not_padded() -> None:
    """What is held besides it is no padding: GPU's and CPU's layouts add nothing to an array."""
    for path in (
        CORPUS / "gpu" / "sorting.h100_1x1x1.after_optimizations.txt",
        CORPUS / "cpu" / "convolution_transpose.cpu_1.after_optimizations.txt",
    ):
        for time in range(len(facts(path, "--timeline")["timeline"])):
            found = facts(path, "--at", str(time), "--limit", "0", "--by", "scope")
            assert all(row["unpadded_bytes"] == row["value_bytes"] <= row["bytes"] for row in found["live"])
            assert not any(group["padding"] for group in found["groups"])


def test_check_goes_on_behind_what_it_cannot_compare(tmp_path: Path) -> None:
    """One text without files is named; 2 only where nothing at all was compared."""
    result = run("memory", alone(CPU, tmp_path), CPU, "--check")
    assert result.exit_code == 0
    assert "nothing to compare with" in result.stderr
    assert "equal to XLA's files" in result.stdout


@pytest.mark.parametrize(
    "dump",
    [
        DUMPS / "cpu.nested_loops.cpu_1",
        DUMPS / "cpu.ring_attention.cpu_4",
        DUMPS / "gpu.host_offload_remat.h100_1x1x1",
        DUMPS / "gpu.ring_attention.h100_1x1x4",
    ],
    ids=lambda dump: dump.name,
)
def test_a_folder_knows_as_much_of_origins_as_its_text(dump: Path, tmp_path: Path) -> None:
    """XLA's files give the places, the text says whose a loop's state is."""
    for by in ("scope", "line"):
        read = facts(text_of(dump), "--by", by, "--limit", "0")
        computed = facts(alone(dump, tmp_path), "--by", by, "--limit", "0")
        assert (read["source"], computed["source"]) == ("files", "text")
        assert read["groups"] == computed["groups"]


def test_the_chip_is_read_from_the_folder(tmp_path: Path) -> None:
    """`target_arguments.txt` names it, for a text of the folder too; what is given counts more."""
    with tarfile.open(DATA / "dumps" / "tpu.mlp_train.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    (arguments,) = tmp_path.glob("*target_arguments.txt")
    (text,) = tmp_path.glob("*.after_optimizations.txt")
    told = arguments.read_text()
    for version, chip in (
        ('TPU_VERSION_VIPERFISH\n  variant: "lite"', "v5e"),
        ("TPU_VERSION_VIPERFISH", "v5p"),
        ("TPU_VERSION_GHOSTLITE", "v6e"),
        ("TPU_VERSION_JELLYFISH", "v2"),
        ("TPU_VERSION_UNHEARD", None),
    ):
        arguments.write_text(re.sub(r'version: \w+(\n +variant: "\w+")?', f"version: {version}", told))
        (compilation,) = dumps.open(tmp_path).compilations
        assert (compilation.chip.name if compilation.chip is not None else None) == chip
        assert facts(tmp_path)["chip"] == facts(text)["chip"] == chip
        assert any("unknown chip TPU_VERSION_UNHEARD" in str(note) for note in compilation.notes) == (
            chip is None
        )
    assert facts(tmp_path, "--chip", "v4")["chip"] == "v4"
    assert "assuming v5e (set --chip)" in run("memory", tmp_path).stdout


def test_compilations_without_a_final_text_are_passed_over(tmp_path: Path) -> None:
    """Of a folder in which one compilation failed the others are shown; the chip of a folder is that of all in it."""
    with tarfile.open(DATA / "dumps" / "tpu.mlp_train.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    for path in list(tmp_path.iterdir()):
        if path.name.endswith(".after_optimizations.txt"):
            path.rename(path.with_name(path.name.replace("module_0000", "module_0003")))
    module = (
        "HloModule broken\n\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] call(x), to_apply=e\n}\n"
    )
    (tmp_path / "module_0001.broken.cl_1.before_optimizations.txt").write_text(module)
    assert {c.chip.name for c in dumps.open(tmp_path).compilations if c.chip is not None} == {"v5e"}
    result = run("memory", tmp_path)
    assert result.exit_code == 0
    assert "jit_train_step (tpu v5e)" in result.stdout


def test_a_static_allocation_is_described_by_the_value_that_fills_it(tmp_path: Path) -> None:
    """At the peak a smaller temporary lies in the memory of a result: size and shape of a row go together."""
    text = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[256]{0})->f32[1024]{0}}

ENTRY e {
  p = f32[256]{0} parameter(0)
  a = f32[256]{0} cosine(p)
  b = f32[512]{0} concatenate(a, a), dimensions={0}
  c = f32[512]{0} sine(b)
  ROOT r = f32[1024]{0} concatenate(c, b), dimensions={0}
}
"""
    path = tmp_path / "m.hlo"
    path.write_text(text)
    for moment in ("a", "b", "c", "r"):
        for row in facts(path, "--platform", "cpu", "--at", moment)["live"]:
            if row["kind"] == "result":
                assert (row["bytes"], row["shape"]) == (4096, "f32[1024]")


def test_donated_parameters_as_ranges() -> None:
    changes = facts(CPU, "--what-if", "donate=0-2")["what_if"][0]["what"]
    assert changes == facts(CPU, "--what-if", "donate=0,1,2")["what_if"][0]["what"]


def test_a_program_that_does_not_fit_says_so_first(tmp_path: Path) -> None:
    path = tmp_path / "large.hlo"
    path.write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[1024,1024,1024]{2,1,0} parameter(0)\n"
        "  q = f32[1024,1024,1024]{2,1,0} negate(p)\n  ROOT r = f32[1024,1024,1024]{2,1,0} sine(q)\n}\n"
    )
    said = run("memory", path, "--chip", "v2", "--platform", "tpu").stdout.splitlines()[1]
    assert said.strip() == "does not fit  8.00 GiB of HBM needed, 7.48 GiB usable: 532 MiB too much"
    assert "does not fit" not in run("memory", path, "--chip", "v5p", "--platform", "tpu").stdout


def test_usable_memory_is_what_the_compiler_gives() -> None:
    """Of each TPU less than there is; where that is not known the column is empty."""
    for name in ("v2", "v3", "v4", "v5e", "v5p", "v6e", "tpu7x"):
        row = CHIPS[name]
        assert row.memory_bytes is not None
        assert 0.9 * row.memory_bytes < (row.usable_bytes(0) or 0) < row.memory_bytes
    assert CHIPS["h100"].usable_bytes(0) == CHIPS["h100"].memory_bytes
    assert with_figures(CHIPS["v5e"], {"memory_bytes": 10**9}).usable_bytes(0) == 10**9
    spaces = facts(TPU, "--chip", "v5e")["memory_spaces"]
    assert spaces[0]["usable"] == int(15.75 * 2**30)


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("peak>32B", 0),
        ("peak>=32B", 1),
        ("peak>0.03kB", 1),
        ("peak>1GiB", 0),
        ("bytes>8GiB", 2),
        ("peak>8Gi%", 2),
    ],
)
def test_a_peak_beyond_a_limit_fails(tmp_path: Path, condition: str, status: int) -> None:
    """Of two arrays of 16 bytes."""
    (tmp_path / "m.txt").write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  x = f32[4]{0} parameter(0)\n  ROOT y = f32[4]{0} negate(x)\n}\n"
    )
    result = run("memory", tmp_path / "m.txt", "--platform", "cpu", "--fail-on", condition)
    assert result.exit_code == status
    assert ("the peak of 32 B (32 bytes)" in result.stderr) is (status == 1)
    assert ("--fail-on takes peak>8GiB" in result.stderr) is (status == 2)


@pytest.mark.parametrize("size", [0, 1024])
def test_limits_without_a_unit(size: int) -> None:
    """Between these a number without a unit is refused, see `mistakes.txt`."""
    assert peak_limit(f"peak>{size}").bytes == size
