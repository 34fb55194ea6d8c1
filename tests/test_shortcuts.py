"""Shortcuts for attributes give what the grammar gives, or nothing: for the cases in tests/data/attributes, and damaged."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from hlotext.findings.errors import TermError
from hlotext.syntax.fast import shortcuts
from hlotext.syntax.language import grammar, patterns
from hlotext.syntax.reading import terms
from hlotext.syntax.source.inputs import read_source
from tests import support
from tests.attribute_cases import CASES

RULES = {**grammar.header_attribute_rules(), **grammar.attribute_rules()}
SHAPE = re.compile(r" = (\(.*?\)|[a-z][!-~]*) [a-z][a-z0-9\-]*\(")
"""The shape of an op line, as it is written."""


def shapes() -> Iterator[str]:
    """Shapes of real modules of each platform."""
    for name in ("cpu/mlp_train", "gpu/mlp_train", "tpu/mlp_train", "tpu/transformer_train_scan"):
        for path in sorted(support.ROOT.glob(f"corpus/{name}.*after_optimizations.txt*"))[:1]:
            yield from set(SHAPE.findall(read_source(path).text))


TEXTS = sorted(
    {
        text
        for case in CASES
        if RULES.get((text := str(case.values[0]["text"])).partition("=")[0]) in shortcuts.FAST_RULES
    }
    | {f"outfeed_shape={shape}" for shape in shapes()}
)
"""Every text whose rule has a shortcut."""
DAMAGED = 40
"""How often each text is damaged."""


def is_cut(text: str) -> bool:
    """Whether the fast reader would take a text for one attribute, which shortcuts rely on; those for shapes do not."""
    if RULES[text.partition("=")[0]] == "shape":
        return True
    return "\n" not in text and patterns.attribute().findall(f", {text}") == [text]


def damaged(text: str) -> Iterator[str]:
    """The text with a few characters missing, doubled, or replaced by others of it; with each of its numbers negative."""
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
    for number in re.finditer(r"[0-9]+", value):
        yield f"{name}={value[: number.start()]}-{value[number.start() :]}"


def compared(text: str) -> bool:
    """Whether the shortcut for a text gives something, which is then what the grammar gives."""
    name, _, value = text.partition("=")
    fast = shortcuts.shortcut(RULES[name])
    assert fast is not None
    try:
        found = fast(value)
    except TermError:
        return False
    if found is None:
        return False
    assert (repr(found), found) == (repr(wanted := terms.read(RULES[name], value)), wanted)
    return True


@pytest.mark.parametrize("text", TEXTS)
def test_equal_to_the_grammar(text: str) -> None:
    """As it is and damaged: the same value, or none, and none for what the grammar refuses."""
    cut = [one for one in (text, *damaged(text)) if is_cut(one)]
    assert sum(map(compared, cut)) + sum(map(is_left, cut)) == len(cut)


def is_left(text: str) -> bool:
    """Whether the shortcut leaves a text to the grammar."""
    name, _, value = text.partition("=")
    fast = shortcuts.shortcut(RULES[name])
    try:
        return fast is None or fast(value) is None
    except TermError:
        return True


@pytest.mark.parametrize("rule", shortcuts.FAST_RULES)
def test_every_shortcut_reads_something(rule: str) -> None:
    """Of the texts above, as they are, at least one."""
    assert any(compared(text) for text in TEXTS if is_cut(text) and RULES[text.partition("=")[0]] == rule)


def test_python_s_identifier_is_the_grammar_s() -> None:
    """And no reserved word is a name."""
    assert grammar.terminals()["IDENTIFIER"] + "+" == patterns.IDENTIFIER
    assert f"){patterns.WORD_END})" in grammar.terminals()["NAME"]
    for word in grammar.reserved():
        assert patterns.name().fullmatch(word) is None
        assert patterns.name().fullmatch(f"{word}_") is not None
        assert re.fullmatch(patterns.bare_name(), word) is None
    assert "<" not in grammar.text().partition("NAME:")[2].partition("\n")[0]


@pytest.mark.parametrize(
    "text",
    [
        "sharding={mesh['a'=2,'b'=4], [{'a', ?}, {'b':(1)2}, {}], replicated={'b':(2)2}}",
        "sharding={mesh['a'=2,'b'=2], device_ids=(3,2,1,0), [{'a'}], unreduced={'b'}}",
        "sharding={{mesh['a'=2], manual}, {mesh[], replicated}, {maximal device=1}}",
        "replica_groups=mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a','b':(1)2}",
        'backend_config="unspecified_dims=[0]"',
        "sharding={single_device[device_id=3]}",
        "order=TOTAL",
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
