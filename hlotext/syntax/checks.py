"""XLA's conditions on instructions, said of places in a text. Positions are offsets: of the opcode, of attributes by name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

from hlotext.ir import tables
from hlotext.ir.caches import lazy_regex
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.spelling import did_you_mean, suggestion
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Family
from hlotext.ir.tables.other_names import attribute_elsewhere, attribute_meant
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.shape import Shape
from hlotext.semantics import conditions
from hlotext.semantics.conditions import compatible
from hlotext.semantics.message_text import shown
from hlotext.syntax.language.grammar import attribute_rule
from hlotext.syntax.source.reporter import Place, Reporter

if TYPE_CHECKING:
    from hlotext.ir.values.metadata import Metadata
    from hlotext.semantics.problems import Problem


def opcode(reporter: Reporter, instruction: Instruction, position: int, places: dict[str, int]) -> None:
    """Checks that an opcode is known, its attributes are valid and complete, and it has the right number of operands."""
    _report(reporter, conditions.of_opcode(instruction), instruction, position, places)


def instruction(reporter: Reporter, instruction: Instruction, position: int, places: dict[str, int]) -> None:
    """Checks the conditions of single opcodes on shapes, counts and attribute values."""
    _report(reporter, conditions.of_values(instruction), instruction, position, places)


def _report(
    reporter: Reporter,
    problems: Iterable[Problem],
    instruction: Instruction,
    position: int,
    places: dict[str, int],
) -> None:
    """Says what is wrong where it stands."""
    for problem in problems:
        help = reporter.did_you_mean(problem.word, problem.known) if problem.known is not None else ""
        start, end = position, None
        if isinstance(problem.where, str) and problem.where in places:
            start = places[problem.where]
        else:
            end = position + len(instruction.opcode)
        if not problem.is_error:
            reporter.note(problem.code, problem.message, start, end, help or problem.help)
            continue
        related = [
            (other[0], other[1]._start, other[1]._end)
            for other in problem.related
            if isinstance(other, tuple) and other[1]._start >= 0
        ]
        help = (
            help or (problem.code == "X110" and _comma_missing(reporter, problem, position)) or problem.help
        )
        reporter.error(problem.code, problem.message, start, end, help, related)


def _comma_missing(reporter: Reporter, problem: Problem, position: int) -> str:
    """A sentence for a missing attribute that stands on the line, with no comma before it; empty for others."""
    text = reporter.source.text
    end = text.find("\n", position)
    line = text[position : end if 0 <= end < position + _FAR else position + _FAR]
    words = problem.message.split()
    found = next((match[1] for match in _AFTER_BLANK().finditer(line) if match[1] in words), "")
    return f"is a comma missing before `{found}=`?" if found else ""


_FAR = 5_000
"""Characters of a line in which an attribute is looked for."""
_AFTER_BLANK = lazy_regex(r"(?<=[\w)}\]\"])[ \t]+([a-z_]+)=")


def raw_value(
    reporter: Reporter, instruction: Instruction, name: str, value: RawValue, places: dict[str, int]
) -> None:
    """Adds a note about an attribute value that is kept verbatim."""
    place = places.get(name, instruction._start)
    if attribute_rule(name) is not None:
        reporter.note(
            "X204", f"{name}={value} is unknown to this release", place, help=_word_meant(name, str(value))
        )
        return
    row = opcodes.opcode(instruction.opcode)
    known = opcodes.allowed_attributes(row) if row is not None else tables.attributes.ATTRIBUTES
    help = attribute_meant(name, known) or attribute_elsewhere(name)
    reporter.note("X203", f"attribute {name} is unknown to this release", place, help=help)


def mistaken_metadata(reporter: Reporter, metadata: Metadata, place: int) -> None:
    """Adds a note about each field of metadata that is close to a known one, and rejected by XLA."""
    for name, meant in metadata.fields_meant().items():
        start = max(reporter.source.text.find(f"{name}=", place), place)
        reporter.note(
            "X203", f"metadata field {name} is unknown to this release", start, None, suggestion([meant])
        )


def computation_to_define(instruction: Instruction, name: str) -> str:
    """Returns the text of a computation that is not defined, where its name is that of an operation on two scalars."""
    row = opcodes.opcode(name)
    operand = instruction._operands[0] if instruction._operands else None
    shape = operand.shape if operand is not None else None
    if row is None or row.family is not Family.ELEMENTWISE_BINARY or shape is None or shape.tuple_shapes:
        return ""
    scalar = f"{shape.element_type}[]"
    a, b = f"a = {scalar} parameter(0)", f"b = {scalar} parameter(1)"
    return f"define it above: `{name} {{ {a} {b} ROOT r = {scalar} {name}(a, b) }}`"


def _word_meant(name: str, value: str) -> str:
    """The suggestion for the first word of a value that is none of an enumeration's; empty for other attributes."""
    info = tables.attributes.ATTRIBUTES.get(name)
    kinds = info.kind.classes() if info is not None else ()
    known = [str(member) for kind in kinds if issubclass(kind, Enum) for member in kind]
    unknown = [word for word in _WORD().findall(value) if word not in known]
    return did_you_mean(unknown[0], known) if known and unknown else ""


_WORD = lazy_regex(r"[\w.-]+")


def operand_shape(reporter: Reporter, operand: Instruction, declared: Shape, position: int) -> None:
    """Checks that a shape written before an operand is compatible with the operand's definition; layouts do not matter."""
    if operand.shape is not None and declared != operand.shape and not compatible(declared, operand.shape):
        start, end = _before(reporter.source.text, position)
        message = f"operand {operand.name} is declared as {shown(declared)}, but is {shown(operand.shape)}"
        reporter.error("X114", message, start, end, related=_definition(operand))


def _before(text: str, position: int) -> tuple[int, int]:
    """Where the shape before an operand's name starts and ends: back to the comma or bracket before it."""
    end = position
    while end and text[end - 1] in " \t\r\n":
        end -= 1
    depth, start = 0, end
    while start and (depth or text[start - 1] not in ",("):
        depth += {")": 1, "]": 1, "}": 1, "(": -1, "[": -1, "{": -1}.get(text[start - 1], 0)
        start -= 1
    while start < end and (match := _BLANK().match(text, start, end)):
        start = match.end()
    return (start, end) if start < end else (position, position + 1)


_BLANK = lazy_regex(r"\s+|/\*.*?\*/", re.DOTALL)


def _definition(operand: Instruction) -> list[Place]:
    """The line of another instruction, for a message about both."""
    return [] if operand._start < 0 else [(f"{operand.name} is defined here", operand._start, operand._end)]
