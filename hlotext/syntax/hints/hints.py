"""Hints for text that is merely not what the grammar expected."""

from __future__ import annotations

import functools
import re

from hlotext.ir.caches import weighted_cache
from hlotext.ir.spelling import nearest
from hlotext.ir.tables import opcodes
from hlotext.syntax.hints.parse_failure import ParseFailure
from hlotext.syntax.language import grammar
from hlotext.syntax.language.grammar import attribute_rule, header_attribute_rule

_CLOSERS = {"RPAREN": ")", "RPAR": ")", "RSQB": "]", "RBRACE": "}", "RAW_CLOSE": "}"}
TEXT_ENDS = "the text ends here"
BRACES = "a list is written in braces"
_NUMBER = re.compile(r"[+\-]?[0-9.][0-9A-Za-z.+\-]*")


def hint(place: ParseFailure) -> str:
    """Returns a guess at the mistake, or the expected form; empty if there is neither."""
    return _value(place) or _end(place) or _missing_sign(place) or _near(place) or form_of(place.within)


def _value(place: ParseFailure) -> str:
    """A value of the wrong kind."""
    word, expected = place.word, place.expected
    if "BOOL" in expected and word.lower() in ("true", "false", "0", "1"):
        return f"write `{'true' if word.lower() in ('true', '1') else 'false'}`"
    if "STRING" in expected and (word[:1].isalnum() or word[:1] in "-_."):
        bare = _BARE.match(place.text, place.start, place.limit)
        return f'put it in quotes: `"{bare[0] if bare is not None else word}"`'
    if place.within == "sharding" and expected == {"LBRACE"} and word[:1].isalpha():
        value = _VALUE.match(place.text, place.start, place.limit)
        return f"put it in braces: `sharding={{{value[0].rstrip() if value is not None else word}}}`"
    if (
        expected
        and expected <= {"LBRACE", "RBRACE"}
        and re.fullmatch(r"-?[\w.]+", word)
        and place.within not in _GROUPED
        and (not place.within or not place.follows(r"\s*[=(:]"))
    ):
        return f"{BRACES}: `{{{word}}}`"
    if place.within == "sharding" and expected & {"LESSTHAN", "BOUNDED"}:
        return "the devices follow the tile dimensions: `devices=[2,4]<=[8]`"
    if "LITERAL_NUMBER" in expected and word.startswith("."):
        return f"write a digit first: `0{word}`"
    if word in ("/", "#"):
        return "a comment starts with `//` or `/*`"
    if "INT" in expected and word == "+":
        return "numbers take no plus sign"
    if "INT" in expected and place.before.endswith("parameter("):
        return "a parameter has its number in parentheses: `parameter(0)`"
    if "LITERAL_NUMBER" in expected and (found := _literal_value(place)):
        return found
    if "INT" in expected and _NUMBER.fullmatch(word):
        return "only decimal integers are allowed here"
    is_unquoted = expected & {"INT", "NAME", "WORD"}
    return "remove the quotes" if is_unquoted and word in ("'", '"') else ""


_BARE = re.compile(r"[^\s{}\"']*[^\s{}\"',]")
"""A text without its quotes: up to the next field."""
_VALUE = re.compile(r"(?:\[[^\]\r\n]*\]|[^,\[\]\r\n]|,(?=\d))+")
"""The value of an attribute, up to the next one."""


def outside_computation(text: str, start: int) -> str:
    """Returns advice for op lines outside of any computation."""
    if text[:start].strip():
        return "its computation's header is missing, or there is an extra `}` before it"
    if _LINE_OF_BRACE.search(text, start) is not None:
        return "its computation's header is missing: write `NAME {`, or `ENTRY NAME {`, on a line before it"
    return "write `ENTRY main {` on a line before the instructions and `}` after the last one"


_LINE_OF_BRACE = re.compile(r"^[ \t]*\}", re.MULTILINE)


def _literal_value(place: ParseFailure) -> str:
    """Help for a value that no literal has."""
    word = place.word
    if word.lower() in _NUMBERS:
        return f"did you mean `{_NUMBERS[word.lower()]}`?"
    if word.lower() in ("true", "false"):
        return f"did you mean `{word.lower()}`?"
    if word == "[":
        return f"{BRACES}: `{{1, 2}}`"
    if word == ")" and place.before.endswith("constant("):
        return "write the value: `constant(0)`, or `constant({1, 2})`"
    return (
        "a value is a number, `true`, `false`, `inf`, `nan`, or a list of them in braces"
        if word[:1].isalpha()
        else ""
    )


_NUMBERS = {
    "infinity": "inf",
    "+infinity": "inf",
    "+inf": "inf",
    "np.inf": "inf",
    "none": "nan",
    "nan": "nan",
    "np.nan": "nan",
    "null": "0",
}
"""Values under the names of other languages."""
_GROUPED = frozenset({"replica_groups", "source_target_pairs"})


def _missing_sign(place: ParseFailure) -> str:
    """A comma or a closing bracket that may be missing before the word."""
    word = place.word
    if "LBRACE" in place.expected and not place.within and "\n" in place.text[place.behind : place.start]:
        return "is a `{` missing at the end of the line above?"
    closers = {_CLOSERS[name] for name in place.expected if name in _CLOSERS}
    is_next = (
        word in ("}", ")", "]", "->")
        or (word == "{" and place.closer in closers)
        or word in opcodes.OPCODES
        or place.follows(r"\s*=(?!=)")
        or word == "ENTRY"
    )
    if closers and word not in closers and is_next and not _is_attribute(place):
        return f"is a `{min(closers)}` missing before `{word}`?" if len(closers) == 1 else ""
    is_item = word[:1].isalnum() or word[:1] in "%_{\"'"
    if "RSQB" in place.expected:
        is_item = word[:1].isdigit()
    if "COMMA" in place.expected and is_item and re.match(r"[\w)}\]\"']", place.before[-1:]):
        return f"is a comma missing before `{word}`?"
    return ""


def _is_attribute(place: ParseFailure) -> bool:
    """True if the word is the name of an attribute: `=` follows it directly."""
    return place.follows("=")


def _near(place: ParseFailure) -> str:
    """The word that may have been meant, of those that the grammar spells out."""
    close = _closest(place.word[:60], place.expected)
    if close == place.word:
        return f"write `{close}=` before its value"
    return f"did you mean `{close}`?" if close else ""


@weighted_cache(1 << 10)
def _closest(word: str, expected: frozenset[str]) -> str:
    """The nearest word of those that terminals spell out; empty if none is near."""
    known = {spelled for name in expected for spelled in _spelled(name)}
    return next(iter(nearest(word, known)), "")


@functools.cache
def _spelled(terminal: str) -> tuple[str, ...]:
    """The words that a terminal's expression consists of; none for those of names and attributes."""
    if terminal.endswith("ATTRIBUTE") or terminal in ("NAME", "COMMENT"):
        return ()
    words = re.findall(r"[A-Za-z][a-z_]{3,}", grammar.terminals().get(terminal, ""))
    return tuple(word for word in words if len(word) > 3)


def _end(place: ParseFailure) -> str:
    """Nothing more follows, so the text may be cut off."""
    if place.word in _CLOSERS.values() or "$END" in place.expected:
        return ""
    rest = place.text[place.after : place.after + 200]
    return TEXT_ENDS if place.after + len(rest) == len(place.text) and not rest.strip() else ""


@weighted_cache(1 << 10)
def form_of(attribute: str) -> str:
    """Example of an attribute from the grammar; empty for an unknown one."""
    rule = attribute_rule(attribute) or header_attribute_rule(attribute)
    for name, example in grammar.examples():
        if rule is not None and name == rule and "\n" not in example:
            return f"for example: `{attribute}={example}`"
    return ""
