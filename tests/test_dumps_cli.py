"""`hlotext dump`: what a folder tells, for people and for programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hlotext import diff
from tests.cli_support import run, run_json
from tests.dump_cases import DUMPS, unpacked

GPU = DUMPS / "gpu.loops.tar.xz"
TAGGED = DUMPS / "cpu.reductions.tagged.tar.xz"


def test_list() -> None:
    """One compilation with its stages, devices and files."""
    result = run("dump", "list", GPU)
    assert result.exit_code == 0
    for words in ("NVIDIA H100 80GB HBM3", "every change", "Copy insertion", "priority-fusion"):
        assert words in result.stdout
    facts = run_json("dump", "list", GPU)
    (c,) = facts["compilations"]
    assert (c["name"], c["platform"], c["steps"], c["dumps_every_change"]) == ("jit_f", "gpu", 82, True)
    assert c["stages"]["copies"] == 6


def test_list_of_several() -> None:
    """A row for each."""
    result = run("dump", "list", DUMPS / "cpu.timestamps.tar.xz")
    assert result.stdout.count("jit_f") >= 3
    facts = run_json("dump", "list", DUMPS / "cpu.timestamps.tar.xz")
    assert [c["number"] for c in facts["compilations"]] == [0, 2, 4]


def test_timeline() -> None:
    """Every step with what it did and how long it took."""
    facts = run_json("dump", "timeline", GPU)
    assert len(facts["steps"]) == 82
    (rename,) = [step for step in facts["steps"] if step["pass"] == "rename-instructions"]
    assert len(rename["changes"]["renamed"]) > 50
    assert not rename["changes"]["added"]
    assert rename["milliseconds"] > 0
    text = run("dump", "timeline", GPU).stdout
    assert "priority-fusion" in text
    assert "steps without changes" in text
    assert max(map(len, text.splitlines())) <= 115
    assert len(run("dump", "timeline", GPU, "--all").stdout.splitlines()) > 82
    fusion = run_json("dump", "timeline", GPU, "--stage", "fusion")
    assert {step["stage"] for step in fusion["steps"]} == {"fusion"}
    assert fusion["steps"] == [step for step in facts["steps"] if step["stage"] == "fusion"]


def test_which_compilation() -> None:
    """One of several must be chosen."""
    several = DUMPS / "cpu.timestamps.tar.xz"
    result = run("dump", "timeline", several)
    assert result.exit_code == 2
    assert "choose one with -m" in result.stderr
    assert run_json("dump", "timeline", several, "-m", "2")["number"] == 2
    assert run("dump", "timeline", several, "-m", "nonsense").exit_code == 1


def test_compilations_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    text = "HloModule jit_f\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "module_0001.jit_f.cpu_after_optimizations.txt").write_text(text)
    said = run("dump", "timeline", tmp_path).stderr
    assert f"2 compilations in 2 folders: name one of {tmp_path}/one, {tmp_path}/two" in said


def test_trace_and_back() -> None:
    """Down to the program, and up again."""
    facts = run_json("dump", "trace", TAGGED, "-i", "abs.0")
    (link,) = facts["traces"]["abs.0"]
    assert (link["instruction"], link["confidence"]) == ("abs.1", "high")
    back = run_json("dump", "trace", TAGGED, "-i", "abs.1", "--forward")
    assert "abs.0" in [entry["instruction"] for entry in back["traces"]["abs.1"]]
    assert "abs.1" in run("dump", "trace", TAGGED, "-i", "abs.0").stdout
    assert run("dump", "trace", TAGGED, "-i", "nonsense").exit_code == 1


def test_why_and_copies() -> None:
    """The pass and the cause, and the tally."""
    (cause,) = run_json("dump", "why", GPU, "-i", "copy.36")["causes"]
    assert (cause["cause"], cause["stage"], cause["bytes"]) == ("interference", "copies", 4)
    assert "copy-insertion" in run("dump", "why", GPU, "-i", "copy.36").stdout
    text = " ".join(run("dump", "why", GPU, "-i", "wrapped_compare").stdout.split())
    assert re.search(r"fusion-wrapper added it.* it runs [\w.]+: (?!fusion-wrapper)\S", text)
    assert "it runs" not in run("dump", "why", GPU, "-i", "copy.36").stdout
    copies = run_json("dump", "copies", GPU)["copies"]
    assert {one["opcode"] for one in copies} == {"copy"}
    assert len(copies) == 8
    assert "8 copies" in run("dump", "copies", GPU).stdout
    tpu = run_json("dump", "copies", DUMPS / "tpu.mlp_train.tagged.tar.xz")["copies"]
    assert {one["cause"] for one in tpu} == {"memory space"}


@pytest.mark.parametrize("command", ["list", "timeline", "copies"])
def test_unreadable(command: str, tmp_path: Path) -> None:
    """One line and exit status 2."""
    for path in (tmp_path / "nowhere", tmp_path):
        result = run("dump", command, path)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1


def _write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_bad_folders_give_notes_never_exceptions(tmp_path: Path) -> None:
    """Cut off, empty, binary, of another module, of two processes, without an end."""
    folder = unpacked("cpu.conditionals.tagged", tmp_path)
    steps = sorted(folder.glob("*.0*.txt"))
    steps[3].write_text(steps[3].read_text()[:300])
    steps[4].write_bytes(b"\x00\xff" * 50)
    steps[5].write_text("")
    steps[6].write_text(steps[6].read_text().replace("HloModule jit_f", "HloModule jit_other", 1))
    steps[7].rename(folder / f"{steps[7].name}.xz")
    next(folder.glob("*cpu_after_optimizations.txt")).unlink()
    _write(
        folder, {f"module_0000.jit_f.{number:04d}.a.after_x.before_y.txt": "HloModule" for number in (3, 9)}
    )
    facts: dict[str, Any] = run_json("dump", "list", folder)
    codes = {note["code"] for c in facts["compilations"] for note in c["notes"]}
    assert codes >= {"no-final-text", "overwritten"}
    timeline = run_json("dump", "timeline", folder)
    notes = [step["note"] for step in timeline["steps"] if step["note"]]
    assert any("truncated" in note for note in notes)
    assert any("contains module jit_other" in note for note in notes)
    assert run("dump", "timeline", folder).exit_code == 0
    assert run("dump", "copies", folder).exit_code == 1
    assert json.loads(run("dump", "list", folder, "--format", "json").stdout)


def test_copies_and_transposes_that_are_executed(tmp_path: Path) -> None:
    """A transpose that is a fusion of its own is listed by that name; one inside a fusion that computes costs nothing."""
    text = """HloModule m, is_scheduled=true

%moving (p: f32[8,4]) -> f32[4,8] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %transpose.1 = f32[4,8]{1,0} transpose(%p), dimensions={1,0}
}

%computing (q: f32[8,4]) -> f32[4,8] {
  %q = f32[8,4]{1,0} parameter(0)
  %transpose.2 = f32[4,8]{1,0} transpose(%q), dimensions={1,0}
  ROOT %negate.2 = f32[4,8]{1,0} negate(%transpose.2)
}

ENTRY %main (x: f32[8,4]) -> (f32[4,8], f32[4,8]) {
  %x = f32[8,4]{1,0} parameter(0)
  %wrapped = f32[4,8]{1,0} fusion(%x), kind=kLoop, calls=%moving
  %fused = f32[4,8]{1,0} fusion(%x), kind=kLoop, calls=%computing
  ROOT %out = (f32[4,8]{1,0}, f32[4,8]{1,0}) tuple(%wrapped, %fused)
}
"""
    (tmp_path / "module_0000.m.gpu_after_optimizations.txt").write_text(text)
    assert [one["instruction"] for one in run_json("dump", "copies", tmp_path)["copies"]] == ["transpose.1"]
    shown = run("dump", "copies", tmp_path).stdout
    assert "0 copies and 1 transpose, 128 B" in shown
    assert "wrapped" in shown


def test_a_transpose_that_keeps_every_byte_in_place_is_no_copy(tmp_path: Path) -> None:
    """Its layout is permuted as its dimensions are; the one beside it keeps the layout and moves."""
    text = """HloModule m, is_scheduled=true

ENTRY e {
  a = f32[8,4]{1,0} parameter(0)
  b = f32[4,8]{0,1} transpose(a), dimensions={1,0}
  c = f32[4,8]{1,0} transpose(a), dimensions={1,0}
  ROOT r = (f32[4,8]{0,1}, f32[4,8]{1,0}) tuple(b, c)
}
"""
    _write(tmp_path, {"module_0000.m.cpu_after_optimizations.txt": text})
    assert [one["instruction"] for one in run_json("dump", "copies", tmp_path)["copies"]] == ["c"]


CONVOLVED = """HloModule jit_f

ENTRY e {
  x = f32[1,8,8,4]{3,2,1,0} parameter(0)
  k = f32[3,3,4,4]{3,2,1,0} parameter(1)
  ROOT conv.5 = f32[1,6,6,4] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f, metadata={op_name="f/conv"}
}
"""
CALLED = """HloModule jit_f

ENTRY e {
  x = f32[1,8,8,4]{3,2,1,0} parameter(0)
  k = f32[3,3,4,4]{3,2,1,0} parameter(1)
  ROOT cc = f32[1,6,6,4]{3,2,1,0} custom-call(x, k), custom_call_target="__cudnn$convForward", metadata={op_name="f/conv"}
}
"""


def test_why_says_what_a_pass_did_to_this_operation(tmp_path: Path) -> None:
    """Not what its stage is for: the operation that it replaced; each row has a name, and nothing is said twice."""
    pipeline = "module_0000.jit_f.{}.conv_canonicalization.after_{}.before_{}.txt"
    for name, text in (
        ("module_0000.jit_f.before_optimizations.txt", CONVOLVED),
        (pipeline.format("0000", "pipeline-start", "conv-rewriter"), CONVOLVED),
        (pipeline.format("0001", "conv-rewriter", "pipeline-end"), CALLED),
        ("module_0000.jit_f.sm_9.0_gpu_after_optimizations.txt", CALLED),
    ):
        (tmp_path / name).write_text(text)
    said = run("dump", "why", tmp_path, "-i", "cc").stdout
    assert "because      conv-rewriter replaced convolution conv.5 with it" in said
    assert all(len(line.strip().split("  ")) > 1 for line in said.splitlines()[1:])


PLAIN = """HloModule jit_f

ENTRY e {
  x = f32[4,8]{1,0} parameter(0)
  ROOT n = f32[4,8]{1,0} negate(x)
}
"""
TURNED = """HloModule jit_f

ENTRY e {
  x = f32[4,8]{1,0} parameter(0)
  t = f32[8,4]{1,0} transpose(x), dimensions={1,0}
  u = f32[4,8]{1,0} transpose(t), dimensions={1,0}
  ROOT n = f32[4,8]{1,0} negate(u)
}
"""


@pytest.mark.parametrize(
    ("steps", "because", "confidence"),
    [
        ([("pipeline-start", "algsimp", PLAIN), ("algsimp", "dce", TURNED)], "algsimp added it", "high"),
        (
            [("algsimp", "pipeline-end", PLAIN), ("pipeline-start", "fusion", TURNED)],
            "compiler code between algsimp and second added it",
            "low",
        ),
    ],
    ids=["a pass", "between passes"],
)
def test_why_is_as_sure_as_the_pass_is_known(
    tmp_path: Path, steps: list[tuple[str, str, str]], because: str, confidence: str
) -> None:
    files = {"module_0000.jit_f.before_optimizations.txt": PLAIN}
    for number, (after, before, text) in enumerate(steps):
        pipeline = "second" if number and after == "pipeline-start" else "simplification"
        files[f"module_0000.jit_f.{number:04}.{pipeline}.after_{after}.before_{before}.txt"] = text
    files["module_0000.jit_f.sm_9.0_gpu_after_optimizations.txt"] = TURNED
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (cause,) = json.loads(run("dump", "why", tmp_path, "-i", "t", "--format", "json").stdout)["causes"]
    assert cause["because"].startswith(because)
    assert cause["confidence"] == confidence


def test_the_start_of_a_pipeline_has_its_name(tmp_path: Path) -> None:
    pipeline = "module_0000.jit_f.{}.conv_canonicalization.after_{}.before_{}.txt"
    for name, text in (
        ("module_0000.jit_f.before_optimizations.txt", CALLED),
        (pipeline.format("0000", "pipeline-start", "conv-rewriter"), CONVOLVED),
        ("module_0000.jit_f.sm_9.0_gpu_after_optimizations.txt", CALLED),
    ):
        (tmp_path / name).write_text(text)
    said = run("dump", "timeline", tmp_path).stdout
    assert "start of conv_canonicalization" in said
    assert "pipeline-start" not in said


def test_a_fusion_that_cuts_and_transposes_is_a_transpose(tmp_path: Path) -> None:
    """It is a kernel that only moves elements, as much as one without the slice."""
    text = """HloModule m, is_scheduled=true

cutting {
  p = f32[8,8]{1,0} parameter(0)
  s = f32[8,4]{1,0} slice(p), slice={[0:8], [4:8]}
  ROOT t = f32[4,8]{1,0} transpose(s), dimensions={1,0}
}

ENTRY e {
  a = f32[8,8]{1,0} parameter(0)
  ROOT r = f32[4,8]{1,0} fusion(a), kind=kInput, calls=cutting
}
"""
    _write(tmp_path, {"module_0000.m.gpu_after_optimizations.txt": text})
    assert "0 copies and 1 transpose, 128 B" in run("dump", "copies", tmp_path).stdout


def test_a_copy_into_another_layout_and_memory_is_there_for_the_layout(tmp_path: Path) -> None:
    """One that keeps the layout is there for the memory space."""
    text = """HloModule m, is_scheduled=true

ENTRY e {
  a = f32[8,4]{1,0:S(1)} parameter(0)
  b = f32[8,4]{0,1} copy(a)
  c = f32[8,4]{1,0} copy(a)
  ROOT r = (f32[8,4]{0,1}, f32[8,4]{1,0}) tuple(b, c)
}
"""
    _write(tmp_path, {"module_0000.m.cl_1.after_optimizations.txt": text})
    found = run_json("dump", "copies", tmp_path)["copies"]
    assert [one["cause"] for one in found] == ["layout", "memory space"]
    assert "it also moves from memory space 1 to the device's main memory" in found[0]["because"]


def test_two_folders_with_one_compilation_each_are_compared_under_any_names(tmp_path: Path) -> None:
    """Nothing else can be meant; where more is left on a side, the command for two texts is named."""
    text = (
        "HloModule jit_NAME\n\nENTRY e {\n  a = TYPE[8]{0} parameter(0)\n  ROOT n = TYPE[8]{0} negate(a)\n}\n"
    )
    old, new = (
        text.replace("NAME", "f").replace("TYPE", "f32"),
        text.replace("NAME", "g").replace("TYPE", "s32"),
    )
    for folder, files in (("old", {"0000.jit_f": old}), ("new", {"0000.jit_g": new})):
        (tmp_path / folder).mkdir()
        _write(tmp_path / folder, {f"module_{n}.cpu_after_optimizations.txt": t for n, t in files.items()})
    shown = run("diff", tmp_path / "old", tmp_path / "new").stdout
    assert (
        "1 compilation in both folders, one of them under different names, paired as the only ones left"
        in shown
    )
    assert "jit_f (module 0) -> jit_g (module 0)" in shown
    _write(tmp_path / "new", {"module_0001.jit_h.cpu_after_optimizations.txt": new.replace("jit_g", "jit_h")})
    shown = run("diff", tmp_path / "old", tmp_path / "new").stdout
    assert "0 compilations in both folders" in shown
    assert "hlotext diff " in shown
    texts = [next((tmp_path / folder).glob("module_0000*")) for folder in ("old", "new")]
    assert "element type f32 -> s32 in argument" in run("diff", *texts).stdout


def test_what_is_left_beside_a_pair_is_not_compared(tmp_path: Path) -> None:
    """Of several programs in a folder the last ones need not be the same program."""
    text = "HloModule jit_NAME\n\nENTRY e {\n  a = f32[8]{0} parameter(0)\n  ROOT n = f32[8]{0} OP(a)\n}\n"
    for folder, names in (("old", {"f": "negate", "g": "sine"}), ("new", {"f": "negate", "h": "cosine"})):
        (tmp_path / folder).mkdir()
        for number, (name, opcode) in enumerate(names.items()):
            file = f"module_{number:04d}.jit_{name}.cpu_after_optimizations.txt"
            _write(tmp_path / folder, {file: text.replace("NAME", name).replace("OP", opcode)})
    report = diff.folders(tmp_path / "old", tmp_path / "new")
    assert [(pair.old.name, pair.new.name) for pair in report.pairs] == [("jit_f", "jit_f")]
    assert [one.name for one in (*report.only_old, *report.only_new)] == ["jit_g", "jit_h"]


def test_counts_in_a_folder_say_which_texts_were_searched(tmp_path: Path) -> None:
    text = "HloModule m\n\nENTRY e {\n  a = f32[8]{0} parameter(0)\n  ROOT n = f32[8]{0} negate(a)\n}\n"
    _write(tmp_path, {"module_0000.m.cpu_after_optimizations.txt": text})
    assert "--which all searches every pass" in run("grep", "-c", "negate(_)", tmp_path).stderr


def test_a_transpose_that_is_cut_moves_what_is_left_of_it(tmp_path: Path) -> None:
    text = """HloModule m, is_scheduled=true

cutting {
  p = f32[8,8]{1,0} parameter(0)
  t = f32[8,8]{1,0} transpose(p), dimensions={1,0}
  ROOT s = f32[4,8]{1,0} slice(t), slice={[4:8], [0:8]}
}

ENTRY e {
  a = f32[8,8]{1,0} parameter(0)
  ROOT r = f32[4,8]{1,0} fusion(a), kind=kInput, calls=cutting
}
"""
    _write(tmp_path, {"module_0000.m.gpu_after_optimizations.txt": text})
    assert "0 copies and 1 transpose, 128 B" in run("dump", "copies", tmp_path).stdout


_COPIES = """HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

%body (s: (s32[], f32[64,8], f32[64,8])) -> (s32[], f32[64,8], f32[64,8]) {
  %s = (s32[], f32[64,8]{1,0}, f32[64,8]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %a = f32[64,8]{1,0} get-tuple-element(%s), index=1
  %b = f32[64,8]{1,0} get-tuple-element(%s), index=2
  %handed = f32[64,8]{1,0} copy(%b)
  %kept = f32[64,8]{1,0} copy(%a)
  %n = f32[64,8]{1,0} negate(%kept)
  ROOT %t = (s32[], f32[64,8]{1,0}, f32[64,8]{1,0}) tuple(%i, %handed, %n)
}

%cond (c: (s32[], f32[64,8], f32[64,8])) -> pred[] {
  %c = (s32[], f32[64,8]{1,0}, f32[64,8]{1,0}) parameter(0)
  %j = s32[] get-tuple-element(%c), index=0
  ROOT %l = pred[] compare(%j, %j), direction=LT
}

ENTRY %e (cache: f32[64,8], row: f32[1,8], at: s32[], y: f32[64,8]) -> (f32[64,8], f32[64,8], f32[64,8]) {
  %cache = f32[64,8]{1,0} parameter(0)
  %row = f32[1,8]{1,0} parameter(1)
  %at = s32[] parameter(2)
  %y = f32[64,8]{1,0} parameter(3)
  %saved = f32[64,8]{1,0} copy(%cache)
  %new = f32[64,8]{1,0} dynamic-update-slice(%saved, %row, %at, %at)
  %old = f32[64,8]{1,0} exponential(%cache)
  %turned = f32[64,8]{0,1} copy(%y)
  %sine = f32[64,8]{0,1} sine(%turned)
  %start = (s32[], f32[64,8]{1,0}, f32[64,8]{1,0}) tuple(%at, %old, %old)
  %loop = (s32[], f32[64,8]{1,0}, f32[64,8]{1,0}) while(%start), condition=%cond, body=%body
  %end = f32[64,8]{1,0} get-tuple-element(%loop), index=1
  ROOT %r = (f32[64,8]{1,0}, f32[64,8]{1,0}, f32[64,8]{0,1}) tuple(%new, %end, %sine)
}
"""


def test_copies_say_what_to_change(tmp_path: Path) -> None:
    """Only where the text proves it: a copy that stays in its element of the state says nothing."""
    folder = _write(tmp_path, {"module_0000.jit_f.cpu_after_optimizations.txt": _COPIES})
    found = {one["instruction"]: one for one in run_json("dump", "copies", folder)["copies"]}
    assert {name: one["cause"] for name, one in found.items()} == {
        "handed": "loop state",
        "kept": "unknown",
        "saved": "old value read",
        "turned": "layout",
    }
    assert found["saved"]["because"].endswith("but its old value is also read by old")
    assert "let old read the new value of cache" in found["saved"]["change"]
    assert (
        found["handed"]["because"]
        == "element 2 of the state of loop loop becomes element 1 in each iteration"
    )
    assert "unroll=2" in found["handed"]["change"]
    assert "keep y in that layout" in found["turned"]["change"]
    assert "major_to_minor=(1, 0)" in found["turned"]["change"]
    assert found["kept"]["change"] == ""
    assert "How to avoid them" in run("dump", "copies", folder).stdout
    assert "to avoid it" in run("dump", "why", folder, "-i", "saved").stdout
    returned = _COPIES.replace("%end, %sine)", "%end, %turned)")
    _write(tmp_path, {"module_0000.jit_f.cpu_after_optimizations.txt": returned})
    found = {one["instruction"]: one for one in run_json("dump", "copies", folder)["copies"]}
    assert (found["turned"]["cause"], found["turned"]["change"]) == ("layout", "")
    only = _COPIES.replace("exponential(%cache)", "exponential(%y)")
    _write(tmp_path, {"module_0000.jit_f.cpu_after_optimizations.txt": only})
    found = {one["instruction"]: one for one in run_json("dump", "copies", folder)["copies"]}
    assert found["saved"]["cause"] == "unknown"
