"""Patterns written as op lines with gaps: `%x = $S all-gather($A), dimensions={0}`.

| text | matches |
|---|---|
| `%x`, `$A` | any instruction, the same wherever the name stands; the match gives it under that name |
| `_` | anything |
| `...` | any further operands |
| `add($A, negate($B))` | operands in place |
| `all-*(...)` | opcodes by their shell pattern |
| `f32[*]`, `$S` | shapes by their shell pattern (`*` any text); `$S` gives the shape's text |
| `dimensions={0}`, `channel_id=*`, `metadata=*foo*` | attributes by the shell pattern of their text; `=$V` gives the text |

Layouts count where the pattern's shape has braces. Left out, name, shape, operands (no parentheses) and attributes may be
anything.
"""

from __future__ import annotations

import re

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.raw_value import value_text
from hlotext.matchers import words
from hlotext.matchers.glob import is_like
from hlotext.matchers.matching import Captures
from hlotext.matchers.pattern import Condition, Pattern, PatternError, remembered

_TOKEN = re.compile(
    r"\s*(?:(?P<capture>[%$][\w.\-]+)|(?P<rest>\.\.\.)|(?P<any>_(?!\w))|(?P<word>[a-z*?][a-z0-9\-*?]*)(?=\s*(?:\(|,|\)|$)))"
)
_HEAD = re.compile(r"\s*(?:ROOT\s+)?(?:(?P<name>%[\w.\-]+|_)\s*=\s*)?")
_SHAPE = re.compile(
    r"(?P<shape>\$\w+|\((?:[^()]|\([^()]*\))*\)|[a-z0-9*?]+\[[^\]]*\](?:\{[^}]*\})?)\s+(?=[a-z*?$])"
)
_ATTRIBUTE = re.compile(r"\s*,\s*(?P<name>[\w\-]+)=")


MAX_DEPTH = 50
"""Levels of operands in a text: they are read by recursion."""


def parse_pattern(text: str, *, allow_unknown: bool = False) -> Pattern:
    """The pattern of a text. Raises PatternError: for what is none, and, unless `allow_unknown`, for an opcode, attribute or
    element type that hlotext does not know, since the pattern would match nothing without a word.

    >>> import hlotext as hlo
    >>> line = hlo.parse_instruction("y = f32[8] all-gather(f32[4] x), dimensions={0}, replica_groups={}")
    >>> match = parse_pattern("%y = $S all-gather($A), dimensions={0}").match(line)
    >>> match["S"], match["A"].name
    ('f32[8]', 'x')
    """
    return _Parser(text, allow_unknown).whole()


class _Parser:
    def __init__(self, text: str, allow_unknown: bool) -> None:
        self.text = text
        self.allow_unknown = allow_unknown
        self.position = 0
        self.depth = 0

    def fail(self, expected: str) -> PatternError:
        found = self.text[self.position : self.position + 20] or "the end"
        return PatternError(f"expected {expected} at column {self.position + 1}, found {found}")

    def known(self, problem: str | None) -> None:
        """Raises PatternError for a word that nobody knows."""
        if problem is not None and not self.allow_unknown:
            raise PatternError(problem)

    def whole(self) -> Pattern:
        head = _HEAD.match(self.text)
        name = None
        if head is not None:
            self.position = head.end()
            name = head["name"]
        shape = _SHAPE.match(self.text, self.position)
        if shape is not None:
            self.position = shape.end()
        pattern = self.operation()
        if name is not None and name != "_":
            pattern = pattern.named(name[1:])
        if shape is not None:
            self.known(words.unknown_type(shape["shape"]))
            pattern = _and(pattern, _shape_condition(shape["shape"]))
        while (attribute := _ATTRIBUTE.match(self.text, self.position)) is not None:
            self.position = attribute.end()
            self.known(words.unknown_attribute(pattern.opcode, attribute["name"]))
            pattern = _and(pattern, _attribute_condition(attribute["name"], self.value()))
        if self.text[self.position :].strip():
            raise self.fail("an attribute or the end")
        return pattern

    def operation(self) -> Pattern:
        """`opcode(operands)`, or a capture."""
        token = _TOKEN.match(self.text, self.position)
        if token is None or token["rest"]:
            raise self.fail("an opcode, %name, $NAME or _")
        self.position = token.end()
        if token["word"]:
            self.known(words.unknown_opcode(token["word"]))
        if token["capture"]:
            pattern = Pattern(capture=token["capture"][1:])
        elif token["any"]:
            pattern = Pattern()
        elif re.search(r"[*?]", word := token["word"]):
            pattern = Pattern(conditions=(_opcode_condition(word),))
        else:
            pattern = Pattern(opcode=word)
        opening = re.compile(r"\s*\(").match(self.text, self.position)
        if opening is None:
            return pattern
        self.position = opening.end()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise PatternError(f"operands are nested {MAX_DEPTH} levels deep at most")
        found = self.operands(pattern)
        self.depth -= 1
        return found

    def operands(self, pattern: Pattern) -> Pattern:
        """Parses the operands after the opening parenthesis."""
        found: list[Pattern] = []
        open_ended = False
        if (end := re.compile(r"\s*\)").match(self.text, self.position)) is not None:
            self.position = end.end()
            return attrs.evolve(pattern, operands=())
        while True:
            rest = _TOKEN.match(self.text, self.position)
            if rest is not None and rest["rest"]:
                self.position, open_ended = rest.end(), True
            else:
                found.append(self.operation())
            separator = re.compile(r"\s*([,)])").match(self.text, self.position)
            if separator is None or (open_ended and separator[1] == ","):
                raise self.fail("a closing parenthesis" if open_ended else "a comma or a closing parenthesis")
            self.position = separator.end()
            if separator[1] == ")":
                return attrs.evolve(pattern, operands=tuple(found), open_ended=open_ended)

    def value(self) -> str:
        """The text of an attribute: up to a comma outside of braces and quotes."""
        start, depth, quoted = self.position, 0, False
        for position in range(start, len(self.text)):
            character = self.text[position]
            if character == '"':
                quoted = not quoted
            elif not quoted:
                depth += (character in "{[(") - (character in "}])")
                if character == "," and depth == 0:
                    break
        else:
            position = len(self.text)
        self.position = position
        return self.text[start:position].strip()


def _and(pattern: Pattern, condition: Condition) -> Pattern:
    return attrs.evolve(pattern, conditions=(*pattern.conditions, condition))


@remembered
def _opcode_condition(word: str) -> Condition:
    return Condition(f"the opcode is like {word}", lambda i, _: is_like(i.opcode, word))


@remembered
def _shape_condition(text: str) -> Condition:
    def holds(instruction: Instruction, captures: Captures) -> bool:
        if instruction.shape is None:
            return False
        if text.startswith("$"):
            return _same(captures, text[1:], str(instruction.shape))
        with_layout = "{" in text
        found = str(instruction.shape) if with_layout else instruction.shape.text_without_layout()
        return is_like(found, text)

    return Condition(f"the shape is {text}", holds, _names(text))


@remembered
def _attribute_condition(name: str, text: str) -> Condition:
    def holds(instruction: Instruction, captures: Captures) -> bool:
        value = instruction.attributes.get(name)
        if value is None:
            return False
        found = value.name if hasattr(value, "execution_thread") else value_text(value, name)
        if text.startswith("$"):
            return _same(captures, text[1:], str(found))
        return is_like(str(found), text.removeprefix("%"))

    return Condition(f"{name}={text}", holds, _names(text))


def _names(text: str) -> tuple[str, ...]:
    """The capture that the text of a shape or attribute makes; none where it is a shell pattern."""
    return (text[1:],) if text.startswith("$") else ()


def _same(captures: Captures, name: str, text: str) -> bool:
    return bool(captures.setdefault(name, text) == text)
