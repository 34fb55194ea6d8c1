"""Names that a class lacks are answered: abbreviations of its attributes, attributes of what is near it, opcodes."""

from __future__ import annotations

import importlib
from typing import Any

import attrs
import pytest

import hlotext as hlo
from hlotext.ir.short_names import Abbreviated, ShortName, variants

TEXT = """HloModule m

ENTRY e {
  p = f32[4]{0} parameter(0), metadata={op_name="x"}
  ROOT c = f32[4]{0} constant({1, 2, 3, 4})
}
"""
MODULE: Any = hlo.parse(TEXT)
VALUES: list[Any] = [
    MODULE,
    MODULE.entry,
    MODULE.entry.root,
    MODULE.entry["p"].metadata,
    MODULE.entry.root.shape,
    MODULE.entry.root.shape.layout,
    MODULE.entry.root.shape.element_type,
    MODULE.entry.root.literal,
]


def static(kind: type, name: str) -> object:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_beginnings_of_attributes_are_answered(value: Any) -> None:
    """Each beginning of four letters or more of each attribute suggests an attribute that begins so."""
    kind = type(value)
    assert isinstance(value, Abbreviated)
    shown = dir(value)
    asked = 0
    for name in shown:
        for short in variants(name) if name[0] != "_" else ():
            if short in shown:
                continue
            with pytest.raises(
                AttributeError, match=rf"'{kind.__name__}' object has no attribute '{short}'; "
            ) as said:
                getattr(value, short)
            assert "did you mean `." in str(said.value) or "; use " in str(said.value)
            assert not hasattr(value, short)
            asked += 1
    assert asked > 10


@pytest.mark.parametrize("value", VALUES[:4], ids=lambda value: type(value).__name__)
def test_no_short_name_is_listed(value: Any) -> None:
    """Completion offers names that exist."""
    for name in dir(value):
        assert not isinstance(static(type(value), name), ShortName)


@pytest.mark.parametrize(
    ("ask", "meant"),
    [
        (lambda m: m.instrs, "did you mean `.instructions()`?"),
        (lambda m: m.mem, "did you mean `.memory()`?"),
        (lambda m: m.comp, "did you mean `.compare(new)` or `.computation(name)`?"),
        (lambda m: m.entry.params, "did you mean `.parameters`?"),
        (lambda m: m.entry.root.opnds, "did you mean `.operands`?"),
        (lambda m: m.entry.root.control_preds, "did you mean `.control_predecessors`?"),
        (lambda m: m.entry.root.shape.dim, "did you mean `.dimensions`?"),
        (lambda m: m.entry.root.shape.layout.minor, "did you mean `.minor_to_major`?"),
        (lambda m: m.operands, "did you mean `.entry.root.operands`?"),
        (lambda m: m.entry.root.instructions, "did you mean `.computation.instructions`?"),
        (lambda m: m.entry.root.element_count, "did you mean `.shape.element_count`?"),
        (lambda m: m.dot, "use [i for i in module.instructions() if i.opcode == 'dot']"),
        (lambda m: m.entry.root.all_gather, "use instruction.opcode == 'all-gather'"),
    ],
)
def test_what_is_meant(ask: Any, meant: str) -> None:
    with pytest.raises(AttributeError) as said:
        ask(MODULE)
    assert str(said.value).endswith(meant)
    assert said.value.name is None  # Python proposes nothing else


@pytest.mark.parametrize("module", ["cost", "diff", "dumps", "layout", "lint", "memory", "rewrite", "thunks"])
def test_results_of_packages_say_what_they_have(module: str) -> None:
    """Classes of results that do not compute their attributes answer for a misspelled one."""
    package = importlib.import_module(f"hlotext.{module}")
    asked = 0
    for name in package.__all__:
        kind = getattr(package, name)
        if not isinstance(kind, type) or "_says_members" not in vars(kind) or not attrs.has(kind):
            continue
        value = object.__new__(kind)
        for field in attrs.fields_dict(kind):
            if field[0] == "_" or len(field) < 5:
                continue
            slip = f"{field[:-2]}{field[-1]}{field[-2]}x"
            with pytest.raises(AttributeError, match="; "):
                getattr(value, slip)
            asked += 1
    assert asked or module in ("layout", "thunks", "rewrite")
