"""Nodes by their names, and the names of public classes."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import hlotext as hlo
from tests import public_values

TEXT = """HloModule m
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT add = f32[] add(a, b)
}
ENTRY main { x = f32[4] parameter(0)
  zero = f32[] constant(0)
  ROOT sum = f32[] reduce(x, zero), dimensions={0}, to_apply=sum
}
"""


def test_an_instruction_and_a_computation_of_one_name() -> None:
    module = hlo.parse(TEXT)
    assert module.instruction("%sum").opcode == "reduce"
    assert module.computation("sum").root.opcode == "add"
    assert module.find("main") is module.computation("%main")


@pytest.mark.parametrize("name", ["main", "nothing"])
def test_no_instruction_of_that_name(name: str) -> None:
    with pytest.raises(KeyError, match=f"no instruction is named {name}"):
        hlo.parse(TEXT).instruction(name)


def test_no_computation_of_that_name() -> None:
    with pytest.raises(KeyError, match="no computation is named x"):
        hlo.parse(TEXT).computation("%x")


def test_metadata_can_be_made() -> None:
    module = hlo.parse(TEXT)
    module.instruction("x").attributes["metadata"] = hlo.Metadata(op_name="jit(f)/x")
    assert 'metadata={op_name="jit(f)/x"}' in str(module)


MOST_INTERNAL = 66
"""Names that several top-level classes of the package still have: they become fewer."""


def test_no_two_public_classes_have_one_name() -> None:
    names = Counter(class_.__name__ for class_ in public_values.public_classes())
    assert [name for name, count in names.items() if count > 1] == []


def test_internal_classes_of_one_name_become_fewer() -> None:
    package = Path(hlo.__file__).parent
    names = Counter(
        node.name
        for path in package.rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert sum(count > 1 for count in names.values()) <= MOST_INTERNAL
