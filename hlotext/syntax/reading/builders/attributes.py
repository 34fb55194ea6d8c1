"""Values of the rules in attributes.lark: attributes with their names, and the text of what is not known."""

from __future__ import annotations

from typing import Any

from hlotext.findings.errors import TermError
from hlotext.ir.tables.opcodes import SPELLINGS
from hlotext.ir.values.raw_value import RawValue
from hlotext.syntax.reading.builders.values import Children, name_of
from hlotext.syntax.reading.records import ParsedAttribute

_CLOSING = {"{": "}", "(": ")", "[": "]"}


class AttributeBuilder:
    """Builds the values of the rules in attributes.lark."""

    def attribute(self, children: Children) -> ParsedAttribute:
        name, value = children
        word = name_of(name)
        return ParsedAttribute(SPELLINGS.get(word, word), value, name.start_pos)

    unknown_attribute = attribute

    def header_attribute(self, children: Children) -> ParsedAttribute:
        name, value = children
        return ParsedAttribute(name_of(name), value, name.start_pos)

    def raw_value(self, children: Children) -> RawValue:
        texts: list[str] = []
        stack = [iter(children)]
        while stack:
            for piece in stack[-1]:
                if isinstance(piece, list):
                    stack.append(iter(piece))
                    break
                texts.append(piece)
            else:
                stack.pop()
        return RawValue("".join(texts).strip(" \t"))

    def raw_brackets(self, children: Children) -> list[Any]:
        opening, closing = children[0], children[-1]
        if _CLOSING[opening] != closing:
            raise TermError(f"mismatched brackets: {opening} is closed by {closing}", closing.start_pos)
        # Joined at the outermost bracket only, so that deep nests are not copied over and over.
        return children

    raw_inner_brackets = raw_brackets
