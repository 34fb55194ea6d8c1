"""How reports look: plain text in pipes, rich on terminals."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotext.cli import output
from hlotext.cli.output import Command, Kind, Output, TerminalColumn, TerminalTable
from hlotext.cli.table_layout import GAP, INDENT, cell_width, fit, shorter
from tests import support

TABLE = TerminalTable(
    "A table",
    [
        TerminalColumn("name", "cyan"),
        TerminalColumn("bytes", is_number=True),
        TerminalColumn("shape", "yellow"),
    ],
    [
        ["add.1", "9", "f32[8,128]{1,0:T(8,128)}"],
        ["multiply_subtract_fusion.12", "1,024", "bf16[2] [bold]x[/bold]"],
    ],
    left_out=3,
)


class Terminal:
    """A terminal of some width, and what was written to it."""

    def __init__(self, capture: pytest.CaptureFixture[bytes], width: int = 100) -> None:
        self.report = Output(width, is_coloured=True)
        self._capture = capture

    def written(self) -> str:
        return self._capture.readouterr().out.decode("utf-8", "surrogateescape")


def plain(text: str) -> str:
    """Text without escape sequences."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_plain_text(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Aligned, numbers to the right, nothing at the ends of lines."""
    report = output.output()
    report.heading("a file")
    report.facts([("one", "1"), ("and another", "")])
    report.table(TABLE)
    report.table(TerminalTable("Empty", [TerminalColumn("x")], []))
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


def test_a_terminal_has_colours_and_the_same_words(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Brackets are text, not markup; the columns have their styles."""
    terminal = Terminal(capsysbinary)
    report = terminal.report
    report.heading("a file")
    report.facts([("one", "[red]1")])
    report.table(TABLE)
    report.table(TerminalTable("Empty", [TerminalColumn("x")], []))
    report.text("Text", "a = b[3]")
    written = terminal.written()
    assert "\x1b[36madd.1" in written
    text = plain(written)
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


ROWS = [
    (
        "1.00 MiB",
        "bf16[8,128]{1,0:T(8,128)(2,1)S(1)}",
        "multiply_subtract_fusion.12",
        "a/model.py:12 f.<locals>.g",
    ),
    (
        "4 B",
        "(f32[8]{0}, /*index=1*/(f32[2,3]{1,0}, s32[]), pred[])",
        "while.3",
        "jit(step)/layer_0/attention/dot",
    ),
]
COLUMNS = [
    TerminalColumn("bytes", is_number=True),
    TerminalColumn("shape"),
    TerminalColumn("name"),
    TerminalColumn("from"),
]


@pytest.mark.parametrize("width", [40, 50, 60, 80, 100, 120])
def test_columns_give_way_by_importance(capsysbinary: pytest.CaptureFixture[bytes], width: int) -> None:
    """No line is wider than the terminal, numbers stay, and a column that is left out is named."""
    terminal = Terminal(capsysbinary, width)
    terminal.report.table(TerminalTable("T", COLUMNS, ROWS))
    lines = plain(terminal.written()).splitlines()
    assert max(map(len, lines)) <= width
    assert ("from" in lines[1].split()) != ("not shown at this width: " in " ".join(lines[-2:]))
    assert all(row[2][:4] in line for row, line in zip(ROWS, lines[2:], strict=False))


def test_what_differs_from_row_to_row_stays_before_what_does_not() -> None:
    """Axes of the mesh tell collectives apart; figures that are the same of all do not."""
    titles = ("operation", "kind", "along", "runs", "sent", "line")
    columns = [TerminalColumn(title, is_number=title in ("runs", "sent")) for title in titles]
    rows = [
        (f"all-gather.{n}", "all-gather", axes, "1", f"{n}.00 MiB", f"model.py:{n} layer")
        for n, axes in enumerate(("data, model", "model", "fsdp"))
    ]
    for width, stay in (
        (78, titles),
        (69, ("operation", "kind", "along", "sent", "line")),
        (45, ("operation", "along", "line")),
        (30, ("operation", "along")),
    ):
        assert tuple(titles[n] for n in fit(columns, rows, width).columns) == stay


@pytest.mark.parametrize(
    ("text", "kind", "width", "expected"),
    [
        ("bf16[8,128]{1,0:T(8,128)(2,1)S(1)}", Kind.SHAPE, 34, "bf16[8,128]{1,0:T(8,128)(2,1)S(1)}"),
        ("bf16[8,128]{1,0:T(8,128)(2,1)S(1)}", Kind.SHAPE, 20, "bf16[8,128]{…S(1)}"),
        ("bf16[8,128]{1,0:T(8,128)(2,1)S(1)}", Kind.SHAPE, 12, "bf16[8,128]"),
        ("(f32[8]{0}, /*index=5*/s32[])", Kind.SHAPE, 19, "(f32[8]{0}, s32[])"),
        ("(f32[8]{0}, (f32[2]{0}, s32[]), pred[])", Kind.SHAPE, 18, "(f32[8], … 2 more)"),
        ("(f32[8]{0}, s32[])", Kind.SHAPE, 12, "(2 elements)"),
        ("folder/model.py:12 f.<locals>.g", Kind.PLACE, 27, "model.py:12 f.<locals>.g"),
        ("folder/model.py:12 f.<locals>.g", Kind.PLACE, 20, "model.py:12 g"),
        ("folder/model.py:12 f.<locals>.g", Kind.PLACE, 12, "model.py:12"),
        ("jit(step)/layer_0/attention/dot", Kind.SCOPE, 20, "…/attention/dot"),
        ("multiply_subtract_fusion.12", Kind.NAME, 16, "multipl…usion.12"),
    ],
)
def test_shorter_forms(text: str, kind: Kind, width: int, expected: str) -> None:
    """Each kind of cell has forms of its own, and nothing ends inside a word or a shape while one of them fits."""
    assert shorter(text, width, kind) == expected


def test_names_to_pass_on_are_whole(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Other columns give way to them, in a line of their own; what writes a value goes before its name does."""
    columns = [
        TerminalColumn("shape"),
        TerminalColumn("value"),
        TerminalColumn("scope"),
        TerminalColumn("line"),
    ]
    long = "bitcast_dynamic-update-slice_fusion.15"
    row = ("bf16[12,8,16,2048,2048]", long, "while/body/layer/attention", "folder/train.py:12")
    terminal = Terminal(capsysbinary, 80)
    terminal.report.table(
        TerminalTable("T", columns, [row, ("s32[]", f"while.4{{5}} < {long}", "", "")], left_out=2)
    )
    lines = plain(terminal.written()).splitlines()
    assert max(map(len, lines)) <= 80
    assert long in lines[2]
    assert "while.4{5}" in lines[3]
    assert lines[-2] == "  ... and 2 more"
    assert lines[-1].startswith("  not shown at this width: scope")
    assert shorter(f"while.4{{5}} < {long}", 40, Kind.NAME) == "while.4{5}"


def test_a_variable_of_the_shell_is_not_broken(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """With a line end inside its quotes it could not be pasted."""
    terminal = Terminal(capsysbinary, 40)
    flags = "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_pass_re=.*'"
    terminal.report.note(f"for shardings and suggestions, recompile with {flags}")
    assert flags in terminal.written()


@given(
    st.lists(st.tuples(*[st.text("ab /,.[]{}()é字", max_size=60)] * 4), min_size=1, max_size=6),
    st.integers(40, 140),
    st.lists(st.sampled_from(list(Kind)[:-2]), min_size=4, max_size=4),
)
def test_tables_fit_whatever_they_hold(rows: list[tuple[str, ...]], width: int, kinds: list[Kind]) -> None:
    """Any cells, any width that a terminal may have: the row fits, and each cell is one line of it."""
    columns = [TerminalColumn(f"c{n}", kind=kind) for n, kind in enumerate(kinds)]
    fitted = fit(columns, rows, width)
    assert INDENT + sum(fitted.widths) + GAP * (len(fitted.widths) - 1) <= width
    assert all(
        cell_width(lines[0]) <= size
        for row in fitted.rows
        for lines, size in zip(row, fitted.widths, strict=True)
    )


def test_sentences_go_on_in_the_next_line(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Values of facts, sentences in tables and lines of HLO break at blanks; no word is lost."""
    terminal = Terminal(capsysbinary, 40)
    sentence = "a value that takes more than one line of such a terminal"
    terminal.report.facts([("name", sentence)])
    terminal.report.table(
        TerminalTable("T", [TerminalColumn("n", is_number=True), TerminalColumn("why")], [["5", sentence]])
    )
    terminal.report.text("Text", "%a = (f32[512]{0}, f32[256,512]{1,0}) all-reduce(%b, %c)")
    text = plain(terminal.written())
    assert max(map(len, text.splitlines())) <= 40
    assert text.split().count("terminal") == 2
    assert "f32[256,512]{1,0})" in text


@pytest.mark.parametrize("text", ["a\x1b[31mred", "a\rb", "a\x00b", "\x9b31m"])
def test_nothing_in_a_dump_steers_the_terminal(capsysbinary: pytest.CaptureFixture[bytes], text: str) -> None:
    """Escape sequences and other control characters in names come out as replacement characters."""
    terminal = Terminal(capsysbinary)
    report = terminal.report
    report.heading(text)
    report.facts([(("x"), text)])
    report.table(TerminalTable("T", [TerminalColumn("c")], [[text]]))
    report.text("T", text)
    assert not set(plain(terminal.written())) & {"\x1b", "\r", "\x00", "\x9b"}


def run_on_a_terminal(*arguments: str, **env: str) -> str:
    """What a command writes where standard output and error are a terminal."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "hlotext", *arguments],
            cwd=support.ROOT,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={
                **{k: v for k, v in os.environ.items() if k != "NO_COLOR"},
                "TERM": "xterm-256color",
                "PAGER": "cat",
                **env,
            },
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


def screen(width: int, *arguments: str, height: int = 1000, **env: str) -> str:
    """What a command writes on a terminal of that width without colours."""
    return run_on_a_terminal(*arguments, COLUMNS=str(width), LINES=str(height), NO_COLOR="1", **env)


SCREENS = {
    "show_tpu": ("show", "corpus/tpu/transformer_decode.v5e_2x2x1.after_optimizations.txt"),
    "show_cpu": ("show", "corpus/cpu/ring_attention.cpu_4.after_optimizations.txt"),
    "show_instruction": (
        "show",
        "corpus/tpu/data_parallel.v5e_2x2x1.after_codegen.txt",
        "-i",
        "all-reduce.4",
    ),
    "check": (
        "check",
        "corpus/invalid/duplicate_instruction.txt",
        "corpus/invalid/all_reduce_without_channel.txt",
    ),
}


@pytest.mark.parametrize("width", [80, 100, 120, 200])
@pytest.mark.parametrize("name", SCREENS)
def test_screens(name: str, width: int, golden: Callable[[Path, str], None]) -> None:
    """What a terminal of 80, 100, 120 and 200 columns shows: no line is wider, and it is what the golden file has."""
    text = screen(width, *SCREENS[name]).replace("\r\n", "\n")
    assert max(map(len, text.splitlines())) <= width
    if width in (80, 120):
        golden(support.DATA / "golden" / "screens" / f"{name}_{width}.txt", text)


def test_a_pager_for_what_is_longer_than_the_terminal() -> None:
    """PAGER is asked where the report does not fit; not where it does, nor where one forbids it, nor in a pipe."""
    arguments = ("show", "corpus/handmade/map.txt")
    pager = "sed s/^/paged:/"
    assert "paged:" in screen(80, *arguments, height=10, PAGER=pager)
    assert "paged:" not in screen(80, *arguments, height=1000, PAGER=pager)
    assert "paged:" not in screen(80, "--no-pager", *arguments, height=10, PAGER=pager)
    assert "paged:" not in screen(80, *arguments, height=10, PAGER="cat")


def test_no_dimension_of_an_array_is_cut() -> None:
    """Half a shape is another one: other columns give way, layouts go first."""
    columns = [TerminalColumn("value"), TerminalColumn("shape"), TerminalColumn("line")]
    rows = [
        ("a_long_name_of_a_fusion.33", "f32[2,8,2048,2048]{3,2,1,0:T(8,128)}", "model.py:24 layers.attention")
    ]
    for width in range(50, 100):
        fitted = fit(columns, rows, width)
        assert any("f32[2,8,2048,2048]" in line for line in fitted.rows[0][1])


def test_a_sentence_as_a_heading_is_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    """It holds colons, but no place whose folders could go."""
    text = (
        "1 compilation in both folders: settings differ (one), programs differ (4 arguments -> 5: with ws[3])"
    )
    Output(60, is_coloured=False).heading(text)
    assert " ".join(capsys.readouterr().out.split()) == text


def test_numbers_stay_with_their_units(capsys: pytest.CaptureFixture[str]) -> None:
    """A line that ended in a number said nothing."""
    text = "held 1.50 MiB, then (+31.4%) in 12 us at 197 TFLOP/s and 3 of 4"
    shown = []
    for width in range(20, 60):
        Output(width, is_coloured=False).heading(text)
        lines = capsys.readouterr().out.splitlines()
        assert " ".join(" ".join(lines).split()) == text
        shown += lines
    ends = [line.split()[-1] for line in shown if line.split()]
    assert not {"1.50", "(+31.4", "12", "197"}.intersection(ends)
    assert "3" in ends


def test_commands_can_be_pasted_and_long_names_leave_room(capsys: pytest.CaptureFixture[str]) -> None:
    """A command goes on behind a backslash, no argument of it is broken; a long name stands above its value."""
    report = Output(60, is_coloured=False)
    command = (
        "hlotext lint /a/long/folder/module_0000.jit_step.after_optimizations.txt --select D107 --by 'a b'"
    )
    value = "a value that needs a good part of the line in order to be read"
    report.facts(
        [("more", Command(command)), ("after_adding_copies_to_resolve_interference (step 63)", value)]
    )
    lines = capsys.readouterr().out.splitlines()
    place = next(n for n, line in enumerate(lines) if "after_adding" in line)
    shell = "\n".join(lines[:place]).replace("\\\n", " ").removeprefix("  more")
    assert " ".join(shell.split()) == command
    assert any("--select D107" in line for line in lines)  # an option and its value stay together
    assert len(lines) - place <= 4
    assert " ".join(" ".join(lines[place + 1 :]).split()) == value
