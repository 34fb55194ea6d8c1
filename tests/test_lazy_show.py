"""`hlotext show` of files that are read as they are touched: what it says is the same, and nothing of them stays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.analysis.call_graph import call_graph
from hlotext.analysis.summary import summarize
from hlotext.cli import common
from hlotext.ir.nodes.compare import difference
from hlotext.syntax.lazy import lazy_module
from tests import support
from tests.cli_support import run

FILES = [
    *support.corpus_files(),
    *(path for path in support.corpus_files(["invalid"]) if path.suffix == ".txt"),
    *(path for folder in ("ok", "err") for path in sorted((support.DATA / folder).glob("*.hlo"))),
]
SMALL = support.CORPUS / "gpu" / "conditionals.h100_1x1x1.after_optimizations.txt"

TWO = """HloModule two

%unused (q: f32[4]) -> f32[4] {
  %q = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%q), new_attribute=1
}

%wrapped (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %r = f32[4]{0} all-reduce(%p), replica_groups={}, to_apply=%sum
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %new = f32[4]{0} new-opcode(%x), new_attribute=1
  %s = ((f32[4]{0}), f32[4]{0}, u32[]) async-start(%new), calls=%wrapped
  ROOT %done = f32[4]{0} async-done(%s)
}

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b), new_attribute=1
}
"""
"""Calls forward and backward, and what no release knows in several places."""


@pytest.fixture
def lazily(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Files of every size are read as they are touched, and let go of after each computation."""
    monkeypatch.setattr(common, "LEAST_LAZY", 0)
    monkeypatch.setattr(lazy_module, "_HELD", 1)
    monkeypatch.setattr(lazy_module, "_RUN", 1)
    return monkeypatch


def opened(path: Path) -> hlo.Module:
    module = lazy_module.load(str(path), strict=False, infer=hlo.infer_shape)
    assert module is not None
    return module


def unread(module: hlo.Module) -> int:
    return sum(isinstance(computation, lazy_module.UnreadComputation) for computation in module.computations)


def said(*arguments: str | Path) -> tuple[int, str, str]:
    """Status and output; a note on an unknown name stands at the first place that was read."""
    result = run("show", *arguments)
    return result.exit_code, result.stdout, re.sub(r":\d+:\d+: note", ": note", result.stderr)


@pytest.mark.parametrize(
    "path",
    support.in_stages(support.spread(FILES, 4), slow=len(FILES) // 4, nightly=2 * len(FILES) // 5),
    ids=support.corpus_id,
)
def test_a_summary_is_the_same(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every fact and note of every module, and every error, whichever way the file is read."""
    if path.suffix == ".xz":  # what is packed is never read lazily
        path, packed = tmp_path / path.stem, path
        path.write_bytes(support.read_text(packed))
    at_once = said(path, "--format", "json")
    monkeypatch.setattr(common, "LEAST_LAZY", 0)
    for length, held in ((1, 1), (1, 1 << 24), (3_000, 1), (1 << 20, 1)):
        monkeypatch.setattr(lazy_module, "_RUN", length)
        monkeypatch.setattr(lazy_module, "_HELD", held)
        assert said(path, "--format", "json") == at_once


def test_most_of_these_files_can_be_read_lazily() -> None:
    """The test above compares something."""
    plain = [path for path in FILES if path.suffix in (".txt", ".hlo")]
    lazy_ones = [
        lazy_module.load(str(path), strict=False, infer=hlo.infer_shape) is not None for path in plain
    ]
    assert sum(lazy_ones) > len(plain) // 4


def test_forward_calls_and_notes(tmp_path: Path, lazily: pytest.MonkeyPatch) -> None:
    """Notes stand at the first place of the text, whatever was read first."""
    path = tmp_path / "two.txt"
    path.write_text(TWO)
    assert unread(opened(path)) == 4
    text, facts = said(path), said(path, "--format", "json")
    lazily.undo()
    assert (said(path), said(path, "--format", "json")) == (text, facts)
    assert "two.txt:5:35: note[X203]: attribute new_attribute" in text[1]
    assert text[1].count("note[") == 2


def test_nothing_of_a_summary_stays(lazily: pytest.MonkeyPatch) -> None:
    """But for what somebody had touched before; it is read again when it is touched again."""
    whole, module = hlo.load(SMALL), opened(SMALL)
    touched = module.computations[1]
    first = touched.root
    assert summarize(module) == summarize(whole)
    assert unread(module) == len(module.computations) - 1
    assert touched.root is first
    assert len(module._parts) < len(whole._parts)
    assert difference(module, whole, exact=True) is None
    assert module.to_text() == whole.to_text()
    assert str(module) == str(whole)


def test_a_walk_lets_go_from_time_to_time(lazily: pytest.MonkeyPatch) -> None:
    """Not inside of another walk, nor what was edited, nor where callers are remembered."""
    module = opened(SMALL)
    count = len(module.computations)
    for computation in module.walk():
        assert len(computation)
        assert unread(module) == count - 1
        assert sum(map(len, module.walk()))
        assert not unread(module)
    assert unread(module) == count
    next(module.walk()).root.name = "renamed"
    assert "renamed" in str(module)
    module = opened(SMALL)
    for computation in module.walk():
        assert computation.callers is not None
    assert unread(module) == 0


def test_what_is_edited_on_a_walk_stays(lazily: pytest.MonkeyPatch) -> None:
    """The edit too."""
    whole, module = hlo.load(SMALL), opened(SMALL)
    for edited in (whole, module):
        for number, computation in enumerate(edited.walk()):
            computation.root.name = f"renamed.{number}"
    assert str(module) == str(whole)
    assert difference(module, whole) is None


def test_a_call_graph_holds_no_instruction(lazily: pytest.MonkeyPatch) -> None:
    """Callers are read again when they are asked for; what calls nothing is not read at all."""
    whole, module = call_graph(hlo.load(SMALL)), call_graph(opened(SMALL))
    assert unread(module.module) == len(module.module.computations)
    for theirs, mine in zip(whole.module.computations, module.module.computations, strict=True):
        assert module.use(mine) == whole.use(theirs)
        assert module.runs.get(mine) == whole.runs.get(theirs)
        assert (mine in module.stepped) == (theirs in whole.stepped)
        caller, other = module.caller(mine), whole.caller(theirs)
        assert (caller and caller.name) == (other and other.name)
    assert list(module.trips.values()) == list(whole.trips.values())


@pytest.mark.parametrize(
    "name", ["main", "%s", "r", "add", "wrapped", "sum", "nothing_like_it", "w", "wrappd"]
)
def test_one_name(name: str, tmp_path: Path, lazily: pytest.MonkeyPatch) -> None:
    """Of an instruction or a computation, or one that there is not."""
    path = tmp_path / "two.txt"
    path.write_text(TWO)
    found = said(path, "-i", name), said(path, "-i", name, "--format", "json")
    lazily.undo()
    assert (said(path, "-i", name), said(path, "-i", name, "--format", "json")) == found


def test_one_name_touches_what_it_shows(lazily: pytest.MonkeyPatch) -> None:
    """The computations that have an instruction of that name."""
    module = opened(SMALL)
    name = module.computations[0].root.name
    module = opened(SMALL)
    found = [i for i in module.find_all(f"%{name}") if isinstance(i, hlo.Instruction)]
    assert found
    assert {i.name for i in found} == {name}
    assert unread(module) == len(module.computations) - len({i.computation for i in found})


def test_errors_are_said_as_ever(tmp_path: Path, lazily: pytest.MonkeyPatch) -> None:
    """What is found on the way makes the file be read at once."""
    path = tmp_path / "broken.txt"
    path.write_text(TWO.replace("negate(%q)", "negate(%z)"))
    assert unread(opened(path)) == 4
    found = said(path), said(path, "-i", "n")
    assert said(path, "-i", "x")[0] == 0  # it stands elsewhere
    lazily.undo()
    assert (said(path), said(path, "-i", "n")) == found
    assert found[0][0] == 2
    assert "X102" in found[0][2]
