"""Traits of opcodes: one row of the opcode table tells all that packages ask."""

from __future__ import annotations

from tests import opcode_sets


def test_sets_over_traits_have_the_recorded_opcodes() -> None:
    """A set that became an expression over traits has the opcodes that it listed before."""
    assert opcode_sets.differences() == []
