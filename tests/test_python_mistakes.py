"""Mistakes in Python, each answered with what to write instead (`data/python_mistakes.txt`).

A record is a statement and, indented, what the answer must contain. The lines are what people write who know JAX, NumPy,
pandas or XLA, but not this package.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
import warnings
from collections.abc import Callable, Iterator
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
        "records": records,
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


def taking_one() -> Iterator[tuple[str, Callable[[object], object]]]:
    """Public functions of the packages that can be called with one argument, of a class of ours, by their names."""
    for room in ("analysis", "cost", "layout", "lint", "memory", "rewrite", "thunks"):
        package = importlib.import_module(f"hlotext.{room}")
        for name in package.__all__:
            function = getattr(package, name)
            if not isinstance(function, types.FunctionType):
                continue
            needed = [
                one
                for one in inspect.signature(function).parameters.values()
                if one.default is one.empty and one.kind is not one.VAR_KEYWORD
            ]
            if len(needed) == 1 and needed[0].annotation in ("Module", "Shape", "Instruction", "Computation"):
                yield f"{room}.{name}", function


@pytest.mark.parametrize("value", [5, "x", None, ()], ids=repr)
def test_a_value_of_another_type_is_named(value: object) -> None:
    """Whatever a public function takes first, a wrong one is refused by a message that names its type, not from inside."""
    asked = dict(taking_one())
    assert len(asked) > 60
    kind = type(value).__name__
    silent = {}
    for name, function in asked.items():
        try:
            found = function(value)
            if isinstance(found, types.GeneratorType):
                list(found)
        except (TypeError, ValueError) as error:
            if re.search(rf"not (an? )?({kind}|None)\b", str(error)):
                continue
            silent[name] = str(error)
        except Exception as error:
            silent[name] = repr(error)
        else:
            silent[name] = "nothing"
    assert silent == {}
