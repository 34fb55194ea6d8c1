"""Shortcuts for attributes give what the grammar gives, or nothing: for the cases in tests/data/attributes, and damaged."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from hlotext.findings.errors import TermError
from hlotext.syntax.fast import shortcuts
from hlotext.syntax.language import grammar, patterns
from hlotext.syntax.reading import terms
from tests.attribute_cases import CASES

RULES = {**grammar.header_attribute_rules(), **grammar.attribute_rules()}
TEXTS = sorted({str(case.values[0]["text"]) for case in CASES})
DAMAGED = 40
"""How often each text is damaged."""


def is_cut(text: str) -> bool:
    """Whether the fast reader would take a text for one attribute, which shortcuts rely on."""
    return "\n" not in text and patterns.attribute().findall(f", {text}") == [text]


def damaged(text: str) -> Iterator[str]:
    """The text with a few characters missing, doubled, or replaced by others of it."""
    chance = random.Random(text)
    name, _, value = text.partition("=")
    for _ in range(DAMAGED if value else 0):
        letters = list(value)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(letters))
            letters[place] = chance.choice(
                ("", letters[place] * 2, chance.choice(value), chance.choice("'?: 0x"))
            )
        yield f"{name}={''.join(letters)}"


@pytest.mark.parametrize("text", TEXTS)
def test_equal_to_the_grammar(text: str) -> None:
    rule = RULES.get(text.partition("=")[0])
    fast = shortcuts.shortcut(rule) if rule is not None else None
    if rule is None or fast is None:
        return
    for one in filter(is_cut, (text, *damaged(text))):
        value = one.partition("=")[2]
        try:
            found = fast(value)
        except TermError:
            continue
        if found is not None:
            assert (repr(found), found) == (repr(wanted := terms.read(rule, value)), wanted)


@pytest.mark.parametrize(
    "text",
    [
        "sharding={mesh['a'=2,'b'=4], [{'a', ?}, {'b':(1)2}, {}], replicated={'b':(2)2}}",
        "sharding={mesh['a'=2,'b'=2], device_ids=(3,2,1,0), [{'a'}], unreduced={'b'}}",
        "sharding={{mesh['a'=2], manual}, {mesh[], replicated}, {maximal device=1}}",
        "replica_groups=mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a','b':(1)2}",
        'backend_config="unspecified_dims=[0]"',
        "type=TOTALORDER",
        "epsilon=0.001",
    ],
)
def test_what_xla_writes_needs_no_grammar(text: str) -> None:
    name, _, value = text.partition("=")
    fast = shortcuts.shortcut(RULES[name])
    assert fast is not None
    assert is_cut(text)
    assert fast(value) == terms.read(RULES[name], value) is not None
