"""What holds for all commands: help, exit statuses, bad input, and how they end."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from hlotext.cli import COMMANDS, FORMER, GROUPS, common, help_names, main
from tests import support
from tests.cli_support import run, run_process

RING = "corpus/cpu/ring_attention.cpu_4.after_optimizations.txt"
GPU = "corpus/gpu/resnet_train.h100_1x1x1.after_optimizations.txt"
MODULE = "corpus/cpu/data_parallel.cpu_4.0006.spmd-cleanup.after_dce.before_tuple-simplifier.txt"
READABLE = sorted(support.INVALID.glob("unknown_*.txt"))
"""What a later XLA may write: kept as it stands, with a note."""
UNREADABLE = sorted(set(support.INVALID.iterdir()) - set(READABLE))
READERS = ("show", "fmt")
"""The commands that read modules."""


def command(name: str) -> click.Command:
    found: click.Command = importlib.import_module(f"hlotext.cli.{name}").command
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example(name: str) -> None:
    """`--help` of every command has a line that one can paste."""
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert f"\n    hlotext {name}" in result.stdout


def test_help_lists_the_commands() -> None:
    """The list needs no command to be loaded, so a test says that it names them all, and only what exists."""
    result = run("--help")
    assert result.exit_code == 0
    for name, text in COMMANDS.items():
        assert name in result.stdout
        assert text in result.stdout
        assert command(name).help


def test_help_has_groups() -> None:
    """Every command is in one group, on a line of at most 80 columns."""
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped)) == len(COMMANDS)
    lines = run("--help").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [word for line in lines if (word := line.partition(" ")[0]) in GROUPS] == list(GROUPS)


def test_without_arguments() -> None:
    """The first screen has few commands, each with its question; every line is one that exists."""
    result = run()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) <= 16
    assert max(map(len, lines)) <= 80
    named = [line.partition("hlotext ")[2].split()[0] for line in lines if "hlotext " in line][:-1]
    assert named
    assert set(named) <= set(COMMANDS)


@pytest.mark.parametrize(("former", "now"), FORMER.items())
def test_former_spellings(former: str, now: tuple[str, ...]) -> None:
    """They work, are not listed, and help and schema know them."""
    assert former not in COMMANDS
    words = [word for word in now if not word.startswith("-")]
    assert run(former, "--help").stdout == run(*words, "--help").stdout
    if words[0] != "help":
        assert run("help", former).stdout == run(*words, "--help").stdout
    if former != "schema":
        assert run("schema", former).stdout == run("help", "schema", *words).stdout


def test_an_unknown_command_is_a_usage_error() -> None:
    """Exit status 2, and the word is named."""
    result = run("shwo")
    assert result.exit_code == 2
    assert "shwo" in result.stderr


def test_version() -> None:
    """`--version` gives the version of the package."""
    result = run("--version")
    assert (result.exit_code, result.stdout.split()[0]) == (0, "hlotext")


# ---- bad input


@pytest.mark.parametrize("path", UNREADABLE, ids=lambda path: path.name)
@pytest.mark.parametrize("name", READERS)
def test_a_broken_file_is_one_line_and_status_2(name: str, path: Path) -> None:
    """Whatever is wrong with a file: its name and one line on standard error, nothing on standard output."""
    result = run(name, path)
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"hlotext: {path}")
    assert "internal error" not in line


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.name)
def test_what_a_later_xla_writes_is_shown_with_a_note(path: Path) -> None:
    """Unknown words are no error; the report names them with their place."""
    result = run("show", path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Unknown to this release" in result.stdout
    assert f"{path}:" in result.stdout


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("llvm_ir.ll", "LLVM IR"),
        ("buffer_assignment.txt", "buffer assignment"),
        ("live_range.txt", "live ranges"),
        ("stablehlo.mlir", "StableHLO"),
        ("binary.bin", "binary"),
        ("empty.txt", "empty"),
        ("blank.txt", "only whitespace"),
        ("truncated_compressed.txt.xz", "damaged"),
    ],
)
def test_what_is_no_hlo_is_said_to_be(name: str, words: str) -> None:
    """The message says what the file seems to be."""
    assert words in run("show", support.INVALID / name).stderr


@pytest.mark.parametrize("name", READERS)
def test_places_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    """A folder without modules, a missing file, a file without permission, nothing on standard input."""
    locked = tmp_path / "locked.txt"
    locked.write_text("HloModule m")
    locked.chmod(0)
    (tmp_path / "empty").mkdir()
    cases = [
        (str(tmp_path / "empty"), "no module found"),
        (str(tmp_path / "none"), "not exist"),
        ("-", "empty"),
    ]
    if not os.access(locked, os.R_OK):
        cases.append((str(locked), "cannot be read"))
    for place, words in cases:
        result = run(name, place, input="")
        assert (result.exit_code, result.stdout) == (2, "")
        (line,) = result.stderr.splitlines()
        assert words in line


@pytest.mark.parametrize("name", READERS)
def test_no_file_is_a_usage_error(name: str) -> None:
    """A command that reads files asks for one."""
    assert run(name).exit_code == 2


def test_the_readable_files_are_shown_all_the_same() -> None:
    """One unreadable file among others: reported, exit status 2, and the others come out."""
    result = run("show", MODULE, "no such file", MODULE)
    assert result.exit_code == 2
    assert result.stdout.count(f"{MODULE}: ") == 2
    assert result.stderr.count("\n") == 1


# ---- how commands end


def test_an_unforeseen_error_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of hlotext ends with one line and status 2; HLOTEXT_DEBUG=1 adds the traceback."""

    def fail(place: str, **_: bool) -> None:
        raise RuntimeError("this\nis a defect")

    monkeypatch.setattr(common, "read", fail)
    result = run("show", MODULE)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "internal error: RuntimeError: this is a defect" in line
    monkeypatch.setenv("HLOTEXT_DEBUG", "1")
    assert "Traceback (most recent call last)" in run("show", MODULE).stderr


def test_ctrl_c_is_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt ends the command quietly, with the status that a shell gives."""

    def interrupt(place: str, **_: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(common, "read", interrupt)
    result = run("show", MODULE)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "")


@pytest.mark.parametrize("arguments", [["fmt", MODULE], ["show", "--limit", "0", MODULE], ["opcodes"]])
def test_a_closed_pipe_is_quiet(arguments: list[str]) -> None:
    """`hlotext ... | head -c 1` says nothing on standard error."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hlotext", *arguments],
        cwd=support.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), errors) == (141, b"")


def test_python_m_hlotext() -> None:
    """The package runs as a program, and reads standard input."""
    done = run_process("show", "-", input=(support.ROOT / MODULE).read_bytes())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"-: jit_step")


def test_start_up_loads_little() -> None:
    """`hlotext show` in a pipe needs neither JAX nor rich; `opcodes` not even the parser."""
    script = (
        "import sys; from hlotext.cli import main; "
        "main(sys.argv[1:], standalone_mode=False); print(*sys.modules)"
    )
    for arguments, unwanted in (
        (["show", MODULE], {"jax", "jaxlib", "rich", "hypothesis"}),
        (["opcodes", "add"], {"jax", "jaxlib", "rich", "numpy", "hlotext.layout"}),
    ):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            cwd=support.ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert not unwanted & set(done.stdout.splitlines()[-1].split())


def test_no_colour_in_pipes_whatever_the_terminal() -> None:
    """Plain text: no escape sequence, no blank at the end of a line, nothing wrapped."""
    done = run_process("show", MODULE, env={"TERM": "xterm-256color", "COLUMNS": "20"})
    text = done.stdout.decode()
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert max(map(len, text.splitlines())) > 60


def test_main_is_a_click_group() -> None:
    """Other programs can mount it."""
    assert isinstance(main, click.Group)


def test_every_name_has_help() -> None:
    """Names without a page get lines of their own; what has several meanings is told from the others."""
    for kind, names in help_names._NAMES.items():
        for name in names():
            assert kind in help_names.kinds_of(name)
            if kind in help_names._FACTS:
                facts = list(help_names._FACTS[kind](name))
                assert facts
                assert all(told for _, told in facts)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("m103", "# M103: "),
        ("all-reduce", "elementwise reduction"),
        ("dce", "Removes unused"),
        ("trace", "Usage: hlotext dump trace"),
        ("reduce", "reduce is also an opcode: hlotext help opcode reduce"),
        ("slice", "slice (attribute)"),
        ("replica_groups", "all-gather, "),
        ("v5e", "memory bandwidth"),
        ("bf16", "16 bits"),
        ("flops", "`hlotext cost`"),
    ],
)
def test_help_on_a_name_needs_no_topic(name: str, told: str) -> None:
    result = run("help", name)
    assert (result.exit_code, result.stderr) == (0, "")
    assert told in result.stdout
