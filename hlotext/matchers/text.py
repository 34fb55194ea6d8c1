"""Patterns written as op lines with wildcards: `%x = $S all-gather($A), dimensions={0}`.

| text | matches |
|---|---|
| `%x`, `$A` | any instruction, the same at every occurrence of the name; captured under that name |
| `_` | anything |
| `0`, `2.5`, `true` | that value in every element: a constant, or the broadcast of a scalar one; an integer of any type |
| `constant(200)`, `parameter(0)` | a constant with that value in every element; a parameter by its number |
| `...` | any further operands |
| `add($A, negate($B))` | operands in place, with their own attributes: `negate(transpose($A), dimensions={1,0})` |
| `all-*(...)` | opcodes by their shell pattern |
| `f32[*]`, `$S` | shapes by their shell pattern (`*` any text); `$S` gives the shape's text |
| `dimensions={0}`, `channel_id=*`, `metadata=*foo*` | attributes by the shell pattern of their text; `=$V` gives the text |
| `calls={convolution(...)}`, `body={all-gather(...)}` | called computations by what they hold |

Several lines, behind line breaks or semicolons, are one pattern: the last one is what matches, and its operands may name
those before it (`%t = transpose($A), dimensions={1,0}; dot(%t, $B)`).

Layouts count where the pattern's shape has braces. Left out, name, shape, operands (no parentheses) and attributes may be
anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Payload
from hlotext.ir.values.raw_value import value_text
from hlotext.matchers import words
from hlotext.matchers.constants import splat
from hlotext.matchers.glob import is_like
from hlotext.matchers.matching import NOTHING_SKIPPED, Captures, Matching, Place
from hlotext.matchers.numbers import Number, is_all
from hlotext.matchers.pattern import Condition, Pattern, remembered
from hlotext.matchers.terms import Line, Reader, Term, Text


def parse_pattern(text: str, *, allow_unknown: bool = False) -> Pattern:
    """Parses a pattern from text in the syntax of `hlotext grep`: op lines with captures such as `$x`.

    Raises PatternError for an invalid pattern and, unless `allow_unknown`, for an unknown opcode, attribute or element
    type, since the pattern would never match.

    >>> import hlotext as hlo
    >>> line = hlo.parse_instruction("y = f32[8] all-gather(f32[4] x), dimensions={0}, replica_groups={}")
    >>> match = parse_pattern("%y = $S all-gather($A), dimensions={0}").match(line)
    >>> match["S"], match["A"].name
    ('f32[8]', 'x')
    """
    source = Text(text)
    return pattern_of(source, Reader(source, allow_unknown=allow_unknown).lines())


def pattern_of(source: Text, lines: tuple[Line, ...]) -> Pattern:
    """Returns the pattern of the last line, with earlier lines substituted for their names. Raises PatternError if
    invalid.
    """
    defined: dict[str, Pattern] = {}
    for line in lines:
        pattern = _line(line, defined)
        if line is lines[-1]:
            return pattern
        if line.name is None:
            raise source.error("only the last line may be unnamed", line.term.position)
        defined[line.name] = pattern
    raise AssertionError("a text has a line")


def _line(line: Line, defined: dict[str, Pattern]) -> Pattern:
    pattern = _term(line.term, defined)
    return pattern if line.name is None else pattern.named(line.name)


def _term(term: Term, defined: dict[str, Pattern]) -> Pattern:
    pattern = _operation(term, defined)
    if term.shape is not None:
        pattern = _and(pattern, _shape_condition(term.shape))
    for name, value, _ in term.attributes:
        condition = _body_condition if words.is_body(name, value) else _attribute_condition
        pattern = _and(pattern, condition(name, value))
    return pattern


def _operation(term: Term, defined: dict[str, Pattern]) -> Pattern:
    if term.kind == "number":
        return number_pattern(term.text)
    if term.kind == "capture":
        pattern = defined.get(term.text) or Pattern(capture=term.text)
    elif term.kind == "any":
        pattern = Pattern()
    elif words.is_wild(term.text):
        pattern = Pattern(conditions=(_opcode_condition(term.text),))
    else:
        pattern = Pattern(opcode=term.text)
    if term.operands is None:
        return pattern
    if (
        (row := opcodes.opcode(term.text)) is not None
        and row.payload is not Payload.OPERANDS
        and term.operands
    ):
        return _and(pattern, _payload_condition(row.payload, term.operands[0].text))
    operands = tuple(_term(one, defined) for one in term.operands)
    return attrs.evolve(pattern, operands=operands, open_ended=term.is_open)


def number_pattern(text: str) -> Pattern:
    """Returns a pattern for values whose elements all equal a number; an integer also matches floats."""
    return Pattern(alternatives=tuple(map(splat, _numbers(text))))


def _numbers(text: str) -> tuple[Number, ...]:
    """The values that a number stands for: a whole one also for a float."""
    if text in ("true", "false"):
        return (text == "true",)
    return (int(text), float(text)) if text.lstrip("-").isdigit() else (float(text),)


@remembered
def _payload_condition(payload: Payload, text: str) -> Condition:
    """The value of a constant, or the number of a parameter."""
    if payload is Payload.PARAMETER_NUMBER:
        return Condition(f"the parameter number is {int(text)}", lambda i, _: i.parameter_number == int(text))
    numbers = _numbers(text)
    return Condition(
        f"all elements are {text}", lambda i, _: any(is_all(i.literal, number) for number in numbers)
    )


def _and(pattern: Pattern, condition: Condition) -> Pattern:
    return attrs.evolve(pattern, conditions=(*pattern.conditions, condition))


@remembered
def _opcode_condition(word: str) -> Condition:
    return Condition(f"the opcode matches {word}", lambda i, _: is_like(i.opcode, word))


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


@remembered
def _body_condition(name: str, text: str) -> Condition:
    """The computations of an attribute, or those that they call, hold an instruction that matches."""
    inner = parse_pattern(text[1:-1], allow_unknown=True)

    def holds(instruction: Instruction, captures: Captures) -> bool:
        found = instruction.attributes.get(name, ())
        matching = Matching(inner)
        for one in _held(found if isinstance(found, tuple) else (found,)):
            # Most instructions are of another opcode: nothing is remembered of these.
            if inner.opcode is not None and one.opcode != inner.opcode:
                continue
            ways = matching.ways(inner, Place(one), captures, NOTHING_SKIPPED)
            if ways:
                captures.update(ways[0])
                return True
        return False

    return Condition(f"{name} holds {text[1:-1].strip()}", holds, tuple(inner.name_counts))


def _held(computations: Iterable[object]) -> Iterator[Instruction]:
    """The instructions of computations and of those that they call, each once."""
    waiting = [one for one in computations if isinstance(one, Computation)][::-1]
    seen = set(waiting)
    while waiting:
        for instruction in waiting.pop():
            yield instruction
            for callee in instruction.called_computations:
                if callee not in seen:
                    seen.add(callee)
                    waiting.append(callee)


def _names(text: str) -> tuple[str, ...]:
    """The capture that the text of a shape or attribute makes; none where it is a shell pattern."""
    return (text[1:],) if text.startswith("$") else ()


def _same(captures: Captures, name: str, text: str) -> bool:
    return bool(captures.setdefault(name, text) == text)
