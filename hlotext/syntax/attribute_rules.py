"""Which grammar rule reads the value of which attribute, taken from the terminals of attributes.lark."""

from __future__ import annotations

import functools

from hlotext.syntax import grammar

_INSTRUCTION = "_ATTRIBUTE"
_HEADER = "_HEADER_ATTRIBUTE"


def attribute_rule(name: str) -> str | None:
    """The rule that reads an instruction attribute's value: `int_list` for `dimensions`; None for an unknown name."""
    return attribute_rules().get(name)


def header_attribute_rule(name: str) -> str | None:
    """The rule that reads a header attribute's value: `integer` for `replica_count`; None for an unknown name."""
    return header_attribute_rules().get(name)


@functools.cache
def attribute_rules() -> dict[str, str]:
    """Every known instruction attribute and the rule that reads its value."""
    return _rules(is_header=False)


@functools.cache
def header_attribute_rules() -> dict[str, str]:
    """Every known header attribute and the rule that reads its value."""
    return _rules(is_header=True)


def _rules(is_header: bool) -> dict[str, str]:
    """Name -> rule, of the terminals with that suffix; each is written `name=` or `(?:name|name)=`."""
    suffix = _HEADER if is_header else _INSTRUCTION
    return {
        name: terminal.removesuffix(suffix).lower()
        for terminal, regex in grammar.terminals().items()
        if terminal.endswith(suffix) and terminal.endswith(_HEADER) == is_header
        for name in regex.removesuffix("=").removeprefix("(?:").removesuffix(")").split("|")
    }
