"""Values of the rules in tokens.lark."""

from __future__ import annotations

from typing import Any, TypeAlias

from hlotext.syntax.words import integer

Children: TypeAlias = "list[Any]"


class TokenBuilder:
    """Rules of tokens.lark."""

    def int_list(self, children: Children) -> tuple[int, ...]:
        return tuple(integer(token) for token in children if token is not None)

    def int_lists(self, children: Children) -> tuple[tuple[int, ...], ...]:
        return tuple(item for item in children if item is not None)

    def bool_list(self, children: Children) -> tuple[bool, ...]:
        return tuple(token == "true" for token in children if token is not None)
