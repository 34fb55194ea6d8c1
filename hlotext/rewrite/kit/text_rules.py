"""Rules as op lines: `negate(negate($x)) => $x`."""

from __future__ import annotations

import re
from typing import Any

import attrs

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Opcode, Payload
from hlotext.matchers import words
from hlotext.matchers.terms import Line, Reader, Term, Text
from hlotext.matchers.text import pattern_of
from hlotext.rewrite.kit.builder import INHERITED, Builder, attribute_name
from hlotext.rewrite.kit.rules import Rewrite, RewriteRule
from hlotext.rewrite.kit.typed_numbers import number_like, number_operands
from hlotext.semantics import conditions
from hlotext.semantics.infer import CannotInfer

_ARROW = re.compile(r'=>|"')
_OTHER_ARROW = re.compile(r"[-~=]+>|:=|(?<=\))\s*=(?=\s)")
"""Arrows of other notations between a pattern and its replacement."""
_INHERITED = frozenset({*INHERITED, "sharding"})


@attrs.frozen
class TextRule(RewriteRule):
    """A rule parsed from text."""

    text: str = ""

    @property
    def doc(self) -> str:
        """The text of the rule."""
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle."""
        return rule, (self.text, self.name)


def rule(text: str, name: str | None = None) -> RewriteRule:
    """Parses a rewrite rule: a pattern of op lines as for `hlotext grep`, `=>`, and the replacement.

    The right side consists of captures, numbers, and operations with all required attributes. `, ...` after the
    attributes copies the remaining ones of the matched instruction. `$S` in place of a shape or attribute inserts the
    value captured on the left side. A number becomes a constant of the required type and sizes. Shapes are inferred. If
    the operands do not determine a shape, the last line gets the shape of the matched instruction, and any other line
    must give its shape, as in `f32[4] convert($x)`. New instructions copy metadata, frontend attributes and, where
    dimensions agree, the sharding of the matched instruction. A line named as on the left, `%r = ...`, copies these and
    `, ...` from the instruction with that name.

    Args:
        text: One or more op lines on each side, separated by line breaks or semicolons.
        name: Name of the rule in counts and messages. None (the default) uses `text`.

    Raises:
        PatternError: The text is not a rule, or has an unknown opcode, attribute or type, a name that the left side does
            not capture, or an operation with the wrong number of operands or without required attributes or a shape.
            The message gives the position.

    >>> import hlotext as hlo
    >>> from hlotext.rewrite import apply_rules
    >>> module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  y = f32[4] negate(x)  ROOT z = f32[4] negate(y) }")
    >>> apply_rules(module, [rule("negate(negate($x)) => abs($x)", "double_negation")])
    {'double_negation': 1}
    >>> print(module.entry.root)
    ROOT abs = f32[4] abs(x)
    >>> rule("negate(x) => x")
    Traceback (most recent call last):
    hlotext.matchers.pattern.PatternError: column 8: there is no opcode x: write $x for any operand
    """
    source = Text(text)
    arrow = _arrow(source)
    left = Reader(source, 0, arrow).lines()
    right = Reader(source, arrow + 2).lines()
    pattern = pattern_of(source, left)
    terms = [term for line in left for term in line.term.walk()]
    texts = {value[1:] for term in terms for _, value, _ in term.attributes if value.startswith("$")}
    texts |= {term.shape[1:] for term in terms if term.shape is not None and term.shape.startswith("$")}
    values = {line.name for line in left if line.name is not None}
    values |= {term.text for term in terms if term.kind == "capture"}
    _check(source, right, values - texts, texts)
    return TextRule(name or " ".join(text.split()), pattern, _Template(right), text=text)


def _arrow(source: Text) -> int:
    quoted = False
    for match in _ARROW.finditer(source.text):
        if match[0] == '"':
            quoted = not quoted
        elif not quoted:
            return match.start()
    other = _OTHER_ARROW.search(source.text)
    use = f"; write => for {other[0].strip()}" if other is not None else ""
    place = len(source.text) if other is None else other.end() - len(other[0].strip())
    raise source.error(f"expected => and the replacement for a match{use}", place)


# ---- the right side, checked


def _check(source: Text, lines: tuple[Line, ...], values: set[str], texts: set[str]) -> None:
    """Raises PatternError for what cannot be built from these captures."""
    for line in lines:
        is_last = line is lines[-1]
        _check_term(source, line.term, values, texts, is_last=is_last, has_others=line.has_others)
        if line.has_others and line.term.kind != "opcode":
            raise source.error(_NO_OPERATION, line.term.position)
        if line.name is not None:
            values.add(line.name)
        elif not is_last:
            raise source.error("only the last line may be unnamed", line.term.position)


_NO_OPERATION = "a shape and attributes belong to an operation"


def _check_term(
    source: Text,
    term: Term,
    values: set[str],
    texts: set[str],
    *,
    is_last: bool = False,
    has_others: bool = False,
) -> None:
    if term.kind == "any" or (term.kind == "opcode" and words.is_wild(term.text)):
        raise source.error(f"{term.text} does not say what to build", term.position)
    if term.kind == "capture":
        if term.text not in values:
            known = ", ".join(f"${name}" for name in sorted(values)) or "nothing"
            raise source.error(f"the left side does not capture ${term.text}, but {known}", term.position)
        if term.operands is not None:
            raise source.error(f"${term.text} takes no operands", term.position)
    if term.kind != "opcode":
        if term.shape or term.attributes:
            raise source.error(_NO_OPERATION, term.position)
        return
    if term.operands is None or term.is_open:
        raise source.error(f"{term.text} needs all of its operands", term.position)
    if term.shape is not None and term.shape.startswith("$"):
        if term.shape[1:] not in texts:
            raise source.error(f"the left side captures no shape {term.shape}", term.position)
    elif term.shape is not None and words.is_wild(term.shape):
        raise source.error(f"{term.shape} is a shape pattern, not a shape", term.position)
    for name, value, position in term.attributes:
        if value.startswith("$") and value[1:] not in texts:
            raise source.error(f"the left side captures no {value} as the text of an attribute", position)
        if not value:
            raise source.error(f"{name} has no value", position)
    row = opcodes.opcode(term.text)
    if not is_last and term.shape is None and (row is None or row.shape_rule is None):
        raise source.error(
            f"the operands of {term.text} do not determine its shape; write it in front, `SHAPE {term.text}(...)`",
            term.position,
        )
    if row is not None:
        _check_complete(source, term, row, has_others)
    for operand in term.operands:
        _check_term(source, operand, values, texts)


def _check_complete(source: Text, term: Term, row: Opcode, has_others: bool) -> None:
    """Raises PatternError for an operation with operands or attributes missing."""
    assert term.operands is not None
    if row.payload is not Payload.OPERANDS:
        remedy = "; write a number such as 2.0" if row.payload is Payload.LITERAL else ""
        raise source.error(f"the right side of a rule has no {row.name}{remedy}", term.position)
    if (count := conditions.wrong_count(row, len(term.operands))) is not None:
        raise source.error(count, term.position)
    given = {attribute_name(row, name) for name, _, _ in term.attributes}
    missing = () if has_others else conditions.missing_attributes(row, given, is_scalar=True)
    for message in missing:
        raise source.error(message, term.position)


# ---- the right side, built


@attrs.frozen
class _Template:
    """Builds the right side of a rule for a match."""

    lines: tuple[Line, ...]

    def __call__(self, r: Rewrite) -> Instruction:
        return _Building(r).lines(self.lines)


class _Building:
    def __init__(self, r: Rewrite) -> None:
        self.r = r
        self.values: dict[str, Instruction] = {}

    def lines(self, lines: tuple[Line, ...]) -> Instruction:
        for line in lines[:-1]:
            assert line.name is not None
            self.values[line.name] = self.line(line, None)
        return self.line(lines[-1], self.r.instruction)

    def line(self, line: Line, old: Instruction | None) -> Instruction:
        term = line.term
        if term.kind == "number":
            return number_like(self.r.b, _number(term.text), self.r.instruction, is_whole=True)
        if term.kind == "capture":
            return self.value(term.text)
        named = self.r.match.get(line.name) if line.name is not None else None
        source = named if isinstance(named, Instruction) else self.r.instruction
        others = {}
        if line.has_others:
            row = opcodes.opcode(term.text)
            allowed = opcodes.allowed_attributes(row) if row is not None else ()
            others = {k: v for k, v in source.attributes.items() if k in allowed and k not in _INHERITED}
        builder = self.r.b if source is self.r.instruction else attrs.evolve(self.r.b, like=source)
        return self.operation(term, builder, others, old)

    def operation(
        self, term: Term, b: Builder, others: dict[str, Any], old: Instruction | None
    ) -> Instruction:
        operands = self.operands(term)
        attributes = {**others, **{name: self.text(value) for name, value, _ in term.attributes}}
        shape = None if term.shape is None else self.text(term.shape)
        try:
            new = b.op(term.text, operands, shape=shape, **attributes)
        except EditError as error:
            if old is None or shape is not None or not _leaves_shape_open(term.text, error):
                raise
            return b.op(term.text, operands, shape=old.shape, **attributes)
        if shape is None and old is not None and old.shape is not None and new.shape not in (None, old.shape):
            is_free = term.text in opcodes.ELEMENTWISE or term.text == old.opcode
            if is_free and new.shape.text_without_layout() == old.shape.text_without_layout():
                new.shape = old.shape  # in the layout that users take
        return new

    def operands(self, term: Term) -> tuple[Instruction, ...]:
        assert term.operands is not None
        found: list[Any] = []
        for operand in term.operands:
            if operand.kind == "capture":
                found.append(self.value(operand.text))
            elif operand.kind == "opcode":
                found.append(self.operation(operand, self.r.b, {}, None))
            else:
                found.append(_number(operand.text))
        return number_operands(self.r.b, term.text, found, self.r.instruction)

    def value(self, name: str) -> Instruction:
        found = self.values.get(name)
        return found if found is not None else self.r[name]

    def text(self, value: str) -> str:
        if value.startswith("$"):
            value = str(self.r.match[value[1:]])
        is_quoted = len(value) > 1 and value[0] == value[-1] == '"' and '"' not in value[1:-1]
        return value[1:-1] if is_quoted else value


def _leaves_shape_open(opcode: str, error: EditError) -> bool:
    """True if operands do not say the shape of an operation's result, in general or here."""
    row = opcodes.opcode(opcode)
    return row is None or row.shape_rule is None or isinstance(error.__context__, CannotInfer)


def _number(text: str) -> bool | int | float:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdigit() else float(text)
