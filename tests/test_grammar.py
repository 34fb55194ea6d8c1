"""The grammar is its own documentation: every rule has an example line, and every example is what it says."""

from __future__ import annotations

import functools
import re

import lark
import pytest

from hlotext.ir.tables.attributes import ATTRIBUTES, HEADER_ATTRIBUTES
from hlotext.ir.tables.opcodes import SPELLINGS
from hlotext.syntax.language import grammar
from hlotext.syntax.reading import terms
from hlotext.syntax.reading.builders import Builder
from hlotext.syntax.reading.builders.instruction import TokenTracker

EXAMPLES = list(grammar.examples())
RULES = [(name, example) for name, example in EXAMPLES if name.islower()]
TERMINALS = [(name, example) for name, example in EXAMPLES if name.isupper()]

FOLLOWERS = ("", "(", "[", ")", "{", " 0")
"""Some terminals look at what stands behind them; one of these is it."""


@functools.cache
def parser() -> lark.Lark:
    """The grammar with every rule as a start."""
    builder = Builder()
    builder.tracker = TokenTracker()
    return lark.Lark(
        grammar.text(),
        parser="lalr",
        lexer="contextual",
        start=[name for name in grammar.names() if name.islower()],
        transformer=builder,
        postlex=builder.tracker,
        maybe_placeholders=True,
    )


@pytest.mark.parametrize(("rule", "example"), RULES)
def test_a_rule_reads_its_example(rule: str, example: str) -> None:
    """The example is read to its end by that rule alone."""
    parser().parse(example, start=rule)


@pytest.mark.parametrize(("terminal", "example"), TERMINALS)
def test_a_terminal_is_its_example(terminal: str, example: str) -> None:
    """The terminal's expression takes exactly the example, with something that may stand behind it."""
    expression = re.compile(grammar.terminals()[terminal])
    matches = [expression.match(example + follower) for follower in FOLLOWERS]
    assert example in [match[0] for match in matches if match is not None]


def test_everything_has_an_example() -> None:
    """No rule and no terminal is without one."""
    expected = set(grammar.names())
    actual = {name for name, _ in EXAMPLES}
    assert expected == actual


def test_names_are_not_written_twice() -> None:
    """Rules and terminals have different names across the files."""
    names = grammar.names()
    assert sorted(set(names)) == sorted(names)


def test_the_terminals_on_one_line_are_all() -> None:
    """Python knows every terminal's expression, so the fast reader can be made from them."""
    expected = {name for name in grammar.names() if name.isupper()}
    actual = set(grammar.terminals())
    assert expected == actual


def test_the_readers_starts_are_rules() -> None:
    """What can be read on its own stands in the grammar."""
    assert set(terms.STARTS) <= set(grammar.names())


def test_grammar_and_attribute_table_know_the_same_attributes() -> None:
    """Each attribute of the table has a rule for its value, and each rule's attribute has a row."""
    assert {*ATTRIBUTES, *SPELLINGS} == set(grammar.attribute_rules())
    assert set(HEADER_ATTRIBUTES) == set(grammar.header_attribute_rules())


def test_attribute_rules_are_rules() -> None:
    """The part before _ATTRIBUTE names a rule of the grammar, and `attribute` joins the two."""
    text = grammar.text()
    for terminal in grammar.terminals():
        for suffix in ("_HEADER_ATTRIBUTE", "_ATTRIBUTE"):
            if terminal.endswith(suffix):
                assert f"{terminal} {terminal.removesuffix(suffix).lower()}\n" in text
                break


def test_rules_of_attributes() -> None:
    """Some names and their rules; None for what is not known."""
    assert grammar.attribute_rule("dimensions") == "int_list"
    assert grammar.attribute_rule("control-predecessors") == "instruction_list"
    assert grammar.attribute_rule("replica_count") is None
    assert grammar.header_attribute_rule("replica_count") == "integer"
    assert grammar.header_attribute_rule("dimensions") is None
