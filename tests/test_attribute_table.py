"""The attribute table agrees with the opcode table, which says for each opcode what it takes and prints."""

from __future__ import annotations

import pytest

from hlotext.ir.tables.attributes import ATTRIBUTES, HEADER_ATTRIBUTES, AttributeInfo, Multiplicity
from hlotext.ir.tables.opcode import AttributeUse, Printing
from hlotext.ir.tables.opcode_attributes import COMMON_ATTRIBUTES
from hlotext.ir.tables.opcodes import OPCODES, SPELLINGS
from hlotext.ir.values.raw_value import RawValue
from hlotext.syntax.language import grammar
from tests.attribute_cases import GOOD, Case, read

WORDS = {
    Printing.IF_PRESENT: ("if given", "always"),
    Printing.ALWAYS: ("always",),
    Printing.DERIVED: ("always",),
    Printing.IF_TRUE: ("if true",),
    Printing.IF_NOT_DEFAULT: ("if not ",),
    Printing.IF_ANY_NOT_DEFAULT: ("if one ",),
    Printing.IF_NOT_EMPTY: ("if not empty", "if not the default", "if one of its key fields"),
    Printing.INPUT_ONLY: ("never",),
}
"""How the attribute table says each of the opcode table's conditions."""


def uses() -> dict[str, list[AttributeUse]]:
    """Every attribute with all its uses."""
    found: dict[str, list[AttributeUse]] = {use.name: [use] for use in COMMON_ATTRIBUTES}
    for row in OPCODES.values():
        for use in row.attributes:
            found.setdefault(use.name, []).append(use)
    return found


USES = uses()


def test_the_tables_have_the_same_attributes() -> None:
    """Every attribute belongs to an opcode, those of old text too."""
    assert set(USES) == set(ATTRIBUTES)


@pytest.mark.parametrize("name", sorted(USES))
def test_an_attribute_is_printed_as_at_one_opcode(name: str) -> None:
    """When an attribute is printed is what the opcode table says of it somewhere."""
    printed = ATTRIBUTES[name].printed
    assert any(printed.startswith(words) for use in USES[name] for words in WORDS[use.printed])


@pytest.mark.parametrize(
    "info", [*ATTRIBUTES.values(), *HEADER_ATTRIBUTES.values()], ids=lambda info: info.name
)
def test_a_row_is_complete(info: AttributeInfo) -> None:
    """Each row says in words what the attribute is."""
    assert info.value
    assert info.doc
    assert not info.doc.endswith(".")
    assert info.era in ("", "old", "new")


def test_the_grammar_reads_what_the_table_says() -> None:
    """Each attribute's rule is the one that reads it, in both directions."""
    rules = {name: info.kind.rule for name, info in ATTRIBUTES.items()}
    respelled = {spelling: rules[name] for spelling, name in SPELLINGS.items()}
    assert {**rules, **respelled} == grammar.attribute_rules()
    assert {
        name: info.kind.rule for name, info in HEADER_ATTRIBUTES.items()
    } == grammar.header_attribute_rules()


@pytest.mark.parametrize("case", [case for case in GOOD if "reference" not in case.values[0]])
def test_values_are_of_the_classes_that_the_table_says(case: Case) -> None:
    """What the cases of attributes read as."""
    parsed = read(case)
    info = ATTRIBUTES.get(parsed.name) or HEADER_ATTRIBUTES.get(parsed.name)
    if info is None or isinstance(parsed.value, RawValue):
        return
    kind, value = info.kind, parsed.value
    items = [value] if kind.form is Multiplicity.ONE else list(value)
    for item in items:
        assert isinstance(item, (tuple, *kind.classes()) if kind.form in _NESTED else kind.classes())


_NESTED = (Multiplicity.PAIRS, Multiplicity.NUMBERS)


def test_opcodes_of_an_attribute() -> None:
    assert ATTRIBUTES["metadata"].opcodes is None
    assert ATTRIBUTES["largest"].opcodes == ("topk",)
    assert "sine" in (ATTRIBUTES["result_accuracy"].opcodes or ())
