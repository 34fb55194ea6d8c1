"""Values of the rules in literal.lark."""

from __future__ import annotations

from typing import Any

from hlotext.ir.values.literal import Literal
from hlotext.syntax.literals.tokens import LiteralTokens, literal_from_tokens
from hlotext.syntax.reading.builders.values import Children


class LiteralBuilder:
    """Builds the values of the rules in literal.lark: a list of words, since the shape is not known yet."""

    def literal(self, children: Children) -> LiteralTokens:
        words: list[str] = []
        positions: list[int] = []
        stack = children[::-1]
        while stack:
            item = stack.pop()
            if isinstance(item, list):
                stack.extend(reversed(item))
            else:
                words.append(str(item))
                positions.append(item.start_pos or 0)
        return LiteralTokens(words, positions)

    def literal_value(self, children: Children) -> Any:
        return children[0]

    def literal_part(self, children: Children) -> Any:
        return children[0]

    def literal_braces(self, children: Children) -> Children:
        return children

    def literal_parens(self, children: Children) -> Children:
        return children

    def shaped_array(self, children: Children) -> Literal:
        return literal_from_tokens(children[1], children[0])

    def shaped_tuple(self, children: Children) -> Literal:
        return Literal.tuple(child for child in children[1:] if child is not None)
