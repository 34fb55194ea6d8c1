"""Words of patterns that nobody knows: a pattern with one matches nothing, in silence, so it is most likely a slip."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hlotext.ir.spelling import did_you_mean
from hlotext.ir.tables import attributes, opcodes
from hlotext.ir.tables.attributes import Multiplicity
from hlotext.ir.tables.opcode import Payload
from hlotext.ir.tables.other_names import opcode_suggested
from hlotext.ir.values.types import ELEMENT_TYPES, types_meant
from hlotext.matchers.glob import is_like
from hlotext.semantics import conditions

_TYPE = re.compile(r"([\w*?]+)\[")
ONE_VALUE = "a constant is matched by the single value of all its elements: constant(2.5)"
_WILD = re.compile(r"[*?]")


def is_wild(word: str) -> bool:
    """Returns True if a word contains wildcards."""
    return _WILD.search(word) is not None


def unknown_opcode(word: str) -> str | None:
    """Returns a message for an unknown opcode, or a glob that matches none; None for a known one."""
    if _WILD.search(word):
        if any(is_like(name, word) for name in opcodes.OPCODES):
            return None
        return f"no opcode matches {word}"
    if word in opcodes.OPCODES:
        return None
    return _said(f"there is no opcode {word}", opcode_suggested(word) or f"write ${word} for any operand")


def not_an_operation(text: str) -> str | None:
    """Error text for what people write where a pattern has an operation; None for other texts.

    A shape alone, a regular expression, and a field of a query.
    """
    if (shape := _SHAPE.match(text)) is not None:
        return f"a shape alone is no operation; `{shape[1]} _` is any one of that shape"
    if (field := _FIELD.match(text)) is not None:
        if field[1] in attributes.ATTRIBUTES:
            return f"attributes follow an operation: `_, {field[0].strip()}`"
        return f"a pattern is an op line and has no {field[1]}=; write an opcode as `{_opcode_in(field[2])}(...)`"
    if _EXPRESSION.match(text):
        return (
            "a pattern is an op line with wildcards, not a regular expression: "
            f"`{_opcode_in(text)}(...)`, `all-*`, `f32[*] _`"
        )
    return None


def _opcode_in(text: str) -> str:
    """The opcode that a text contains; `dot` if it has none."""
    found = (word for word in re.findall(r"[a-z][a-z\-]*[a-z]", text) if word in opcodes.OPCODES)
    return next(found, "dot")


_SHAPE = re.compile(r"\s*([a-z0-9*?]+\[[^\]]*\](?:\{[^}]*\})?)\s*(?:[,);]|$)")
_FIELD = re.compile(r"\s*([a-z][\w\-]*)==?\s*([^,\s]*)")
_EXPRESSION = re.compile(r"\s*(?:[\^.\\/(\[]|\w*\.[*+]|\S*[\\|+])")


def unknown_attribute(opcode: str | None, name: str) -> str | None:
    """Returns a message for an unknown attribute: of the opcode if it is given, otherwise of any."""
    row = opcodes.opcode(opcode) if opcode is not None else None
    if row is not None:
        known = opcodes.allowed_attributes(row)
        if name in known:
            return None
        return _said(f"{row.name} has no attribute {name}", did_you_mean(name, known))
    if name in attributes.ATTRIBUTES:
        return None
    return _said(f"there is no attribute {name}", did_you_mean(name, attributes.ATTRIBUTES))


def wrong_operands(opcode: str, operands: Sequence[tuple[str, str]], is_open: bool) -> str | None:
    """Returns a message for operands, by kind and text, that no instruction with the opcode has; None for others."""
    row = opcodes.opcode(opcode)
    if row is None or not operands or is_open:
        return None
    if row.payload is Payload.OPERANDS:
        return conditions.wrong_count(row, len(operands))
    is_number = len(operands) == 1 and operands[0][0] == "number"
    if row.payload is Payload.PARAMETER_NUMBER:
        is_whole = is_number and operands[0][1].isdecimal()
        return None if is_whole else "the parentheses of a parameter contain its number: parameter(0)"
    return None if is_number else ONE_VALUE


def is_body(name: str, value: str) -> bool:
    """Returns True if an attribute's value is a pattern for a called computation: `calls={convolution(...)}`.

    Lists of computations have braces too, so there an operation must have parentheses.
    """
    row = attributes.ATTRIBUTES.get(name)
    if row is None or not (value.startswith("{") and value.endswith("}")) or not value[1:-1].strip():
        return False
    form = row.kind.form
    return form is Multiplicity.COMPUTATION or (form is Multiplicity.COMPUTATIONS and "(" in value)


def unknown_type(shape: str) -> str | None:
    """Returns a message for an unknown element type in a shape with wildcards, or None."""
    for word in _TYPE.findall(shape):
        if _WILD.search(word):
            if not any(is_like(name, word) for name in ELEMENT_TYPES):
                return f"no element type matches {word}"
        elif word not in ELEMENT_TYPES:
            return _said(f"there is no element type {word}", types_meant(word))
    return None


def _said(message: str, meant: str) -> str:
    return f"{message}: {meant}" if meant else message
