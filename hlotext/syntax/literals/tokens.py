"""Literals read token by token, each with its place: whatever the shortcuts of `literals` leave, and everything wrong."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.findings.errors import TermError
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import UNBOUNDED_SIZE, Shape
from hlotext.ir.values.types import TypeKind
from hlotext.syntax.language import grammar
from hlotext.syntax.literals import conversion

if TYPE_CHECKING:
    import numpy as np

_FORM_OF_RANK = {1: "{1, 2}", 2: "{{1, 2}, {3, 4}}", 3: "{{{1, 2}}, {{3, 4}}}"}
"""The form of an array, by rank."""
_WORDS = ("LITERAL_WORD", "LITERAL_NUMBER", "DOTS", "LBRACE", "RBRACE", "LPAREN", "RPAREN", "COMMA")


@functools.cache
def _token() -> re.Pattern[str]:
    """One token: a word, or something to skip (which takes part in no group), or what is neither."""
    of = grammar.terminals()
    words = "|".join(of[name] for name in _WORDS)
    return re.compile(f"({words})|{of['WHITESPACE']}|{of['COMMENT']}|([\\w.]+|[\\s\\S])")


@attrs.frozen
class LiteralTokens:
    """The words of a literal, including commas and braces, and their offsets."""

    words: list[str]
    positions: list[int]

    def position(self, number: int) -> int:
        """Returns the offset of a word; for a number beyond the last word, the end of the last one."""
        if number < len(self.words):
            return self.positions[number]
        return self.positions[-1] + len(self.words[-1]) if self.words else 0


def read_tokens(text: str) -> LiteralTokens:
    words: list[str] = []
    positions: list[int] = []
    for match in _token().finditer(text):
        if match.lastindex == 1:
            words.append(match[1])
            positions.append(match.start())
        elif match.lastindex:
            raise TermError(_no_token(text, match), match.start())
    return LiteralTokens(words, positions)


def _no_token(text: str, match: re.Match[str]) -> str:
    if text.startswith("/*", match.start()):
        return "unterminated comment"
    return f"{match[2][:40]!r} is not valid in a literal"


def literal_from_tokens(tokens: LiteralTokens, shape: Shape) -> Literal:
    """Returns the literal of a shape with these words. Raises TermError at a word that does not fit."""
    reader = _Reader(tokens)
    literal = reader.literal(shape)
    if reader.place < len(tokens.words):
        raise reader.error("the literal ends before this")
    return literal


class _Reader:
    """Goes through the words of one literal. Nothing here recurses, however deep tuples or braces nest."""

    def __init__(self, tokens: LiteralTokens) -> None:
        self.tokens = tokens
        self.place = 0
        """Number of the next word."""

    def error(self, message: str) -> TermError:
        return TermError(message, self.tokens.position(self.place))

    def peek(self) -> str:
        """The next word; empty at the end."""
        return self.tokens.words[self.place] if self.place < len(self.tokens.words) else ""

    def take(self, word: str) -> bool:
        """Steps over the next word if it is that one."""
        if self.peek() != word:
            return False
        self.place += 1
        return True

    def elision(self) -> bool:
        """Steps over `{...}`."""
        if self.tokens.words[self.place : self.place + 3] != ["{", "...", "}"]:
            return False
        self.place += 3
        return True

    # ---- tuples

    def literal(self, shape: Shape) -> Literal:
        waiting: list[tuple[Shape, list[Literal]]] = []
        while True:
            literal = self.empty_tuple(shape) if shape.is_tuple else self.leaf(shape)
            if literal is None:
                waiting.append((shape, []))
                shape = shape.tuple_shapes[0]
                continue
            while waiting:
                tuple_shape, parts = waiting[-1]
                parts.append(literal)
                if len(parts) < len(tuple_shape.tuple_shapes):
                    break
                if not self.take(")"):
                    raise self.error(f"the tuple has {len(parts)} elements, so ')' is expected here")
                literal = Literal.tuple(parts)
                waiting.pop()
            else:
                return literal
            # XLA's reader lets the comma be missing.
            self.take(",")
            if self.peek() == ")":
                raise self.error(
                    f"the tuple has {len(tuple_shape.tuple_shapes)} elements, but only {len(parts)} are here"
                )
            shape = tuple_shape.tuple_shapes[len(parts)]

    def empty_tuple(self, shape: Shape) -> Literal | None:
        """A tuple that is elided or has no elements; None, with its `(` behind us, where elements follow."""
        if self.elision():
            return Literal.elided(shape)
        if not self.take("("):
            raise self.error("a tuple starts with '('")
        if self.take(")"):
            # As in XLA, `()` for any tuple is a tuple of that many empty tuples.
            return Literal.tuple(Literal.tuple(()) for _ in shape.tuple_shapes)
        if not shape.tuple_shapes:
            raise self.error("the tuple has no elements, so ')' is expected here")
        return None

    # ---- arrays

    def leaf(self, shape: Shape) -> Literal:
        if shape.is_buffer:
            shape = shape.tuple_shapes[0]
        if shape.is_token:
            if not self.take("token"):
                raise self.error("the only value of token[] is 'token'")
            return Literal.token()
        if shape.is_opaque:
            raise self.error("opaque[] has no literals")
        if UNBOUNDED_SIZE in shape.dimensions:
            raise self.error(f"{shape} has no literals, since it has an unbounded dimension")
        if shape.element_type.kind is TypeKind.UNKNOWN:
            return self.unknown(shape)
        return self.array(shape)

    def unknown(self, shape: Shape) -> Literal:
        """A value of an element type that this release does not know: any one word or balanced braces."""
        first, depth = self.place, 0
        while True:
            word = self.peek()
            depth += (word in ("{", "(")) - (word in ("}", ")"))
            if not word or depth < 0 or (depth == 0 and word == ","):
                raise self.error("a value is expected")
            self.place += 1
            if depth == 0:
                break
        words = self.tokens.words[first : self.place]
        if words == ["{", "...", "}"]:
            return Literal.elided(shape)
        return Literal(shape, unknown_text=re.sub(r" (?=,)", "", " ".join(words)))

    def array(self, shape: Shape) -> Literal:
        """An array: the words are counted against the shape here, and converted in `conversion`."""
        nesting = _Nesting(shape)
        is_complex = shape.element_type.is_complex
        cells: list[int] = []  # numbers of the words that are values; of complex ones those of both parts
        while True:
            word = self.peek()
            if step := _STEPS.get(word):
                if complaint := step(nesting):
                    raise self.error(complaint)
                self.place += 1
            elif word in ("", ")") or (word == "(" and not is_complex):
                raise self.error(
                    "a value is expected" if nesting.level == 0 else "a value or '}' is expected"
                )
            else:
                if complaint := nesting.value():
                    raise self.error(complaint)
                cells += self.complex_parts() if is_complex else (self.place,)
                self.place += not is_complex
            if nesting.level == 0:
                break
        values = self.values(cells, shape)
        if nesting.is_elided and shape.element_count:
            return Literal.elided(shape)
        return Literal.from_values(shape, values, is_bare=nesting.is_bare)

    def complex_parts(self) -> tuple[int, int]:
        """Steps over `(real, imaginary)`; the numbers of both words."""
        if not self.take("("):
            raise self.error("a complex value must be written (real, imaginary)")
        real = self.place
        for after, what in ((",", "the real part"), (")", "the imaginary part")):
            if self.peek() in _MARKS:
                raise self.error(f"{what} is expected")
            self.place += 1
            if not self.take(after):
                raise self.error(f"'{after}' is expected after {what}")
        return real, real + 2

    def values(self, cells: list[int], shape: Shape) -> np.ndarray[Any, Any]:
        """The values of these words, flat."""
        try:
            return conversion.convert([self.tokens.words[i] for i in cells], shape.element_type)
        except conversion.BadValueError as error:
            raise TermError(error.message, self.tokens.positions[cells[error.number]]) from None


class _Nesting:
    """Counts the braces and values of an array against its dimensions. Each step says what is wrong."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.level = 0
        """Number of open braces."""
        self.seen = [0] * shape.rank
        """For each dimension how many elements its open brace has had so far."""
        self.left = shape.element_count
        """Values that may still come."""
        self.is_elided = False
        self.is_bare = False

    def opening(self) -> str:
        self.level += 1
        if self.level > self.shape.rank:
            return f"{self._name()} has rank {self.shape.rank}, but the braces nest deeper"
        return self._one_more(self.level - 2) if self.level > 1 else ""

    def closing(self) -> str:
        if self.level == 0:
            return "unmatched '}'"
        self.level -= 1
        seen, self.seen[self.level] = self.seen[self.level], 0
        wanted = self.shape.dimensions[self.level]
        return "" if seen == wanted else f"{self._place(self.level)} has {wanted}, but the text has {seen}"

    def dots(self) -> str:
        if self.level != 1:
            return "'...' is allowed only directly inside an array's outermost braces"
        self.is_elided = True
        self.seen[0] = self.shape.dimensions[0]
        return ""

    def comma(self) -> str:
        return "" if self.level else "a value is expected before the comma"

    def value(self) -> str:
        # A lone number for a whole array is no mistake; XLA's reader takes it for the first element.
        self.is_bare = self.level == 0 < self.shape.rank and not self.shape.element_type.is_complex
        if self.level != self.shape.rank and not self.is_bare:
            said = f"{self._name()} has rank {self.shape.rank}, but this value is at depth {self.level}"
            form = "" if self.shape.element_type.is_complex else _FORM_OF_RANK.get(self.shape.rank, "")
            return f"{said}; each dimension has braces of its own: `{form}`" if form else said
        if self.level and (complaint := self._one_more(self.level - 1)):
            return complaint
        self.left -= 1
        return "" if self.left >= 0 else f"{self._name()} has no elements, but the text has one"

    def _one_more(self, dimension: int) -> str:
        self.seen[dimension] += 1
        wanted = self.shape.dimensions[dimension]
        is_fine = self.seen[dimension] <= wanted
        return "" if is_fine else f"{self._place(dimension)} has {wanted}, but the text has more"

    def _place(self, dimension: int) -> str:
        """The part of the array that the brace of that dimension holds, such as `f32[2,3] at [1]`."""
        index = ",".join(str(seen - 1) for seen in self.seen[:dimension])
        return f"{self._name()} at [{index}]" if dimension else self._name()

    def _name(self) -> str:
        return str(self.shape.without_layout())


_STEPS = {
    "{": _Nesting.opening,
    "}": _Nesting.closing,
    "...": _Nesting.dots,
    ",": _Nesting.comma,
}
_MARKS = frozenset({*_STEPS, "(", ")", ""})
