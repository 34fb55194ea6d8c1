"""tests/data/ok: a file for each form and each leniency of the language, with what it is printed as.

`NAME.hlo` is the text, `NAME.golden` what XLA's default style makes of it, with all constants. What `facts.toml` does not
name has no notes, and XLA's own reader takes it. To add a case, add a file and run pytest with --update-goldens.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import hlotext as hlo
from tests import support
from tests.test_readers import check_readers

FOLDER = support.DATA / "ok"
FACTS = tomllib.loads((FOLDER / "facts.toml").read_text(encoding="utf-8"))
"""Codes of the notes by file, and why XLA refuses what it refuses."""
FILES = sorted(FOLDER.glob("*.hlo"))

Golden = Callable[[Path, str], None]


def ids(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_a_form_of_the_language(path: Path, golden: Golden) -> None:
    """Both readers give the same, the text comes back as it was, and is printed as expected."""
    read = check_readers(path.read_bytes())
    assert read.error == ""
    assert [note.split("[", 1)[1][:4] for note in read.notes] == FACTS["notes"].get(path.stem, [])
    options = hlo.PrintOptions(print_large_constants=True)
    golden(path.with_suffix(".golden"), "".join(module.to_text(options) for module in read.modules))


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_strict_reading_refuses_what_is_not_known(path: Path) -> None:
    """With `strict` the first note is an error; what has no notes is read."""
    data = path.read_bytes()
    notes = FACTS["notes"].get(path.stem, [])
    if not notes:
        hlo.parse_all(data, strict=True)
        return
    with pytest.raises(hlo.HloSyntaxError) as error:
        hlo.parse_all(data, strict=True)
    assert error.value.code == notes[0]


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_the_printed_text_means_the_same(path: Path) -> None:
    """XLA's default style, read again, is printed the same: nothing is lost that it shows."""
    if path.stem in FACTS["not_read_back"]:
        pytest.skip(FACTS["not_read_back"][path.stem])
    options = hlo.PrintOptions(print_large_constants=True)
    for module in hlo.parse_all(path.read_bytes()):
        printed = module.to_text(options)
        assert hlo.parse(printed).to_text(options) == printed


def test_the_facts_are_about_files() -> None:
    """Every name in facts.toml is a case."""
    names = {path.stem for path in FILES}
    assert {*FACTS["notes"], *FACTS["refused_by_xla"], *FACTS["not_read_back"]} <= names
    assert {*FACTS["read_by_newest"]["names"]} <= {*FACTS["refused_by_xla"]}
    assert {path.stem for path in FOLDER.glob("*.golden")} == names
