"""`hlotext fmt --annotate`: comments behind op lines, replaced when done again, read over by XLA."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.view.annotations import annotated
from tests.cli_support import run
from tests.support import CORPUS
from tests.xla import ask_xla

TEXT = """HloModule m

FileNames
1 "/x/site-packages/lib.py"
2 "/home/me/train.py"

FunctionNames
1 "inner"
2 "mlp"

FileLocations
1 {file_name_id=1 function_name_id=1 line=5 end_line=5 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=12 end_line=12 column=1 end_column=2}

StackFrames
1 {file_location_id=2 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=2}

%body (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%p), metadata={op_name="a //@ b" stack_frame_id=2}
}

ENTRY %e (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %f = f32[4]{0} fusion(%x), kind=kLoop, calls=%body, metadata={stack_frame_id=2}  // hlotext: ignore[L101]
}
"""


def test_what_is_said() -> None:
    """The user's frame, bytes of what has memory, other comments and what only looks like one kept."""
    lines = annotated(hlo.parse(TEXT)).splitlines()
    assert (
        '  ROOT %n = f32[4]{0} negate(%p), metadata={op_name="a //@ b" stack_frame_id=2}  //@ train.py:12 mlp'
        in lines
    )
    assert lines[-2].endswith("// hlotext: ignore[L101]  //@ train.py:12 mlp, 16 B")


@pytest.mark.parametrize("place", ["cpu", "gpu", "tpu"])
def test_again_is_the_same(place: str) -> None:
    """And the module is the same."""
    path = min((CORPUS / place).glob("*.after_optimizations.txt"), key=lambda one: one.stat().st_size)
    module = hlo.load(path)
    once = annotated(module)
    again = hlo.parse(once)
    assert annotated(again) == once
    assert again.to_text() == module.to_text()


@pytest.mark.xla
def test_xla_reads_it_unchanged() -> None:
    ours, theirs = ask_xla([TEXT, annotated(hlo.parse(TEXT))])
    assert ours is not None
    assert ours == theirs


def test_the_command(tmp_path: Path) -> None:
    """In place, twice, without --lossy; no style beside it."""
    path = tmp_path / "m.txt"
    path.write_text(TEXT)
    assert run("fmt", "--annotate", "-i", path).exit_code == 0
    once = path.read_text()
    assert "//@ train.py:12 mlp, 16 B" in once
    assert run("fmt", "--annotate", "-i", path).exit_code == 0
    assert path.read_text() == once
    assert run("fmt", "--annotate", "--style", "short", path).exit_code == 2
