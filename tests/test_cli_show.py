"""`hlotext show`: the report of a module, and of one instruction."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

import hlotext as hlo
from hlotext.analysis.sizes import byte_text
from hlotext.cli.output import shortened
from hlotext.cli.run_totals import ModuleFacts
from tests import support
from tests.cli_support import GOLDEN, module_json, run, run_json

TPU = "corpus/tpu/data_parallel.v5e_2x2x1.after_codegen.txt"
CASES = {
    "tpu_data_parallel": ["show", TPU],
    "tpu_scan": [
        "show",
        "--limit",
        "4",
        "corpus/tpu/transformer_train_scan.v5e_2x2x1.after_optimizations.txt.xz",
    ],
    "tpu_fsdp": ["show", "--limit", "4", "corpus/tpu/fsdp_tp_128.tpu7x_4x4x4.after_optimizations.txt.xz"],
    "tpu_before": ["show", "--limit", "4", "corpus/tpu/mlp_forward.v5e_2x2x1.before_optimizations.txt"],
    "gpu_data_parallel": [
        "show",
        "--limit",
        "4",
        "corpus/gpu/data_parallel.h100_1x1x4.after_optimizations.txt",
    ],
    "cpu_ring_attention": ["show", "--limit", "0", "corpus/cpu/ring_attention.cpu_4.after_optimizations.txt"],
    "collectives": ["show", "corpus/handmade/collectives_all_forms.txt"],
    "send_recv": ["show", "corpus/handmade/send_recv.txt"],
    "dynamic_sizes": ["show", "corpus/handmade/dynamic_sizes.txt"],
    "unknown_opcode": ["show", "corpus/invalid/unknown_opcode.txt"],
    "two_files": ["show", "--limit", "2", "corpus/handmade/map.txt", "corpus/handmade/domain.txt"],
    "instruction_all_reduce": ["show", TPU, "-i", "all-reduce.4"],
    "instruction_fusion": ["show", TPU, "--instruction", "%convolution_add_fusion"],
    "instruction_async": ["show", "corpus/handmade/async_start.txt", "-i", "u"],
    "instruction_copy": ["show", TPU, "-i", "copy-start.1"],
    "computation": [
        "show",
        "corpus/cpu/ring_attention.cpu_4.after_optimizations.txt",
        "-i",
        "wide.region_0.3_spmd.clone",
    ],
    "json_instruction": ["show", TPU, "-i", "all-reduce.4", "--format", "json"],
    "json_module": ["show", "corpus/cpu/collective_groups.cpu_8.after_optimizations.txt", "--format", "json"],
}


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole report is what the file in tests/data/golden/cli holds."""
    monkeypatch.chdir(support.ROOT)
    result = run(*CASES[case])
    assert result.exit_code == 0, result.stderr
    golden(GOLDEN / f"{case}.txt", result.stdout)


@pytest.mark.parametrize("path", support.corpus_files(), ids=support.corpus_id)
def test_every_module_of_the_corpus(path: Path) -> None:
    """Any real module is shown, as text and as JSON, and the two say the same."""
    report = run("show", path, "--limit", "0")
    assert (report.exit_code, report.stderr) == (0, "")
    facts = module_json(path)
    lines = report.stdout.splitlines()
    name = f"{path}: {facts['name']}"
    if facts["name"] == "_":  # one op line, shown in full
        assert lines[0].startswith(f"{path}:")
        return
    assert lines[0] == name
    assert sum(row["count"] for row in facts["opcodes"]) == facts["instructions"]
    assert sum(row["instructions"] for row in facts["computations"]) == facts["instructions"]
    assert sum(row["count"] for row in facts["collective_groups"]) == len(facts["collectives"])
    for row in facts["opcodes"]:
        assert any(line.split()[:1] == row["opcode"].split()[:1] for line in lines)
    written = sum(row["written"]["allocated_bytes"] for row in facts["memory_spaces"])
    groups = sum(row["allocated_bytes"] * row["count"] for row in facts["largest_arrays"])
    assert written == groups


@pytest.mark.parametrize("path", support.corpus_files(), ids=support.corpus_id)
def test_the_root_of_every_module(path: Path) -> None:
    """The entry's root is found by its name, with its own text."""
    facts = module_json(path)
    root = next(
        row
        for row in run_json("show", path, "-i", facts["entry"])["found"]
        if row["kind"] == "computation" and row["use"] == "entry"
    )["root"]
    found = run_json("show", path, "-i", root["name"])["found"]
    assert any(row["kind"] == "instruction" and row["is_root"] for row in found)


def test_json_has_every_fact() -> None:
    """The keys of a module's JSON are the fields of the summary, and where it comes from."""
    facts = module_json(support.ROOT / TPU)
    assert list(facts) == ["file", "notes", *(field.name for field in attrs.fields(ModuleFacts))]


def test_the_bytes_are_those_of_the_layouts() -> None:
    """Arguments of four weights and a batch, worked out by hand: with tiles, and without."""
    arguments = module_json(support.ROOT / TPU)["arguments"]
    values = 4 * (512 + 256 * 512 + 10 + 512 * 10 + 32 * 256 + 32 * 10)
    tiled = 4 * (512 + 256 * 512 + 128 + 512 * 16 + 32 * 256 + 16 * 128)
    assert (arguments["arrays"], arguments["unpadded_bytes"], arguments["allocated_bytes"]) == (
        6,
        values,
        tiled,
    )


def test_limit_cuts_tables_and_lists() -> None:
    """`--limit` in JSON cuts the long lists; without it they are whole."""
    path = support.ROOT / TPU
    (cut,) = run_json("show", path, "--limit", "2")["modules"]
    assert len(cut["opcodes"]) == 2
    assert len(module_json(path)["opcodes"]) > 10
    assert "... and " in run("show", path, "--limit", "2").stdout
    assert "... and " not in run("show", path, "--limit", "0").stdout


def test_standard_input_and_packed_files(tmp_path: Path) -> None:
    """The same report from a packed file and from standard input, packed or not."""
    path = support.ROOT / TPU
    packed = gzip.compress(path.read_bytes())
    (tmp_path / "a").write_bytes(packed)
    expected = run("show", path).stdout.splitlines()[1:]
    assert run("show", tmp_path / "a").stdout.splitlines()[1:] == expected
    assert run("show", "-", input=path.read_bytes()).stdout.splitlines()[1:] == expected
    assert run("show", "-", input=packed).stdout.splitlines()[1:] == expected


def test_several_modules_in_one_file() -> None:
    """Each module of a file has its own report."""
    text = "".join((support.CORPUS / "handmade" / name).read_text() for name in ("map.txt", "domain.txt"))
    result = run("show", "-", input=text)
    assert re.findall(r"^-: (\w+)$", result.stdout, re.MULTILINE) == ["map", "domain"]


def test_one_op_line_is_shown_in_full() -> None:
    """A line pasted from a dump: its size, and its operands as far as the line tells."""
    line = "add.936 = bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)} add(exponential.183, broadcast.3115)"
    result = run("show", "-", input=line)
    assert "320 MiB" in result.stdout
    assert re.search(r"^  exponential.183 +parameter +\?$", result.stdout, re.MULTILINE)


# ---- names


@pytest.mark.parametrize(
    ("name", "hint"), [("all-reduce.5", "all-reduce.4"), ("reduce_fusion", "reduce"), ("zzzz", "")]
)
def test_an_unknown_name(name: str, hint: str) -> None:
    """Exit status 1, and names that may be meant."""
    result = run("show", support.ROOT / TPU, "-i", name)
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert f"no instruction or computation {name} in" in line
    assert ("did you mean" in line) == bool(hint)
    assert hint in line


def test_a_name_in_one_of_several_files() -> None:
    """What is found in one file is shown; an unreadable file among them makes it status 2."""
    other = support.CORPUS / "handmade" / "map.txt"
    assert run("show", other, support.ROOT / TPU, "-i", "all-reduce.4").exit_code == 0
    assert run("show", "none", support.ROOT / TPU, "-i", "all-reduce.4").exit_code == 2
    assert run("show", "none", support.ROOT / TPU, "-i", "nothing").exit_code == 2


def test_the_neighbours_of_an_instruction() -> None:
    """Operands, users, calls, frames and place are those of the text."""
    (found,) = run_json("show", support.ROOT / TPU, "-i", "all-reduce.4")["found"]
    line = (support.ROOT / TPU).read_text().splitlines()[found["position"]["line"] - 1]
    assert line.strip() == found["text"]
    assert [row["name"] for row in found["operands"]] == re.findall(
        r"%([\w.\-]+)", line.split("all-reduce(")[1].split(")")[0]
    )
    assert {row["name"] for row in found["users"]} == {
        f"get-tuple-element{end}" for end in ("", ".1", ".2", ".3")
    }
    assert all(row["positions"] == [0] for row in found["users"])
    assert found["attributes"]["channel_id"] == "1"
    assert found["attributes"]["to_apply"] == "%region_0.1.clone"
    assert found["attributes"]["backend_config.barrier_config"] == '{"barrier_type": "CUSTOM", "id": "0"}'
    assert [row["name"] for row in found["called_computations"]] == ["region_0.1.clone"]
    assert (found["frames"][0]["file"], found["frames"][0]["line"]) == ("corpus/programs.py", 831)
    assert (found["computation_use"], found["runs"]) == ("entry", 1)


def test_control_dependencies_are_shown() -> None:
    """What must run before and after without a result in common."""
    text = """HloModule m

ENTRY main {
  a = f32[2]{0} parameter(0)
  b = f32[2]{0} negate(a)
  ROOT c = f32[2]{0} abs(a), control-predecessors={b}
}
"""
    assert "runs after   b" in run("show", "-", "-i", "c", input=text).stdout
    assert "runs before  c" in run("show", "-", "-i", "b", input=text).stdout


# ---- words


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "?"), (0, "0 B"), (999, "999 B"), (1000, "0.98 KiB"), (1024, "1.00 KiB"),
        (10229, "9.99 KiB"), (10240, "10.0 KiB"), (102348, "99.9 KiB"), (1023 * 1024, "1.00 MiB"),
        (1 << 30, "1.00 GiB"), (1 << 62, "4.00 EiB"),
    ],
)  # fmt: skip
def test_bytes_for_people(count: int | None, text: str) -> None:
    """Three digits and a binary unit."""
    assert byte_text(count) == text


def test_long_words_are_cut_in_the_middle() -> None:
    """Both ends stay; never longer than asked for."""
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghijk", 10) == "abcd...ijk"
    assert all(len(shortened("x" * 100, width)) == width for width in range(5, 60))


def test_the_sample_needs_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its place is said, so that other commands can be given it."""
    shown = run("show", "--sample").output
    monkeypatch.chdir(tmp_path)
    place, _, elsewhere = run("show", "--sample").output.partition(": ")
    assert Path(place).is_absolute()
    assert Path(place).samefile(support.ROOT / TPU)
    assert elsewhere == shown.partition(": ")[2]
    assert run("show").exit_code == 2


LOOP = """HloModule m, is_scheduled=true

body {
  s = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[8]{0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[8]{0}) tuple(j, v)
}

cond {
  s = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT lt = pred[] compare(i, n), direction=LT
}

ENTRY e {
  zero = s32[] constant(0)
  p = f32[8]{0} parameter(0)
  t = (s32[], f32[8]{0}) tuple(zero, p)
  while.1 = (s32[], f32[8]{0}) while(t), condition=cond, body=body
  ROOT r = f32[8]{0} negate(while.1#1)
}
"""


def test_a_loop_has_its_trip_count_and_elements_have_the_names_that_the_text_has() -> None:
    shown = run("show", "-", "-i", "while.1", input=LOOP).stdout
    assert "trip count   5" in shown
    assert "while.1#1  get-tuple-element" in shown
    assert "while.1_1" not in shown
    assert "\n  shape  " not in shown


@pytest.mark.parametrize("command", [["show"], ["cost"], ["verify"], ["grep", "add(...)"]])
@pytest.mark.parametrize("name", ["m.hlo.pb", "m.hlo.pb.gz"])
def test_a_folder_holds_protos_under_any_name(command: list[str], name: str, tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf")
    data = hlo.parse("ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] add(x, x) }").to_proto()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    result = run(*command, tmp_path)
    assert result.exit_code == 0, result.stderr
