"""Op lines that were read up to a place where they are right: from there the grammar goes on, as if it had read all before.

An LALR parser is its stack. Behind a comma or an opening parenthesis it is known from what stands before, so nobody needs to
read the twenty words before the one that is wrong: that was most of the time that a broken line took.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import attrs
from lark import Token, Tree

from hlotext.ir.values.shape import Shape
from hlotext.syntax.reading.records import OperandRecord, ParsedAttribute

_ATTRIBUTES = "attributes"
_IS_LIST = re.compile("__").match


@attrs.frozen
class ValidPrefix:
    """A valid prefix of an op line, as the contents of the parser's stack after it."""

    position: int
    """The offset behind it."""
    symbols: tuple[tuple[str, Any], ...]
    """Terminals and rules with their values, the last one a terminal."""

    def put_on(self, states: Any, stack: list[int], values: list[Any]) -> None:
        """Puts the prefix on the stacks of a new parser."""
        for name, value in self.symbols:
            follow = states[stack[-1]]
            if name == _ATTRIBUTES:
                # Lark's own name for what `("," attribute)*` has gathered; it goes on with the very list.
                name = next(filter(_IS_LIST, follow))
                value = Tree(name, list(value))
            stack.append(follow[name][1])
            values.append(value)

    @property
    def brackets(self) -> int:
        """Number of brackets that the prefix leaves open."""
        return int(self.symbols[-1][0] == "LPAREN")


def named(root: int | None, name: str, start: int, equal: int) -> ValidPrefix:
    """Returns the prefix `ROOT %name =`, given the offsets of its parts; `root` is None if the word is absent."""
    symbols = [] if root is None else [_token("ROOT", "ROOT", root)]
    return ValidPrefix(equal + 1, (*symbols, _token("NAME", name, start), _token("EQUAL", "=", equal)))


def opened(before: ValidPrefix, shape: Shape, opcode: str, start: int) -> ValidPrefix:
    """Returns a prefix extended by `shape opcode(`; `start` is the offset of the opcode."""
    behind = start + len(opcode)
    symbols = ("shape", shape), _token("OPCODE", opcode, start), _token("LPAREN", "(", behind)
    return ValidPrefix(behind + 1, (*before.symbols, *symbols))


def listed(
    before: ValidPrefix,
    shape: Shape,
    opcode: str,
    start: int,
    operands: tuple[OperandRecord, ...],
    attributes: Sequence[ParsedAttribute],
    comma: int,
) -> ValidPrefix:
    """Returns a prefix extended by `shape opcode(operands), attribute, attribute,`.

    `start` is the offset of the opcode, `comma` that of the last comma.
    """
    symbols = [*before.symbols, ("shape", shape), ("operation", (opcode, operands, None, start))]
    if attributes:
        symbols.append((_ATTRIBUTES, attributes))
    return ValidPrefix(comma + 1, (*symbols, _token("COMMA", ",", comma)))


def _token(kind: str, text: str, start: int) -> tuple[str, Token]:
    return kind, Token(kind, text, start, end_pos=start + len(text))
