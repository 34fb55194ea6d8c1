"""Nodes by their names, and the names of public classes."""

from __future__ import annotations

import pytest

import hlotext as hlo

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
    with pytest.raises(KeyError, match=f"no instruction is called {name}"):
        hlo.parse(TEXT).instruction(name)


def test_no_computation_of_that_name() -> None:
    with pytest.raises(KeyError, match="no computation is called x"):
        hlo.parse(TEXT).computation("%x")


def test_metadata_can_be_made() -> None:
    module = hlo.parse(TEXT)
    module.instruction("x").attributes["metadata"] = hlo.Metadata(op_name="jit(f)/x")
    assert 'metadata={op_name="jit(f)/x"}' in str(module)
