"""How reports look: plain text in pipes, rich on terminals."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys

import pytest
from rich.console import Console

from hlotext.cli import output
from hlotext.cli.output import Column, Output, Table
from tests import support

TABLE = Table(
    "A table",
    [Column("name", "cyan"), Column("bytes", is_number=True), Column("shape", "yellow")],
    [
        ["add.1", "9", "f32[8,128]{1,0:T(8,128)}"],
        ["multiply_subtract_fusion.12", "1,024", "bf16[2] [bold]x[/bold]"],
    ],
    left_out=3,
)


def terminal(width: int = 100) -> tuple[Output, io.StringIO]:
    """A terminal of that width, and what was written to it."""
    written = io.StringIO()
    console = Console(
        file=written,
        force_terminal=True,
        width=width,
        color_system="truecolor",
        highlight=False,
        markup=False,
    )
    return output._Terminal(console), written


def plain(text: str) -> str:
    """Text without escape sequences."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_plain_text(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Aligned, numbers to the right, nothing at the ends of lines."""
    report = output.output()
    report.heading("a file")
    report.facts([("one", "1"), ("and another", "")])
    report.table(TABLE)
    report.table(Table("Empty", [Column("x")], []))
    report.text("Text", "a = b(\udcff)")
    assert (
        capsysbinary.readouterr().out.decode()
        == """a file
  one          1
  and another

A table
  name                         bytes  shape
  add.1                            9  f32[8,128]{1,0:T(8,128)}
  multiply_subtract_fusion.12  1,024  bf16[2] [bold]x[/bold]
  ... and 3 more

Text
a = b(\ufffd)
"""
    )  # a byte that was no UTF-8 might act in a terminal


def test_a_terminal_has_colours_and_the_same_words() -> None:
    """Brackets are text, not markup; the columns have their styles."""
    report, written = terminal()
    report.heading("a file")
    report.facts([("one", "[red]1")])
    report.table(TABLE)
    report.table(Table("Empty", [Column("x")], []))
    report.text("Text", "a = b[3]")
    assert "\x1b[36madd.1" in written.getvalue()
    text = plain(written.getvalue())
    for words in (
        "a file",
        "[red]1",
        "f32[8,128]{1,0:T(8,128)}",
        "bf16[2] [bold]x[/bold]",
        "... and 3 more",
        "b[3]",
    ):
        assert words in text
    assert "Empty" not in text


@pytest.mark.parametrize("width", [30, 50])
def test_a_narrow_terminal_folds_and_never_cuts(width: int) -> None:
    """Every character of a long name is there, on several lines."""
    report, written = terminal(width)
    name = "abcdefghijklmnopqrstuvwxyz0123456789" * 2
    report.table(Table("T", [Column("name"), Column("n", is_number=True)], [[name, "5"]]))
    text = plain(written.getvalue())
    assert max(map(len, text.splitlines())) <= width
    assert "".join(re.findall(r"[a-z0-9]", text.split("─")[-1])).replace("5", "", 1).count("a") == 2
    assert sorted(name + "5") == sorted(re.findall(r"[a-z0-9]", text.split("─")[-1]))


@pytest.mark.parametrize("text", ["a\x1b[31mred", "a\rb", "a\x00b", "\x9b31m"])
def test_nothing_in_a_dump_steers_the_terminal(text: str) -> None:
    """Escape sequences and other control characters in names come out as replacement characters."""
    report, written = terminal()
    report.heading(text)
    report.facts([(("x"), text)])
    report.table(Table("T", [Column("c")], [[text]]))
    report.text("T", text)
    assert not set(plain(written.getvalue())) & {"\x1b", "\r", "\x00", "\x9b"}


def run_on_a_terminal(*arguments: str, **env: str) -> str:
    """What a command writes where standard output and error are a terminal."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "hlotext", *arguments],
            cwd=support.ROOT,
            stdout=theirs,
            stderr=theirs,
            env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm-256color", **env},
        )
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux says so at the end
                break
            if not piece:
                break
            pieces.append(piece)
        process.wait()
    finally:
        os.close(ours)
    return b"".join(pieces).decode()


def test_colours_on_a_real_terminal() -> None:
    """By default; plain text where NO_COLOR is set."""
    arguments = ("show", "corpus/handmade/map.txt")
    assert "\x1b[" in run_on_a_terminal(*arguments)
    assert "\x1b[" not in run_on_a_terminal(*arguments, NO_COLOR="1")


def test_a_terminal_shows_the_place_of_an_error() -> None:
    """The line and a caret, which a log would not want on one line."""
    text = run_on_a_terminal("show", "corpus/invalid/two_roots.txt", NO_COLOR="1")
    assert len(text.splitlines()) > 1
    assert "^" in text


def test_a_bar_while_large_files_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only on a terminal, only for large files, and gone before the report is written."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for sizes, shown in (([10], False), ([5_000_000], True), ([3_000_000, 3_000_000], True)):
        errors = Terminal()
        monkeypatch.setattr(sys, "stderr", errors)
        bar = output.ReadingBar(sizes)
        for size in sizes:
            with bar.reading("folder/file.txt", size):
                pass
        assert ("file.txt" in errors.getvalue()) == shown
