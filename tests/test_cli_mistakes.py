"""Mistakes on the command line: each is answered in one or two lines that name it or say what to type."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import Result

import hlotext as hlo
from hlotext.cli.show_modules import recompiled
from tests import support
from tests.cli_support import run

CORPUS = {
    "MODULE": "corpus/cpu/data_parallel.cpu_4.0006.spmd-cleanup.after_dce.before_tuple-simplifier.txt",
    "RING": "corpus/cpu/ring_attention.cpu_4.after_optimizations.txt",
    "GPU": "corpus/gpu/resnet_train.h100_1x1x1.after_optimizations.txt",
    "DUMPS": "tests/data/dumps",
    "PACKED": "tests/data/dumps/cpu.mlp_train.tar.xz",
}
STEP = b"HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT negate.5 = f32[4]{0} negate(p)\n}\n"
CONTENTS = {
    "STEP": STEP,
    "ALONE": STEP.replace(
        b"m\n", b'm, frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\\"d\\"=1]>}"}\n', 1
    ),
    "EMPTY": b"",
    "BINARY": bytes(range(256)),
    "PROGRAM": b"\x7fELF\x02\x01\x01" + bytes(60),
    "PYTHON": b"import jax\n",
    "MLIR": b"module @m {\n}\n",
    "LIST": b"[1, 2, 3]\n",
    "PTX": b".version 8.0\n.target sm_90\n",
    "SCRIPT": b'print("hi")\n',
    "STRAY": b"[tool.hlotext]\nfoo = 1\n",
    "UTF16": "HloModule m\n".encode("utf-16"),
    "JSON": b'{"a": 1}',
    "GZIP": bytes.fromhex("1f8b08000000000000034b4c4a"),
    "TAR": b"junk" * 200,
    "STEPTAR": STEP,
    "DIFF": b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
    "NPZ": b"PK\x03\x04" + bytes(26) + b"x.npy\x93NUMPY",
    "QUOTED": b"".join(b"> " + line + b"\n" for line in STEP.splitlines()),
    "NOFIELD": b'{"hloModule": {"nam": "x"}}',
    "LINES": b"".join(STEP.splitlines(keepends=True)[3:5]),
    "WRONGSHAPE": STEP.replace(b"negate.5 = f32[4]", b"negate.5 = f32[5]"),
    "UTF16BE": "HloModule m\n".encode("utf-16-be"),
    "SETTINGS": b"replica_count: 1\nnum_partitions: 1\n",
    "MESSAGE": b"device_info {\n  threads_per_block_limit: 1024\n}\n",
    "TWO": STEP + STEP.replace(b"HloModule m", b"HloModule m2"),
    "UNMARKED": STEP.replace(b"ENTRY ", b""),
    "UNQUOTED": b"[lint]\nprofile = tpu\n",
    "NOTEBOOK": b'{\n "cells": [],\n "nbformat": 4\n}\n',
    "NUMPY": b"\x93NUMPY\x01\x00v\x00",
    "PICKLE": b"\x80\x04]\x94.",
    "MISSPELT": STEP.replace(b"negate(", b"negat("),
    "SHARE": b"[tool.hlotext.lint]\nwarn = 5\n",
    "RETIRED": b"[lint]\nmin-bytes = 5\n",
    "ARCHIVE": b"PK\x05\x06" + bytes(18),
    "OPTION": b"[tool.hlotext.lint]\nfail_on = 'warnings'\n",
    "TOOL": b"[tool.hlotxt.lint]\nselect = ['C101']\n",
    "YAML": b"lint:\n  select: C101\n",
    "GROUPS": STEP.replace(b"negate(p)", b"all-gather(p), dimensions={0}, replica_groups=[2,2]<=[8]"),
    "HEADER": STEP.replace(b"m\n", b"m, entry_computation_layout={(f32[4]{0})->f32[4]{0}\n", 1),
    "CUT": STEP[: STEP.rindex(b"f32") + 2],
}
FOLDERS = ("FOLDER", "NONE", "MODULES", "CLOSED")
NAMES = {
    "TAR": "junk.tar",
    "STEPTAR": "step.tar",
    "LOCKED": "locked",
    **{word: word.lower() for word in FOLDERS},
}
WITHOUT = (
    "import sys; sys.modules[sys.argv.pop()] = None; from hlotext.cli import main; main(prog_name='hlotext')"
)
LINES = [line.split("|") for line in (support.DATA / "mistakes.txt").read_text("utf-8").splitlines()[3:]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the lines, by names relative to this folder."""
    found = tmp_path_factory.mktemp("mistakes")
    for word, content in CONTENTS.items():
        (found / place(word)).write_bytes(content)
    for word in FOLDERS:
        (found / place(word)).mkdir()
    (found / place("MODULES") / "step").write_bytes(STEP)
    (found / place("LOCKED")).write_bytes(STEP)
    for word in ("LOCKED", "CLOSED"):
        (found / place(word)).chmod(0)
    return found


def place(word: str) -> str:
    """The path that a word in capitals stands for; other words as they are."""
    if word in CORPUS:
        return str(support.ROOT / CORPUS[word])
    return NAMES.get(word, word.lower() if word in CONTENTS else word)


@attrs.frozen
class Ended:
    """How a process of its own has ended."""

    stdout: str
    stderr: str
    exit_code: int


def run_apart(arguments: list[str], missing: str) -> Ended:
    """Runs a command in a process without a package, or in one that may not read every file, as root may."""
    command = [sys.executable, "-c", WITHOUT, *arguments, missing or "no_such_package"]
    if not missing and os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may read everything")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return Ended(done.stdout, done.stderr, done.returncode)


@pytest.mark.parametrize(("line", "status", "said"), LINES)
def test_mistakes(line: str, status: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most two lines, the first of which says what is wrong; nothing on standard output, but for what is marked so."""
    monkeypatch.chdir(folder)
    words, _, missing = line.partition(" WITHOUT ")
    arguments = list(map(place, shlex.split(words)))
    if missing or "LOCKED" in words or "CLOSED" in words:
        result: Ended | Result = run_apart(arguments, missing)
    else:
        result = run(*arguments)
    if not missing and "an extra: pip install" in result.stderr:
        pytest.skip(result.stderr)
    lines = result.stderr.splitlines()
    assert re.sub(r"{([A-Z]+)}", lambda match: place(match[1]), said) in lines[0]
    assert len(lines) <= 2
    assert max(len(re.sub(rf"{re.escape(str(support.ROOT))}\S*", "FILE", line)) for line in lines) <= 160
    assert (result.stdout == "") is not status.endswith("+")
    assert result.exit_code == int(status[0])


def test_a_value_that_is_missing_names_the_help_of_its_command() -> None:
    assert "Try 'hlotext show --help'" in run("show", "x.txt", "-i").stderr


def test_the_default_condition_may_be_written(folder: Path) -> None:
    """The help shows it as the default."""
    step = str(folder / "step")
    assert run("lint", step, "--fail-on", "warnings").exit_code == run("lint", step).exit_code == 0


def test_a_letter_for_a_digit_in_a_code() -> None:
    result = run("lint", str(support.CORPUS / "handmade" / "map.txt"), "--select", "M1O3")
    assert (result.exit_code, "did you mean `M103`?" in result.stderr) == (2, True)


TWO = """HloModule m, entry_computation_layout={(f32[4]{0}, f32[4]{0})->f32[4]{0}}

first {
  p = f32[4]{0} parameter(0)
  ROOT n = f32[4]{0} negate(p)
}

second {
  q = f32[4]{0} parameter(0)
  ROOT o = f32[4]{0} negate(q)
}
"""


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("memory --platform cpu", 2),
        ("cost", 2),
        ("comm", 2),
        ("triage", 2),
        ("thunks --platform cpu", 2),
        ("lint", 0),
        ("check", 0),
        ("show", 0),
    ],
)
def test_a_text_that_is_cut_before_its_entry_is_said_to_be(tmp_path: Path, command: str, status: int) -> None:
    """A helper is taken for the entry, which the header contradicts: no figure of it passes for the program's.

    Without a contradiction it is named only.
    """
    (tmp_path / "m.txt").write_text(TWO)
    name, *more = command.split()
    ended = run(name, tmp_path / "m.txt", *more)
    told = ended.stdout + ended.stderr if name == "triage" else ended.stderr
    assert ended.exit_code == status
    if status:
        assert "peak" not in ended.stdout
        assert "flops" not in ended.stdout
    assert "no ENTRY; assuming the last computation, second" in told
    assert "the text is probably truncated before ENTRY" in told
    (tmp_path / "m.txt").write_text("HloModule m" + TWO[TWO.index("\n") :])
    told = run(name, tmp_path / "m.txt", *more).stderr
    assert name == "triage" or "note: no ENTRY; assuming the last computation, second" in told
    assert "probably" not in told


def test_a_fault_of_hlotext_is_no_missing_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that hlotext itself misses is said to be its own fault; the bare key would say nothing."""
    pytest.importorskip("jinja2")

    def missing(*_: Any, **__: Any) -> Any:
        raise KeyError(6)

    (tmp_path / "m.txt").write_bytes(STEP)
    monkeypatch.setattr("hlotext.view.report.report_page", missing)
    ended = run("report", tmp_path / "m.txt", "-o", "-")
    assert (ended.exit_code, "internal error: KeyError: 6" in ended.stderr) == (2, True)


def test_a_place_without_permission_is_said_once(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "m.txt").write_bytes(STEP)
    ended = run("table", tmp_path / "m.txt", "-o", "/proc/tab")
    assert ended.exit_code == 2
    assert re.fullmatch(r"hlotext: /proc/tab cannot be written: [\w ]+\n", ended.stderr)


def test_memory_of_stablehlo_says_that_nothing_was_compiled(tmp_path: Path) -> None:
    pytest.importorskip("jaxlib")
    pytest.importorskip("google.protobuf")
    function = (
        "func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n return %a : tensor<4xf32>\n }\n"
    )
    text = "module @m {\n" + function + "}\n"
    (tmp_path / "m.mlir").write_text(text)
    told = run("memory", tmp_path / "m.mlir").stderr
    assert "the program before compilation" in told
    assert "--platform" in told


def test_where_nothing_is_read_says_what_would_be(tmp_path: Path) -> None:
    (tmp_path / "nohlo").mkdir()
    for command in ("show", "memory", "triage"):
        assert "it has no HLO as text, .hlo.pb or .hlo.json" in run(command, tmp_path / "nohlo").stderr
    (tmp_path / "link.txt").symlink_to("/nonexistent/foo")
    assert (
        "link.txt is a link to /nonexistent/foo, which does not exist"
        in run("show", tmp_path / "link.txt").stderr
    )


def test_a_pattern_says_which_bracket_is_open(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_bytes(STEP)
    told = run("grep", "f32[* dot(", tmp_path / "m.txt").stderr
    assert "column 4: `[` is not closed" in told


def test_a_name_without_a_likely_one_leads_to_all_names(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_bytes(STEP)
    told = run("extract", tmp_path / "m.txt", "-i", "dot.1").stderr
    assert "no instruction has the opcode dot; `hlotext grep _ " in told


def test_a_computation_is_extracted_whole() -> None:
    source = "corpus/cpu/ring_attention.cpu_4.after_optimizations.txt"
    module = hlo.load(support.ROOT / source)
    (loop, *_) = (one for one in module.instructions() if one.opcode == "while")
    body = loop.attributes["body"]
    found = run("extract", source, "-i", body.name)
    assert found.exit_code == 0
    assert hlo.parse(found.stdout).entry.root.shape == body.root.shape
    assert len(hlo.parse(found.stdout).entry) >= len(body) / 2


def test_memory_of_an_earlier_stage_names_the_final_text(tmp_path: Path) -> None:
    names = "module_0001.jit_f.before_optimizations.txt", "module_0001.jit_f.cpu_after_optimizations.txt"
    (tmp_path / names[0]).write_bytes(STEP)
    (tmp_path / names[1]).write_bytes(STEP.replace(b"m\n", b"m, is_scheduled=true\n", 1))
    told = run("memory", tmp_path / names[0], "--platform", "cpu").stderr
    assert f"is an earlier stage without a schedule; the program that runs is {names[1]}" in told
    assert "earlier stage" not in run("memory", tmp_path / names[1], "--platform", "cpu").stderr


def test_functions_compiled_for_other_shapes_are_named(tmp_path: Path) -> None:
    for size in (4, 8, 8, 16):
        number = len(list(tmp_path.iterdir()))
        text = STEP.decode().replace("HloModule m", "HloModule jit_f").replace("[4]", f"[{size}]")
        (tmp_path / f"module_{number:04}.jit_f.cpu_after_optimizations.txt").write_text(text)
    told = run("show", tmp_path)
    assert (
        "jit_f was compiled 4 times, for 3 shapes of p: f32[4], f32[8], f32[16]" in told.stdout + told.stderr
    )


def test_builds_for_other_machines_are_no_recompilations(tmp_path: Path) -> None:
    """One program for several platforms or numbers of devices; of each its own recompilations, which name the machine."""
    first, second = (("x", "f32[4]"),), (("x", "f32[8]"),)
    machines = ("cpu", 1), ("gpu", 1), ("gpu", 8), ("", None)
    assert not list(
        recompiled(("f", one, shapes) for one, shapes in zip(machines, [first, second] * 2, strict=True))
    )
    again = list(
        map(str, recompiled(("f", one, shapes) for one in machines[1:] for shapes in (first, second)))
    )
    assert again == [
        f"f ({where}) was compiled 2 times, for 2 shapes of x: f32[4], f32[8]"
        for where in ("gpu, 1 device", "gpu, 8 devices", "unknown platform, unknown devices")
    ]
    for number, words in enumerate(("num_partitions=2", "num_partitions=4")):
        text = (
            STEP.decode()
            .replace("HloModule m", f"HloModule jit_f, {words}")
            .replace("[4]", f"[{8 >> number}]")
        )
        (tmp_path / f"module_{number:04}.jit_f.cpu_after_optimizations.txt").write_text(text)
    for command in ("show", "triage"):
        told = run(command, tmp_path)
        assert "jit_f" in told.stdout
        assert "was compiled" not in told.stdout + told.stderr


def test_programs_that_are_not_builds_of_one_are_said_to_be_so(tmp_path: Path) -> None:
    """Figures that both sides share are named too."""
    (tmp_path / "a.txt").write_bytes(STEP)
    other = STEP.replace(b"HloModule m", b"HloModule n").replace(b" p =", b" q =").replace(b"(p)", b"(q)")
    (tmp_path / "b.txt").write_bytes(other)
    shown = run("diff", tmp_path / "a.txt", tmp_path / "b.txt").stdout
    assert "probably not builds of the same program" in shown
    (tmp_path / "c.txt").write_bytes(STEP.replace(b"negate(", b"abs("))
    ended = run("diff", tmp_path / "a.txt", tmp_path / "c.txt", "--fail-on", "abs+0.5KiB,negate")
    assert "probably" not in ended.stdout
    assert re.search(r"equal totals +operations, flops, bytes", ended.stdout)


def test_a_crossed_bound_is_repeated_as_it_was_typed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(STEP)
    (tmp_path / "b.txt").write_bytes(STEP.replace(b"[4]", b"[1024]"))
    told = run("diff", tmp_path / "a.txt", tmp_path / "b.txt", "--fail-on", "bytes+1KiB").stderr
    assert "bytes+1KiB is exceeded: bytes was 32 (32 B), is now 8,192 (8.00 KiB)" in told


@pytest.mark.parametrize(
    "text",
    [
        STEP.replace(b"negate(p)", b"negate(p"),
        STEP.replace(b"{0} negate", b"{0 negate"),
        STEP[:-2],
        STEP.replace(b"(p)", b"(q)"),
    ],
)
def test_all_commands_give_the_same_error(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "m.txt").write_bytes(text)
    with pytest.raises(hlo.HloSyntaxError) as caught:
        hlo.load(tmp_path / "m.txt")
    for command in ("show", "memory", "cost", "comm", "triage", "thunks", "graph", "fmt"):
        more = ["-o", str(tmp_path / "g.html")] if command == "graph" else []
        ended = run(command, tmp_path / "m.txt", *more)
        assert (ended.exit_code, ended.stderr.splitlines()[0]) == (
            2,
            f"hlotext: {caught.value.diagnostic.brief}",
        )


def test_folders_with_unreadable_texts_are_not_the_same(tmp_path: Path) -> None:
    for folder, text in (("a", STEP), ("b", STEP[:-3])):
        (tmp_path / folder).mkdir()
        for stage in ("before", "cpu_after"):
            written = STEP if stage == "before" else text
            (tmp_path / folder / f"module_0000.m.{stage}_optimizations.txt").write_bytes(written)
    shown = run("diff", tmp_path / "a", tmp_path / "b").stdout
    assert "no differences; not all texts can be compared" in shown
    assert "unknown: " in shown
    assert "error[X101]" in shown


@pytest.mark.parametrize(("value", "said"), [("off", True), ("untouched", False), ("", False)])
def test_a_variable_with_one_value_says_it(
    value: str, said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "step").write_bytes(STEP)
    monkeypatch.setenv("HLOTEXT_GC", value)
    told = "HLOTEXT_GC has one value, untouched, not off" in run("show", tmp_path / "step").stderr
    assert told == said
