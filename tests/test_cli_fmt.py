"""`hlotext fmt`: styles, checking, and writing in place."""

from __future__ import annotations

import gzip
import lzma
import os
import stat
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
import zstandard

import hlotext as hlo
from hlotext.cli.print_style import STYLES, print_style
from hlotext.ir.values.print_options import PrintOptions, SubcomputationMode
from tests import support
from tests.cli_support import GOLDEN, run

MODULE = support.CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
SMALL = """HloModule m, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY e {
  %p = f32[4]{0} parameter(0), metadata={op_name="x"}
  %c = f32[12]{0} constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
  ROOT %r = f32[4]{0} negate(%p)
}

"""
COMPRESSED: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "gz": (gzip.compress, gzip.decompress),
    "xz": (lzma.compress, lzma.decompress),
    "zst": (
        lambda data: zstandard.ZstdCompressor().compress(data),
        lambda data: zstandard.ZstdDecompressor().decompress(data),
    ),
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A file that is in no style of XLA's."""
    path = tmp_path / "small.hlo"
    path.write_text(SMALL)
    return path


COMPACT = """HloModule m, entry_computation_layout={((f32[4]{0}, pred[4]{0}))->pred[4]{0}}

ENTRY %e (p: (f32[4], pred[4])) -> pred[4] {
  %p = (f32[4]{0}, pred[4]{0}) parameter(0)
  %x = f32[4]{0} negate(%p#0)
  ROOT %c = pred[4]{0} compare(%p#0, %x), direction=LT, order=TOTAL
}

"""


@pytest.mark.parametrize(
    ("options", "shown", "hidden"),
    [
        ((), "negate(%p#0)", "get-tuple-element"),
        (("--style", "short"), "negate(p#0)", "get-tuple-element"),
        (("--option", "compact_gte=false"), "negate(%p_0)", "#"),
        (("--reread",), "negate(%p_0)", "TOTALORDER"),
        (("--reread", "--age", "0.10.2"), "type=TOTALORDER", "order="),
        (("--style", "canonical"), "get-tuple-element", "#"),
    ],
    ids=" ".join,
)
def test_elements_of_tuples_are_written_as_in_the_source(
    options: tuple[str, ...], shown: str, hidden: str, tmp_path: Path
) -> None:
    path = tmp_path / "compact.hlo"
    path.write_text(COMPACT)
    result = run("fmt", *options, path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert shown in result.stdout
    assert hidden not in result.stdout


def test_compact_text_is_in_the_style_of_dumps(tmp_path: Path) -> None:
    path = tmp_path / "compact.hlo"
    path.write_text(COMPACT)
    assert run("fmt", "--check", path).exit_code == 0
    # A line of its own may hold metadata, so that what is written in both ways is not made compact.
    path.write_text(COMPACT.replace("negate(%p#0)", "get-tuple-element(%p), index=0"))
    assert "%p_0 = " in run("fmt", path).stdout
    result = run("fmt", "-i", "--option", "compact_gte=true", path)
    assert result.exit_code == 2
    assert "get-tuple-elements" in result.stderr


def test_age_needs_reread(tmp_path: Path) -> None:
    path = tmp_path / "compact.hlo"
    path.write_text(COMPACT)
    assert "--reread" in run("fmt", "--age", "0.12", path).stderr
    assert "not an XLA age" in run("fmt", "--reread", "--age", "old", path).stderr


# ---- to standard output


@pytest.mark.parametrize("style", ["default", "short", "canonical", "fingerprint"])
def test_golden(style: str, golden: Callable[[Path, str], None]) -> None:
    """What each style makes of a real module."""
    path = support.CORPUS / "cpu" / "collective_groups.cpu_8.after_optimizations.txt"
    result = run("fmt", "--style", style, path)
    assert (result.exit_code, result.stderr) == (0, "")
    golden(GOLDEN / f"fmt_{style}.txt", result.stdout)


@pytest.mark.parametrize("path", support.corpus_files(), ids=support.corpus_id)
def test_source_is_the_text_itself(path: Path) -> None:
    """Byte for byte, whatever the file holds."""
    result = run("fmt", "--style", "source", path)
    assert result.exit_code == 0
    assert result.stdout_bytes == support.read_text(path)


@pytest.mark.parametrize(
    "text",
    [
        SMALL.replace("\n", "\r\n").encode(),
        SMALL.replace("\n", "\r").encode(),
        b"\xef\xbb\xbf" + SMALL.encode(),
        SMALL.replace('"x"', '"\xff"').encode("latin-1"),
        SMALL.encode() + b"// the end",
        (SMALL + SMALL).encode(),
    ],
    ids=["crlf", "cr", "bom", "no utf-8", "comment", "two modules"],
)
def test_source_keeps_odd_texts(text: bytes) -> None:
    """Line ends, a byte order mark, bytes that are no UTF-8, comments, several modules."""
    assert run("fmt", "--style", "source", "-", input=text).stdout_bytes == text


@pytest.mark.parametrize("style", [style for style in STYLES if style != "source"])
def test_large_constants_are_kept_unless_told_otherwise(style: str) -> None:
    """XLA's presets elide them, which nobody wants of a formatter."""
    assert "10, 11" in run("fmt", "--style", style, "-", input=SMALL).stdout
    elided = run("fmt", "--style", style, "--elide-constants", "-", input=SMALL).stdout
    assert ("10, 11" in elided, "{...}" in elided) == (False, True)


def test_single_options() -> None:
    """Any option of XLA's printer, by its name there."""
    text = run(
        "fmt", "--option", "print_percent=false", "--option", "print_operand_shape=true",
        "--option", "indent_amount=1", "-", input=SMALL,
    ).stdout  # fmt: skip
    assert "    ROOT r = f32[4]{0} negate(f32[4]{0} p)\n" in text
    text = run("fmt", "--option", "print_subcomputation_mode=off", MODULE).stdout
    assert "calls=" not in text


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("print_metadat=false", "did you mean `print_metadata`?"),
        ("zzz=1", "print_backend_config"),
        ("print_metadata=no", "true, false"),
        ("print_metadata", "true, false"),
        ("indent_amount=-1", "needs a number"),
        ("indent_amount=x", "needs a number"),
        ("print_subcomputation_mode=half", "full_bodies"),
    ],
)
def test_options_that_are_none(setting: str, words: str) -> None:
    """A usage error that names what there is."""
    result = run("fmt", "--option", setting, "-", input=SMALL)
    assert result.exit_code == 2
    assert words in result.stderr


def test_one_op_line_stays_one() -> None:
    """A pasted line is printed as a line, not as a module around it."""
    line = '%y = f32[2]{0} negate(f32[2]{0} %x), metadata={op_name="n"}'
    assert run("fmt", "--style", "short", "-", input=line).stdout == (
        'y = f32[2]{0} negate(x), metadata={op_name="n"}\n'
    )


def test_every_style_can_be_read_again() -> None:
    """Except the ones that are only for comparing."""
    for style in ("source", "default", "short"):
        text = run("fmt", "--style", style, MODULE).stdout
        assert run("fmt", "--style", style, "-", input=text).stdout == text


# ---- check and diff


def test_check(small: Path) -> None:
    """Status 1 and the name of each file that would change; nothing is written."""
    done = small.with_name("done.hlo")
    done.write_text(run("fmt", small).stdout)
    result = run("fmt", "--check", small, done)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        f"hlotext: {small} would change",
        "hlotext: 1 of 2 files would change",
    ]
    assert run("fmt", "--check", done).exit_code == 0
    assert run("fmt", "--check", "--style", "source", small).exit_code == 0
    assert run("fmt", "--check", small, "no such file").exit_code == 2
    assert small.read_text() == SMALL


def test_diff(small: Path) -> None:
    """The lines that differ; the status is that of --check, else 0."""
    result = run("fmt", "--diff", small)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:2] == [f"--- {small}", f"+++ {small}"]
    assert "-ENTRY e {" in lines
    assert "+ENTRY %e (p: f32[4]) -> f32[4] {" in lines
    assert run("fmt", "--diff", "--check", small).exit_code == 1
    assert run("fmt", "--diff", "--style", "source", small).stdout == ""


def test_diff_of_a_file_without_a_last_line_end(small: Path) -> None:
    """As `diff -u` says it."""
    small.write_text(SMALL.rstrip())
    assert "\n\\ No newline at end of file\n" in run("fmt", "--diff", small).stdout


# ---- in place


def test_in_place(small: Path) -> None:
    """The file holds the new text and keeps its permissions; nothing else is left in the folder."""
    small.chmod(0o640)
    expected = run("fmt", small).stdout
    result = run("fmt", "-i", small)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "hlotext: 1 of 1 file changed\n")
    assert small.read_text() == expected
    assert stat.S_IMODE(small.stat().st_mode) == 0o640
    assert os.listdir(small.parent) == [small.name]
    before = small.stat().st_mtime_ns, small.stat().st_ino
    assert "0 of 1 file changed" in run("fmt", "-i", small).stderr
    assert (small.stat().st_mtime_ns, small.stat().st_ino) == before


def test_a_link_stays_a_link(small: Path) -> None:
    """The file that it leads to is written."""
    link = small.with_name("link.hlo")
    link.symlink_to(small)
    assert run("fmt", "-i", link, small).exit_code == 0
    assert link.is_symlink()
    assert small.read_text() != SMALL


@pytest.mark.parametrize("kind", COMPRESSED)
def test_packed_files_stay_packed(kind: str, tmp_path: Path) -> None:
    """A packed file is packed in the same way, whatever its name."""
    pack, unpack = COMPRESSED[kind]
    path = tmp_path / "module"
    path.write_bytes(pack(SMALL.encode()))
    expected = run("fmt", path).stdout
    assert run("fmt", "-i", path).exit_code == 0
    assert unpack(path.read_bytes()).decode() == expected


@pytest.mark.parametrize("broken", ["HloModule m\n\nENTRY e {\n  ROOT r = f32[4] negate(q)\n}\n", ""])
def test_nothing_is_written_unless_all_could_be_read(broken: str, small: Path) -> None:
    """One broken file, before or after the others: all stay as they are, and no other file is left behind."""
    bad = small.with_name("bad.hlo")
    bad.write_text(broken)
    for order in ([small, bad], [bad, small]):
        assert run("fmt", "-i", *order).exit_code == 2
        assert (small.read_text(), bad.read_text()) == (SMALL, broken)
        assert sorted(os.listdir(small.parent)) == ["bad.hlo", "small.hlo"]


def test_a_failing_write_leaves_the_old_text(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: one line, status 2, the file as it was."""

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    result = run("fmt", "-i", small)
    assert result.exit_code == 2
    assert result.stderr == f"hlotext: {small}: cannot write: No space left on device\n"
    assert small.read_text() == SMALL
    assert os.listdir(small.parent) == [small.name]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_protected_file_is_not_replaced(small: Path) -> None:
    """Its folder could be written, but the file is not to be."""
    small.chmod(0o444)
    result = run("fmt", "-i", small)
    assert result.exit_code == 2
    assert "write-protected" in result.stderr
    assert small.read_text() == SMALL


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--style", "short"], "control dependencies"),
        (["--style", "canonical"], "names"),
        (["--style", "fingerprint"], "names"),
        (["--elide-constants"], "constants"),
        (["--option", "print_ids=false"], "names"),
        (["--option", "print_backend_config=false"], "backend configs"),
    ],
)
def test_a_style_that_loses_something_needs_lossy(arguments: list[str], words: str, small: Path) -> None:
    """In place only: refused with what would be lost, until --lossy says that this is meant."""
    result = run("fmt", "-i", *arguments, small)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "--lossy" in result.stderr
    assert small.read_text() == SMALL
    expected = run("fmt", *arguments, small).stdout
    assert run("fmt", "-i", "--lossy", *arguments, small).exit_code == 0
    assert small.read_text() == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SMALL + "// a comment\n", "comments"),
        (SMALL.replace("ENTRY", "/* here */ ENTRY"), "comments"),
        (SMALL + "and so on\n", ""),
    ],
)
def test_what_no_style_prints_is_not_lost_in_place(text: str, words: str, small: Path) -> None:
    """Comments and text behind the module are part of the file; XLA's styles have no place for them."""
    small.write_text(text)
    result = run("fmt", "-i", small)
    assert result.exit_code == 2
    assert words in result.stderr
    assert small.read_text() == text


def test_comments_stay_in_the_source_style_and_go_with_lossy(small: Path) -> None:
    """The two ways to write a file with comments in place."""
    text = f"{SMALL}// a comment\n"
    small.write_text(text)
    assert run("fmt", "-i", "--style", "source", small).exit_code == 0
    assert small.read_text() == text
    assert run("fmt", "-i", "--lossy", small).exit_code == 0
    assert small.read_text() == run("fmt", "-", input=SMALL).stdout


def test_what_only_looks_like_a_comment_is_no_reason(small: Path) -> None:
    """Index comments are XLA's own, and slashes in strings are text."""
    many = ", ".join(f"{'/*index=5*/' if i == 5 else ''}%p{i}" for i in range(6))
    lines = [f'%p{i} = f32[] parameter({i}), metadata={{op_name="a//b /*c*/"}}' for i in range(6)]
    shapes = ", ".join(["f32[]"] * 5 + ["/*index=5*/f32[]"])
    body = "\n  ".join([*lines, f"ROOT %t = ({shapes}) tuple({many})"])
    small.write_text(f"HloModule m\n\nENTRY e {{\n  {body}\n}}\n")
    assert run("fmt", "-i", small).exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["-i", "--check", "x"],
        ["-i", "--diff", "x"],
        ["-i", "-"],
        ["--style", "source", "--elide-constants", "x"],
    ],
)
def test_what_does_not_go_together(arguments: list[str]) -> None:
    """A usage error, before anything is read."""
    result = run("fmt", *arguments, input=SMALL)
    assert result.exit_code == 2
    assert "Try 'hlotext" in result.stderr


# ---- what styles leave out


def test_every_option_is_known_to_keep_or_lose() -> None:
    """Each print option either loses something at its other value, or is listed here as harmless."""
    harmless = {
        "print_operand_index_annotation_interval", "indent_amount", "sort_backend_config",
        "print_operand_shape", "print_program_shape", "print_percent", "is_in_nested_computation",
        "canonicalize_computations", "syntax_sugar_async_ops", "print_name_after_closing_brace",
        "print_full_replica_group_list",
    }  # fmt: skip
    for name, default in attrs.asdict(PrintOptions()).items():
        values = {"print_subcomputation_mode": ["off"]}.get(name)
        values = values or (["false", "true"] if isinstance(default, bool) else ["0", "3"])
        losing = [value for value in values if print_style("default", False, [f"{name}={value}"]).losses]
        assert len(losing) == (name not in harmless), name


def test_the_styles_of_the_command_are_the_presets() -> None:
    """With large constants, each style is XLA's preset; the first two as dumps have them, asynchronous operations wrapped."""
    presets = {
        "default": attrs.evolve(PrintOptions.default(), syntax_sugar_async_ops=False),
        "short": attrs.evolve(
            PrintOptions.short_parsable(), syntax_sugar_async_ops=False, print_metadata=True
        ),
        "canonical": PrintOptions.canonical(),
        "fingerprint": PrintOptions.fingerprint(),
    }
    for name, preset in presets.items():
        kept = attrs.evolve(preset, print_large_constants=True, print_only_essential_constants=False)
        assert print_style(name, False, []).options == kept
        assert print_style(name, True, []).options == attrs.evolve(preset, print_large_constants=False)
    assert print_style("default", False, []).losses == []
    mode = print_style("default", False, ["print_subcomputation_mode=full_bodies"]).options
    assert mode is not None
    assert mode.print_subcomputation_mode is SubcomputationMode.FULL_BODIES
    text = hlo.parse(SMALL).to_text(print_style("default", False, []).options)
    assert text == run("fmt", "-", input=SMALL).stdout
