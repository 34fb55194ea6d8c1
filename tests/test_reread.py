"""`reread`: what XLA prints after reading a text, its order, its names and its values.

`tests/data/reread` holds texts and, beside each, what jaxlib 0.10.2 prints of it (`.xla`); in `newest` what 0.12.0.1 prints;
`test_as_xla` asks the XLA that is installed, of these, of the cases of tests/data/ok and of the corpus.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import attrs
import pytest

import hlotext as hlo
from tests import support
from tests.cli_support import run
from tests.test_ok import FACTS
from tests.xla_prints import xla_rereads

CASES = sorted((support.DATA / "reread").glob("*.hlo"))
NEWEST = sorted((support.DATA / "reread" / "newest").glob("*.hlo"))
FULL = hlo.PrintOptions(print_large_constants=True)

DIFFERENT = {
    "instruction_nested": "in a lone op line XLA takes the opcodes of nested operands for names",
    "recovery_table": "XLA prints the module between the quotes anew, with a line end more each time",
}
"""Texts of which XLA prints something else, and why hlotext does not."""

FILES = [*CASES, *sorted((support.DATA / "ok").glob("*.hlo")), *support.corpus_files()]
GROUPS = [FILES[start::8] for start in range(8)]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    """What XLA printed when the case was made."""
    module = hlo.parse(path.read_text(encoding="utf-8"))
    before = str(module)
    assert hlo.reread(module, age="0.10.2").to_text() == path.with_suffix(".xla").read_text(encoding="utf-8")
    assert str(module) == before


@pytest.mark.parametrize("path", NEWEST, ids=lambda path: path.stem)
def test_newest(path: Path) -> None:
    """What jaxlib 0.12.0.1 printed; without an age the newest is meant, and reading it back changes nothing more."""
    module = hlo.parse(path.read_text(encoding="utf-8"))
    expected = path.with_suffix(".xla").read_text(encoding="utf-8")
    assert hlo.reread(module, age="0.12").to_text(FULL) == expected
    assert hlo.reread(module).to_text(FULL) == expected


def test_words_of_releases() -> None:
    """Each release prints its own words for the same thing."""
    text = (
        "HloModule m, entry_computation_layout={(f32[4]{0})->pred[4]{0}}\n\nENTRY %e (p: f32[4]) -> pred[4] {\n"
        "  %p = f32[4]{0} parameter(0), sharding={single_device[device_id=0]}\n"
        "  ROOT %c = pred[4]{0} compare(%p, %p), direction=LT, order=TOTAL\n}\n\n"
    )
    old = hlo.reread(hlo.parse(text), age="0.10.2").to_text()
    assert "type=TOTALORDER" in old
    assert "maximal_mesh[device_id=0]" in old
    assert hlo.reread(hlo.parse(old), age="0.12.0.1").to_text() == text
    with pytest.raises(ValueError, match="not an XLA age"):
        hlo.reread(hlo.parse(text), age="yesterday")


@pytest.mark.parametrize("path", support.corpus_files()[::6], ids=lambda path: path.name)
def test_reading_what_was_printed_changes_no_line(path: Path) -> None:
    """Names are unique, instructions in order; computations may be ordered once more and frames renumbered, as by XLA."""
    bare = attrs.evolve(FULL, print_metadata=False)
    once = hlo.reread(hlo.load(path)).to_text(bare)
    twice = hlo.reread(hlo.parse(once)).to_text(bare)
    assert sorted(once.split("\n\n")[1:]) == sorted(twice.split("\n\n")[1:])


def test_fmt() -> None:
    """The command prints what `hlo.reread` gives, in any style."""
    path = CASES[0]
    module = hlo.reread(hlo.load(path))
    result = run("fmt", "--reread", "--style", "canonical", path)
    assert (result.exit_code, result.stdout) == (0, module.to_text(hlo.PrintOptions.canonical()))
    assert "names" in run("fmt", "--reread", "-i", path).stderr
    assert run("fmt", "--reread", "--style", "source", path).exit_code == 2


def test_circles_and_unknown_things_are_kept() -> None:
    """What XLA refuses is printed all the same."""
    text = (
        "a {\n  ROOT x = f32[] new-op(), to_apply=a\n}\n\nENTRY e {\n  ROOT y = f32[] call(), to_apply=a\n}\n"
    )
    assert hlo.parse(hlo.reread(hlo.parse(text)).to_text()).find("x") is not None


@pytest.mark.xla
@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_as_xla(group: int) -> None:
    """Byte for byte; constants whose numbers the text leaves out aside, which XLA fills from a counter."""
    pytest.importorskip("jaxlib")
    paths, release = GROUPS[group], metadata.version("jaxlib")
    texts = [support.read_text(path).decode("utf-8", "surrogateescape") for path in paths]
    for path, text, prints in zip(paths, texts, xla_rereads(texts), strict=True):
        if prints is None:
            assert path.stem in FACTS["refused_by_xla"], path
            continue
        module = hlo.reread(hlo.parse(text), age=release)
        assert (module.to_text() == prints["default"]) == (path.stem not in DIFFERENT), path
        if "{...}" not in text:
            assert (module.to_text(FULL) == prints["full"]) == (path.stem not in DIFFERENT), path


def test_quotes_inside_a_recovery_module_are_escaped_since_july_2026() -> None:
    raw = (support.DATA / "ok" / "recovery_table_as_xla_writes.hlo").read_text()
    escaped = r"metadata={op_name=\"x\\\"y\"}"
    assert r'metadata={op_name="x\"y"}' in hlo.reread(hlo.parse(raw), age="0.10.2").to_text()
    new = hlo.reread(hlo.parse(raw), age="0.12").to_text()
    assert escaped in new
    assert escaped in hlo.parse(new).to_text()
    assert (
        hlo.reread(hlo.parse(new), age="0.10.2").to_text()
        == hlo.reread(hlo.parse(raw), age="0.10.2").to_text()
    )
