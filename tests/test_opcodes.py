"""The opcode table: complete, consistent, and its examples readable here and by XLA."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Calls, Opcode, Payload, Printing
from hlotext.ir.tables.opcodes import OPCODES
from tests.xla import ask_xla, is_newest

ROWS = [pytest.param(row, id=row.name) for row in OPCODES.values()]

NO_START = {"async-done", "async-update"}
"""Examples that XLA refuses because they take what some other line has started."""


def test_known_opcodes() -> None:
    """XLA of jaxlib 0.10.2 has 133 opcodes; newer ones are marked, which a test below asks XLA itself."""
    assert sum(not row.new for row in OPCODES.values()) == 133
    assert list(OPCODES) == sorted(OPCODES)


@pytest.mark.parametrize("row", ROWS)
def test_attributes_of_a_row(row: Opcode) -> None:
    names = [use.name for use in (*row.attributes, *opcodes.common_attributes(row))]
    assert len(set(names)) == len(names)
    assert list(opcodes.allowed_attributes(row)) == names
    assert ("result_accuracy" in names) == row.result_accuracy
    for use in row.attributes:
        assert not (use.required and use.printed is Printing.INPUT_ONLY)
        assert row.attribute(use.name) is use
    assert {*row.stored_calls} <= {use.name for use in row.called_attributes}
    assert all(row.attribute(name) for names in row.alternatives for name in names)


@pytest.mark.parametrize("row", ROWS)
def test_example_of_a_row(row: Opcode) -> None:
    """The example reads as that opcode, with operands and attributes as the row requires them."""
    instruction = hlo.parse_instruction(row.example)
    assert instruction.opcode == row.name
    assert row.arity.accepts(len(instruction.operands))
    assert (instruction.literal is not None) == (row.payload is Payload.LITERAL)
    for use in row.attributes:
        assert use.name in instruction.attributes or not use.required
    assert bool(instruction.called_computations) == any(
        use.calls is not Calls.NONE and use.name in instruction.attributes for use in row.attributes
    )


def test_operand_counts() -> None:
    assert OPCODES["add"].arity.accepts(2)
    assert not OPCODES["add"].arity.accepts(3)
    assert not OPCODES["reduce"].arity.accepts(3)
    assert not OPCODES["scatter"].arity.accepts(4)
    assert str(OPCODES["scatter"].arity) == "at least 3, an odd number"
    assert str(OPCODES["tuple"].arity) == "any number, one per element of the result"


@pytest.mark.parametrize(
    ("word", "wrapped"),
    [
        ("call-start", "call"),
        ("all-to-all-done", "all-to-all"),
        ("reduce-scatter-update", "reduce-scatter"),
        ("all-reduce-update", "all-reduce"),
    ],
)
def test_short_spelling_of_asynchronous_operations(word: str, wrapped: str) -> None:
    found = opcodes.async_wrapped(word)
    assert found is not None
    half, row = found
    assert half.name == f"async-{word.rsplit('-', 1)[1]}"
    assert row.name == wrapped


@pytest.mark.parametrize(
    "word", ["copy-start", "copy-done", "all-reduce-start", "foo-start", "add", "-start"]
)
def test_words_that_are_no_short_spelling(word: str) -> None:
    assert opcodes.async_wrapped(word) is None


def test_conditions_come_after_bodies_in_stored_order() -> None:
    row = OPCODES["while"]
    assert [use.name for use in row.called_attributes] == ["condition", "body"]
    assert row.stored_called_names == ("body", "condition")


@pytest.mark.xla
def test_xla_reads_the_examples_of_the_opcodes_that_it_knows() -> None:
    rows = [row for row in OPCODES.values() if row.name not in NO_START]
    for row, answer in zip(rows, ask_xla([row.example for row in rows]), strict=True):
        assert (answer is None) == (row.name == "atan" if is_newest() else row.new), row.name
