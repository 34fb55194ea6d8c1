"""Op lines of the usual form whose parts are not: an opcode, attribute or name that nobody knows, a callee that comes later.

Such a line is cut by the fast reader's expression and becomes the record that the grammar would make of it, in a twentieth of
the time. The linker then does with it what it always does.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hlotext.findings.errors import TermError
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Payload
from hlotext.ir.tables.opcodes import SPELLINGS
from hlotext.ir.values.shape import Shape
from hlotext.syntax import reading
from hlotext.syntax.fast import shortcuts
from hlotext.syntax.language import grammar, patterns
from hlotext.syntax.language.grammar import attribute_rule, attribute_rules
from hlotext.syntax.reading.records import (
    ComputationReference,
    InstructionRecord,
    InstructionReference,
    OperandRecord,
    OperationRecord,
    ParsedAttribute,
)

if TYPE_CHECKING:
    from hlotext.syntax.reading.valid_prefix import ValidPrefix

_REFERENCES = {
    "computation": ComputationReference,
    "computation_list": ComputationReference,
    "instruction_list": InstructionReference,
}
"""Rules whose values name nodes, and what stands for a name."""
_OPCODE = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")
_INDEX = re.compile(r"/\*index=[0-9]+\*/")
_ELEMENT = re.compile(r"[0-9]{1,18}")
_BLANKS = " \t"


class JoinedLine:
    """Maps offsets in the text of a line to the source, which may have several lines where this is one."""

    def __init__(self, cuts: list[int] | None = None, places: list[int] | None = None) -> None:
        self._cuts = cuts
        """From where on in the copy the offsets are those of the text, moved by so much. None for the text itself."""
        self._places = places or []

    def is_cut(self, start: int, end: int) -> bool:
        """True if the text between two offsets differs from the source."""
        if self._cuts is None:
            return False
        number = bisect.bisect_right(self._cuts, start)
        return number < len(self._cuts) and self._cuts[number] <= end

    def place(self, position: int) -> int:
        """Returns the source offset of an offset in the joined text."""
        if self._cuts is None:
            return position
        number = bisect.bisect_right(self._cuts, position) - 1
        return position - self._cuts[number] + self._places[number]


WHOLE = JoinedLine()
_BREAK = re.compile(r"(?:[ \t\r\n]++|/\*(?!index=)[^*\r\n]*+\*/|//[^\r\n]*+(?=[\r\n]|\Z))++")
"""Text between two words, including line ends and comments; operand numbers do not count as comments here."""


def joined(text: str, start: int, end: int) -> tuple[str, JoinedLine] | None:
    """Returns an op line that has several lines or comments as one line, with blanks as XLA writes them.

    None if a line end or comment may be part of a string or of a dict that is kept verbatim, or if the result would
    begin with a name alone on its line.
    """
    kept: list[tuple[int, int]] | None = None
    # Where a quote is missing there are many, and the first shows that nothing can be joined.
    strings = _string().finditer(text, start, end)
    string = next(strings, None)
    parts: list[str] = []
    cuts, places = [0], [start]
    length, position = 0, start
    for match in _BREAK.finditer(text, start, end):
        if match[0] == " ":
            continue
        while string is not None and string.end() <= match.start():
            string = next(strings, None)
        if string is not None and string.start() < match.end():
            if match.start() < string.start() or match[0].strip(" "):
                return None
            continue
        if kept is None:
            kept = _kept(text, start, end)
        if any(first < match.start() < last for first, last in kept):
            return None
        part = text[position : match.start()]
        if not part or (not parts and "=" not in part):
            return None  # for the grammar a name alone in its line begins nothing
        after = text[match.end()] if match.end() < end else ")"
        blank = "" if part[-1] in "([{" or after in ",)]}" else " "
        parts += (part, blank)
        length += len(part) + len(blank)
        position = match.end()
        cuts.append(length)
        places.append(position)
    parts.append(text[position:end])
    return "".join(parts), JoinedLine(cuts, places)


def _kept(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Where the braces of attributes lie whose dicts are kept byte for byte."""
    found: list[tuple[int, int]] = []
    if text.find("frontend_attributes", start, end) < 0 and text.find("backend_config", start, end) < 0:
        return found  # which is seen in a fraction of the time
    for begin in _DICTS.finditer(text, start, end):
        depth = 0
        for token in _braces().finditer(text, begin.end() - 1, end):
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if not depth:
                found.append((begin.end() - 1, token.end()))
                break
    return found


_DICTS = re.compile(r"\b(?:frontend_attributes|backend_config)\s*+=\s*+\{")


@functools.cache
def _braces() -> re.Pattern[str]:
    return re.compile(rf"{grammar.terminals()['STRING']}|[{{}}]")


@functools.cache
def _string() -> re.Pattern[str]:
    return re.compile(grammar.terminals()["STRING"])


@functools.cache
def _name(mark: str) -> re.Pattern[str]:
    return re.compile(rf"%{patterns.IDENTIFIER}" if mark else patterns.bare_name())


def record(
    match: re.Match[str], mark: str, piece: JoinedLine = WHOLE, *, has_tail: bool = True
) -> InstructionRecord | None:
    """Returns the record of a line matched by `patterns.op_line`; None if the grammar must parse it.

    Without `has_tail`, the record ends at the closing parenthesis.
    """
    root, name, head, names, inner, tail = match.groups()
    if not has_tail:
        tail = ""
    shape_text, _, opcode = head.rpartition(" ")
    row = opcodes.OPCODES.get(opcode)
    if (row is not None and row.payload is not Payload.OPERANDS) or _OPCODE.fullmatch(opcode) is None:
        return None
    if inner or "//" in head or "\r" in match[0] or patterns.attributes().fullmatch(tail) is None:
        return None
    try:
        shape: Shape = shortcuts.read("shape", shape_text)
    except TermError:
        return None
    operands = () if names is None else _operands(f"{mark}{names}", match.start(4) - len(mark), mark, piece)
    attributes = None if operands is None else _attributes(tail, match.start(6), piece)
    if operands is None or attributes is None:
        return None
    operation = OperationRecord(opcode, operands, None, shape, piece.place(match.end(3) - len(opcode)))
    start = match.start(2) - len(mark) if root is None else match.start(1)
    end = piece.place((match.end() if has_tail else match.start(6)) - 1) + 1
    return InstructionRecord(name, operation, attributes, root is not None, piece.place(start), end, not mark)


def lacks_comma(tail: str) -> int:
    """Returns the number of blanks in place of a missing comma before the first attribute of an otherwise valid op
    line.

    0 for any other text after the parentheses, and if a comment or a single quote makes it ambiguous.
    """
    match = _attribute_behind_blanks().match(tail)
    if match is None or "//" in tail or "/*" in tail or "'" in tail:
        return 0
    blanks: int = match.start(1)
    return blanks if patterns.attributes().fullmatch(f", {tail[blanks:]}") is not None else 0


@functools.cache
def _attribute_behind_blanks() -> re.Pattern[str]:
    return re.compile(rf"[ \t]++(?!ROOT=)({grammar.terminals()['ATTRIBUTE_NAME']})")


def begun(text: str, start: int, end: int) -> ValidPrefix | None:
    """Returns the valid prefix of an op line of the usual form, up to a comma or parenthesis.

    None if the grammar must parse it from its beginning.
    """
    match = _beginning().match(text, start, end)
    if match is None:
        return None
    root, name, shape_text, opcode = match.groups()
    found = reading.valid_prefix.named(
        None if root is None else start, name, match.start(2), match.end(2) + 1
    )
    if opcode is None or opcode in _WITH_ARGUMENT or "/" in shape_text:
        return found
    try:
        shape: Shape = shortcuts.read("shape", shape_text)
    except TermError:
        return found
    mark, position = "%" if name.startswith("%") else "", match.end()
    close, line_end = text.find(")", position, end), _LINE_END.search(text, position, end)
    stop = end if line_end is None else line_end.start()
    operands = None
    if 0 <= close < stop and text.startswith(",", close + 1):
        operands = _operands(text[position:close], position, mark, WHOLE) if close > position else ()
    if operands is None:
        return reading.valid_prefix.opened(found, shape, opcode, match.start(4))
    attributes, comma = [], close + 1
    for attribute, behind in _first_attributes(text[close + 1 : stop], close + 1, WHOLE):
        # An unknown value may continue after the comma, and a comment may hide the comma.
        if (
            attribute_rule(attribute.name) is None
            or not text.startswith(",", close + 1 + behind)
            or "//" in text[comma : close + 1 + behind].partition('"')[0]
        ):
            break
        attributes.append(attribute)
        comma = close + 1 + behind
    return reading.valid_prefix.listed(found, shape, opcode, match.start(4), operands, attributes, comma)


@functools.cache
def _beginning() -> re.Pattern[str]:
    """The beginning of an op line, as far as it has the usual form. Groups: ROOT, name, shape, opcode."""
    name = rf"%{patterns.IDENTIFIER}|{patterns.bare_name()}"
    return re.compile(rf"(ROOT )?({name}) =(?: ({patterns.shape()}) ({_OPCODE.pattern})\()?")


_WITH_ARGUMENT = frozenset({"parameter", "constant"})
"""Opcodes that the grammar has words of their own for."""
_LINE_END = re.compile(r"[\r\n]")


def _operands(text: str, position: int, mark: str, piece: JoinedLine) -> tuple[OperandRecord, ...] | None:
    """A plain list of names at an offset, with or without their numbers, of tuples perhaps with the element that is read."""
    found = []
    is_name = _name(mark).fullmatch
    for item in text.split(", "):
        number = _INDEX.match(item)
        start = 0 if number is None else number.end()
        name, *elements = item[start:].split("#")
        if is_name(name) is None or not all(map(_ELEMENT.fullmatch, elements)):
            return None
        indices = tuple(map(int, elements))
        found.append(
            OperandRecord(None, name.removeprefix("%"), indices, position=piece.place(position + start))
        )
        position += len(item) + 2
    return tuple(found)


def _attributes(tail: str, position: int, piece: JoinedLine) -> tuple[ParsedAttribute, ...] | None:
    """The attributes behind an op line's parentheses, at an offset."""
    found = list(_first_attributes(tail, position, piece))
    return tuple(attribute for attribute, _ in found) if (found[-1][1] if found else 0) == len(tail) else None


def _first_attributes(tail: str, position: int, piece: JoinedLine) -> Iterator[tuple[ParsedAttribute, int]]:
    """The same up to the first one that the grammar must look at, each with where it ends in the tail."""
    behind, rules = 0, attribute_rules()
    for match in patterns.attribute().finditer(tail):
        if match.start() != behind:
            return
        behind = match.end()
        name, _, text = match[1].partition("=")
        start = position + match.start(1)
        rule = rules.get(name)
        value: Any
        try:
            if piece.is_cut(start, position + match.end()) and rule not in _REFERENCES:
                # Some texts are kept as they stand; these are understood.
                fast = shortcuts.shortcut(rule) if rule is not None and rule != "backend_config" else None
                value = fast(text) if fast is not None else None
            elif rule is None:
                value = reading.terms.read("attribute", match[1]).value
            elif rule in _REFERENCES:
                value = _references(rule, text, start + len(name) + 1, piece)
            else:
                value = shortcuts.read(rule, text)
        except TermError:
            return
        if value is None:
            return
        yield ParsedAttribute(SPELLINGS.get(name, name), value, piece.place(start)), behind


def _references(rule: str, text: str, position: int, piece: JoinedLine) -> Any:
    """The nodes that a value at an offset names."""
    names = [text]
    if rule != "computation":
        if not text.startswith("{") or not text.endswith("}"):
            return None
        names, position = text[1:-1].split(","), position + 1
    found = []
    for item in names:
        name = item.strip(_BLANKS)
        if _name("%" if name.startswith("%") else "").fullmatch(name) is None:
            return None
        start = position + len(item) - len(item.lstrip(_BLANKS))
        found.append(_REFERENCES[rule](name.removeprefix("%"), piece.place(start)))
        position += len(item) + 1
    return found[0] if rule == "computation" else tuple(found)
