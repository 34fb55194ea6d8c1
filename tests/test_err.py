"""tests/data/err: texts with one thing wrong, and the report that a user gets.

`NAME.hlo` is the text, `NAME.golden` the whole report. A case for everything that XLA's reader reports or aborts on, and for
the mistakes that people make most. To add a case, add a file, run pytest with --update-goldens, and read what came out.
"""

from __future__ import annotations

import gzip
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.syntax.read import Reader, as_source, read_modules
from hlotext.syntax.source import inputs
from hlotext.syntax.source.codes import CODES
from tests import support

FOLDER = support.DATA / "err"
FILES = sorted(FOLDER.glob("*.hlo"))
NOT_HLO = sorted(path for path in support.INVALID.iterdir() if not path.name.startswith("unknown_"))

Golden = Callable[[Path, str], None]


def ids(path: Path) -> str:
    return path.stem


def error_of(path: Path, reader: Reader) -> hlo.HloSyntaxError:
    """The one error that a file gives; nothing else may be raised."""
    with pytest.raises(hlo.HloSyntaxError) as error:
        read_modules(as_source(path.read_bytes(), path.stem), infer=hlo.infer_shape, reader=reader)
    return error.value


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_the_report(path: Path, golden: Golden) -> None:
    """Place, message, source line, caret, related places and help, the same by both readers."""
    error = error_of(path, "fast")
    golden(path.with_suffix(".golden"), f"{error}\n")
    assert str(error_of(path, "reference")) == str(error)


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_the_parts_of_an_error(path: Path) -> None:
    """Code, line, column and source line are those of the report, and the caret stands under the place."""
    error = error_of(path, "fast")
    report = str(error).splitlines()
    assert error.code in CODES
    assert report[0] == f"{path.stem}:{error.line}:{error.column}: error[{error.code}]: {error.message}"
    assert report[1].lstrip().startswith(f"{error.line} | ")
    assert set(report[2].split("|", 1)[1].strip()) == {"^"}
    assert report[2].index("^") - report[1].index("|") >= 2
    text = as_source(path.read_bytes()).text
    assert error.source_line in text.replace("\r", "\n").split("\n")


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_tolerant_reading_finds_it_too(path: Path) -> None:
    """`parse_tolerant` raises nothing, and finds an error there, or on the line that led to it."""
    error = error_of(path, "fast")
    result = hlo.parse_tolerant(path.read_bytes())
    lines = [found.line for found in result.diagnostics if found.severity is hlo.Severity.ERROR]
    assert lines
    assert min(lines) <= error.line


@pytest.mark.parametrize("path", NOT_HLO, ids=ids)
def test_files_that_hold_no_module(path: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the corpus keeps of broken and foreign files: one report each, on one line where it is no text."""
    monkeypatch.setitem(sys.modules, "jaxlib", None)  # whose words for StableHLO differ by release
    try:
        hlo.load(path)
    except (hlo.HloSyntaxError, hlo.InputError) as error:
        report = str(error).replace(str(path), path.name)
    else:
        report = "read"
    golden(support.DATA / "golden" / "invalid" / f"{path.name}.golden", f"{report}\n")


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("comparator=%a", "did you mean `to_apply`?"),
        ("precision_config={high}", "did you mean `operand_precision`?"),
        ("dimension={0}", "did you mean `dimensions`?"),
        ("shiny=1", ""),
    ],
)
def test_unknown_attributes_that_mean_a_known_one(text: str, help: str) -> None:
    """An attribute of another name is kept with a note that says what may have been meant."""
    line = f"ENTRY e {{ p = f32[4] parameter(0) ROOT s = f32[4] transpose(p), dimensions={{0}}, {text} }}"
    (note,) = hlo.parse_tolerant(line).diagnostics
    assert (note.code, note.help) == ("X203", help)
    assert line[note.span.start : note.span.end] == text.split("=")[0]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_text_that_grows_too_large(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file that unpacks to a huge one is refused before the memory is gone."""
    monkeypatch.setattr(inputs, "MAX_SOURCE", 1 << 20)
    path = tmp_path / "bomb"
    path.write_bytes(pack(b" " * (1 << 20)))
    with pytest.raises(hlo.HloSyntaxError, match="the text contains only whitespace"):
        hlo.load(path)
    path.write_bytes(pack(b" " * ((1 << 20) + 1)))
    with pytest.raises(hlo.InputError, match="bomb unpacks to more than"):
        hlo.load(path)
    (found,) = hlo.parse_tolerant(path.read_bytes()).diagnostics
    assert found.code == "X123"
    assert "damaged or too large" in found.message


XLA_ABORTS = (
    "tuple_result", "parameter_gap", "attribute_replication_elsewhere", "count_dot", "attribute_transpose_a", "literal_token",
    "count_dynamic_reshape", "dynamic_reshape_sizes", "reshape_elements", "attribute_sharding_mesh_axis",
    "attribute_sharding_mesh_overlap", "replica_groups_mesh_axis", "shape_of_token_with_dimensions",
    "shape_of_opaque_with_dimensions", "layout_of_token_empty", "layout_tail_padding_zero", "layout_tile_negative",
    "literal_opaque", "literal_bool_in_integer", "literal_bool_in_float", "deep_bodies", "deep_literal", "deep_operands",
    "deep_tuple",
)  # fmt: skip
"""Cases on which XLA's reader ends the process, or did in some release; the last four where the nesting is deep enough."""


@pytest.mark.parametrize("name", XLA_ABORTS)
def test_what_xla_aborts_on_is_an_ordinary_error(name: str) -> None:
    """An error with a place, and a module all the same."""
    data = (FOLDER / f"{name}.hlo").read_bytes()
    with pytest.raises(hlo.HloSyntaxError) as error:
        hlo.parse(data)
    assert error.value.line > 3
    assert hlo.parse_tolerant(data).module.name


@pytest.mark.parametrize("text", [5, None, Path("module.txt")], ids=str)
def test_what_is_no_text(text: object) -> None:
    """Who passes a path is told what takes one."""
    for read in (hlo.parse, hlo.parse_all, hlo.parse_tolerant):
        with pytest.raises(
            TypeError,
            match=r"text must be str or bytes, not \w+; hlotext\.load takes ",
        ):
            read(text)  # type: ignore[arg-type]


def test_a_text_with_a_control_character_is_no_proto() -> None:
    """A blank line is the first byte of many protos; the error is that of the text, with its place."""
    with pytest.raises(hlo.HloSyntaxError) as error:
        hlo.parse(b"\nHloModule m\n\nENTRY e {\n  ROOT p = f32[]\x1a parameter(0)\n}\n")
    assert (error.value.line, error.value.diagnostic.source is not None) == (5, True)
