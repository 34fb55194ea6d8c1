"""Values of the rules in literal.lark."""

from __future__ import annotations

from typing import Any

import attrs

from hlotext.ir.values.literal import Literal
from hlotext.syntax.builders.tokens import Children


@attrs.frozen
class LiteralTokens:
    """The words of a literal's text, commas and braces included, and where each starts."""

    words: list[str]
    positions: list[int]

    def position(self, number: int) -> int:
        """Where that word starts; the end of the last one for a number beyond it."""
        if number < len(self.words):
            return self.positions[number]
        return self.positions[-1] + len(self.words[-1]) if self.words else 0


class LiteralBuilder:
    """Rules of literal.lark. A literal is a list of words until its shape is known."""

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
        # Not at the top: that module decodes its numbers with this package.
        from hlotext.syntax.literal_tokens import literal_from_tokens

        return literal_from_tokens(children[1], children[0])

    def shaped_tuple(self, children: Children) -> Literal:
        return Literal.tuple(child for child in children[1:] if child is not None)
