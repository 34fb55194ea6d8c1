"""Op lines with wildcards, parsed into terms: the language of textual patterns and their replacements.

One or more op lines, separated by line breaks or semicolons; the last one is matched, and it may use those before it: `%t =
transpose($A), dimensions={1,0}; dot(%t, $B)`, or `dot(transpose($A), dimensions={1,0}, $B)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.tables.other_names import opcode_meant
from hlotext.matchers import words
from hlotext.matchers.pattern import PatternError

_TOKEN = re.compile(
    r"\s*(?:(?P<capture>[%$][\w.\-]+)|(?P<rest>\.\.\.)|(?P<any>_(?!\w))|(?P<number>-?(?:inf|nan|\d[\d.]*(?:e[+-]?\d+)?)(?![\w*?]))"
    r"|(?P<truth>true|false)(?![\w\-*?])|(?P<word>[a-z*?][a-z0-9\-*?]*)(?=\s*(?:\(|,|\)|;|$)))"
)
_HEAD = re.compile(r"\s*(?:ROOT\s+)?(?:(?P<name>[%$][\w.\-]+|_)\s*=\s*)?")
_SHAPE = re.compile(
    r"\s*(?P<shape>\$\w+|\((?:[^()]|\([^()]*\))*\)|[a-z0-9*?]+\[[^\]]*\](?:\{[^}]*\})?)\s+(?=[a-z*?$%_])"
)
_ATTRIBUTE = re.compile(r"\s*,\s*(?P<name>[\w\-]+)=")
_UNSEPARATED = re.compile(r"\s*([\w\-]+)=")
_OTHERS = re.compile(r"\s*,\s*\.\.\.")
_SEPARATOR = re.compile(r"[ \t]*(?:;|\n)\s*")
_IDENTIFIER = re.compile(r"\w+")
_OPENING, _CLOSING, _BETWEEN = re.compile(r"\s*\("), re.compile(r"\s*\)"), re.compile(r"\s*([,)])")
_OPENED = re.compile(r"\s*[a-z0-9*?]+(?P<bracket>\[)[^\]]*$")
MAX_DEPTH = 50
"""Levels of operands in a text: they are read by recursion."""


@attrs.frozen
class Term:
    """An operation with operands and attributes, a capture, a number, or a wildcard."""

    kind: str
    """`opcode`, `capture`, `number` or `any`."""
    text: str
    """The opcode, the name without its mark, the number as it is written."""
    position: int
    operands: tuple[Term, ...] | None = None
    """None: any operands."""
    is_open: bool = False
    """True if further operands may follow."""
    shape: str | None = None
    attributes: tuple[tuple[str, str, int], ...] = ()
    """Name, text of the value and position of each."""

    def walk(self) -> Iterator[Term]:
        """Yields the term and all terms inside it."""
        yield self
        for operand in self.operands or ():
            yield from operand.walk()


@attrs.frozen
class Line:
    """An op line of a pattern."""

    term: Term
    name: str | None = None
    """The name of the result without its mark; None: no matter."""
    has_others: bool = False
    """True if `...` ends the attributes."""


@attrs.frozen
class Text:
    """Text of a pattern, for error positions."""

    text: str

    def place(self, position: int) -> str:
        """Returns the column of an offset, with the line if there are several."""
        before = self.text[:position]
        column = position - (before.rfind("\n") + 1) + 1
        line = f"line {before.count(chr(10)) + 1}, " if "\n" in self.text.strip() else ""
        return f"{line}column {column}"

    def error(self, problem: str, position: int) -> PatternError:
        """Creates the error for a problem at an offset."""
        return PatternError(f"{self.place(position)}: {problem}")


class Reader:
    """Parser of the op lines between two offsets of a text."""

    def __init__(
        self, text: Text, start: int = 0, end: int | None = None, *, allow_unknown: bool = False
    ) -> None:
        self.source = text
        self.text = text.text if end is None else text.text[:end]
        self.position = start
        self.allow_unknown = allow_unknown
        self.depth = 0

    def lines(self) -> tuple[Line, ...]:
        """Parses all lines. Raises PatternError if the text is invalid."""
        found = [self.line()]
        while (separator := _SEPARATOR.match(self.text, self.position)) is not None:
            self.position = separator.end()
            if not self.text[self.position :].strip():
                break
            found.append(self.line())
        if self.text[self.position :].strip():
            if (missing := _UNSEPARATED.match(self.text, self.position)) is not None:
                raise self.source.error(f"a `,` is missing before {missing[1]}", missing.start(1))
            raise self.fail("an attribute or the end")
        return tuple(found)

    def line(self) -> Line:
        """Parses a line. Raises PatternError if it is invalid."""
        head = _HEAD.match(self.text, self.position)
        assert head is not None
        self.position = head.end()
        name = None if head["name"] in (None, "_") else head["name"][1:]
        term = self.term()
        others = _OTHERS.match(self.text, self.position)
        if others is not None:
            self.position = others.end()
        return Line(term, name, others is not None)

    def term(self) -> Term:
        """Parses a shape, then `opcode(operands)`, a capture, a number or `_`, then attributes. Raises PatternError."""
        shape = _SHAPE.match(self.text, self.position)
        if shape is not None:
            self.known(words.unknown_type(shape["shape"]), shape.start("shape"))
            self.position = shape.end()
        term = self.operation()
        opcode = term.text if term.kind == "opcode" and not words.is_wild(term.text) else None
        attributes = []
        while (attribute := _ATTRIBUTE.match(self.text, self.position)) is not None:
            name, place = attribute["name"], attribute.start("name")
            if self.depth and term.kind != "opcode":
                raise self.source.error(f"{name} must follow the parenthesis of its operation", place)
            self.position = attribute.end()
            self.known(words.unknown_attribute(opcode, name), place)
            place = self.position
            value = self.value()
            if words.is_body(name, value):
                self.body(name, place, value)
            attributes.append((name, value, place))
        return attrs.evolve(term, shape=shape and shape["shape"], attributes=tuple(attributes))

    def operation(self) -> Term:
        """Parses `opcode(operands)`, a capture, a number, or `_`. Raises PatternError if it is invalid."""
        token = _TOKEN.match(self.text, self.position)
        if token is None or token["rest"]:
            opened = _OPENED.match(self.text, self.position)
            if opened is not None:
                raise self.source.error(f"`{opened['bracket']}` is not closed", opened.start("bracket"))
            if (problem := words.not_an_operation(self.text[self.position :])) is not None:
                raise self.source.error(problem, self.position)
            raise self.fail("a shape, an opcode, %name, $NAME, a number or _")
        kind = token.lastgroup
        assert kind is not None
        position = token.start(kind)
        self.position = token.end()
        if kind == "word":
            self.known(words.unknown_opcode(token["word"]), position)
        elif kind in ("number", "truth"):
            return Term("number", token[kind], position)
        term = Term(
            {"word": "opcode"}.get(kind, kind),
            token[kind].lstrip("%$") if kind == "capture" else token[kind],
            position,
        )
        opening = _OPENING.match(self.text, self.position)
        if opening is None:
            return term
        self.position = opening.end()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise PatternError(f"operands can be nested at most {MAX_DEPTH} levels deep")
        if (
            term.kind == "opcode"
            and term.text == "constant"
            and self.text[self.position :].lstrip()[:1] == "{"
        ):
            raise self.source.error(words.ONE_VALUE, self.position)
        found = self.operands(term)
        self.depth -= 1
        if found.kind == "opcode" and found.operands:
            given = [(one.kind, one.text) for one in found.operands]
            self.known(words.wrong_operands(found.text, given, found.is_open), position)
        return found

    def operands(self, term: Term) -> Term:
        """Parses the operands after the opening parenthesis, and returns the term with them."""
        found: list[Term] = []
        is_open = False
        if (end := _CLOSING.match(self.text, self.position)) is not None:
            self.position = end.end()
            return attrs.evolve(term, operands=())
        while True:
            rest = _TOKEN.match(self.text, self.position)
            if rest is not None and rest["rest"]:
                self.position, is_open = rest.end(), True
            else:
                found.append(self.term())
            separator = _BETWEEN.match(self.text, self.position)
            if separator is None or (is_open and separator[1] == ","):
                raise self.fail("a closing parenthesis" if is_open else "a comma or a closing parenthesis")
            self.position = separator.end()
            if separator[1] == ")":
                return attrs.evolve(term, operands=tuple(found), is_open=is_open)

    def body(self, name: str, place: int, value: str) -> None:
        """Raises PatternError unless the braces of a called computation contain a pattern."""
        if self.depth >= MAX_DEPTH:
            raise PatternError(f"operands can be nested at most {MAX_DEPTH} levels deep")
        start = self.text.index("{", place) + 1
        inner = Reader(self.source, start, start + len(value) - len("{}"), allow_unknown=self.allow_unknown)
        inner.depth = self.depth + 1
        last = inner.lines()[-1].term
        if last.kind == "capture" and last.operands is None and last.shape is None and not last.attributes:
            raise self.source.error(f"{name} of that name is {name}={value[1:-1].strip()}", start - 1)

    def value(self) -> str:
        """Parses an attribute's value: up to a comma, parenthesis, semicolon or line end outside braces and quotes."""
        start, depth, quoted = self.position, 0, False
        for position in range(start, len(self.text)):
            character = self.text[position]
            if character == '"':
                quoted = not quoted
            elif not quoted:
                depth += (character in "{[(") - (character in "}])")
                if depth < 0 or (character in ",;\n" and depth == 0):
                    break
        else:
            position = len(self.text)
        if depth > 0 or quoted:
            bracket = '"' if quoted else self.text[start : start + 1]
            raise self.source.error(f"`{bracket}` is not closed", start)
        self.position = position
        return self.text[start:position].strip()

    def fail(self, expected: str) -> PatternError:
        """Creates the error for text that differs from what is expected."""
        found = self.text[self.position : self.position + 20].strip() or "the end"
        word = _IDENTIFIER.match(found)
        if word is not None and (name := word[0].replace("_", "-")) in OPCODES and name != word[0]:
            return PatternError(f"opcodes are spelled with hyphens; did you mean `{name}`?")
        if word is not None and (meant := opcode_meant(word[0])):
            return PatternError(f"there is no opcode {word[0]}; {meant}")
        return PatternError(f"expected {expected} at {self.source.place(self.position)}, found {found}")

    def known(self, problem: str | None, position: int) -> None:
        """Raises PatternError for a problem, unless unknown words are allowed."""
        if problem is not None and not self.allow_unknown:
            raise self.source.error(problem, position)
