"""The cases of tests/data/attributes: attributes as text, value, printed text, and what XLA makes of them.

Each case is one attribute:

text       what is read
prints     what the value prints; the text itself if absent
canonical  what its canonical form prints, which is XLA's; `prints` if absent
xla        what XLA prints, where that differs: "" for nothing at all; false where its release takes no such
           text, or takes what is an error here
newest     what jaxlib 0.12.0.1 prints where that differs from `xla`, in the same way
fields     path -> value: "dimensions.0.size", "[key]" for a mapping, "" for the value itself
full       the group list written out, of replica groups
reference  names of the computations or instructions that are named
raw        true where the value, or a word in it, is kept as text
error      part of the message ("" for any), with `position` its place
template   the op line that XLA reads it with, where it is not the attribute's usual one
"""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from hlotext.ir.values.raw_value import value_text
from hlotext.syntax.reading import terms
from hlotext.syntax.reading.records import ParsedAttribute
from tests import support

Case = dict[str, Any]


def _cases() -> list[Any]:
    found = []
    for path in sorted((support.DATA / "attributes").glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        for case in table["case"]:
            case["rule"] = table.get("rule", "attribute")
            found.append(pytest.param(case, id=f"{path.stem}: {case['text'][:60]}"))
    return found


CASES = _cases()
GOOD = [case for case in CASES if "error" not in case.values[0]]
BAD = [case for case in CASES if "error" in case.values[0]]


def read(case: Case) -> ParsedAttribute:
    """The case's attribute."""
    parsed = terms.read(case["rule"], case["text"])
    assert isinstance(parsed, ParsedAttribute)
    return parsed


def text_of(name: str, value: object) -> str:
    """The attribute as it is printed."""
    return f"{name}={value_text(value, name)}"


def canonical(value: Any) -> Any:
    """The value as XLA holds it after reading."""
    return value.canonical() if hasattr(value, "canonical") else value
