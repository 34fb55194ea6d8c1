"""Mistakes in Python, each answered with what to write instead (`data/python_mistakes.txt`).

A record is a statement and, indented, what the answer must contain. The lines are what people write who know JAX, NumPy,
pandas or XLA, but not this package.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import matchers, rewrite

DATA = Path(__file__).parent / "data" / "python_mistakes.txt"
TEXT = """HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (x: f32[4,8], y: f32[4,8]) -> f32[4] {
  %x = f32[4,8]{1,0} parameter(0)
  %y = f32[4,8]{1,0} parameter(1)
  %plus = f32[4,8]{1,0} add(%x, %y)
  %neg.1 = f32[4,8]{1,0} negate(%plus)
  %zero = f32[] constant(0)
  ROOT %red = f32[4]{0} reduce(%neg.1, %zero), dimensions={1}, to_apply=%sum
}
"""


def records() -> Iterator[tuple[str, str]]:
    """Statements and what is said of them."""
    yield from re.findall(r"^(\S.*)\n    (.+)$", DATA.read_text("utf-8"), re.MULTILINE)


def names() -> dict[str, Any]:
    """What the statements speak of, made anew for each."""
    module = hlo.parse(TEXT)
    entry = module.entry
    return {
        "hlo": hlo,
        "rewrite": rewrite,
        "m": matchers,
        "Path": Path,
        "text": TEXT,
        "module": module,
        "entry": entry,
        "b": rewrite.Builder.before(entry.root),
        "red": entry.root,
        **{name: entry[name] for name in ("x", "y", "plus", "zero")},
    }


@pytest.mark.parametrize(("statement", "said"), list(records()))
def test_a_mistake_is_answered(
    statement: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # pytest undoes both
    (tmp_path / "a.txt").write_text(TEXT)
    warnings.simplefilter("error")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any, by what it says
        exec(statement, names())
    assert said in f"{type(caught.value).__name__}: {caught.value}"


def test_records_are_read() -> None:
    """No line of the file stands apart."""
    lines = [line for line in DATA.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    assert len(lines) == 2 * len(list(records()))


def test_values_are_formatted_as_their_text() -> None:
    found = names()
    shape = found["red"].shape
    assert f"{shape:>12}" == "   f32[4]{0}"
    assert f"{found['plus']:.5}" == "%plus"
    assert f"{shape.layout}" == "{0}"


def test_what_answers_for_protocols_supports_none() -> None:
    """Modules are true although they answer for `len()`, and a list of them is one that is wanted."""
    found = names()
    assert found["module"]
    assert found["red"].shape
    assert list(found["module"].instructions())[:3] == list(found["module"].computations[0])
    assert bool(found["module"].instructions())
    assert isinstance(found["module"].computations[:1], tuple)
    assert found["plus"] in found["entry"].instructions
