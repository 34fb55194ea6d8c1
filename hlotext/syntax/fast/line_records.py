"""Op lines of the usual form whose parts are not: an opcode, attribute or name that nobody knows, a callee that comes later.

Such a line is cut by the fast reader's expression and becomes the record that the grammar would make of it, in a twentieth of
the time. The linker then does with it what it always does.
"""

from __future__ import annotations

import bisect
import functools
import re
from typing import Any

from hlotext.findings.errors import TermError
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Payload
from hlotext.ir.values.shape import Shape
from hlotext.syntax import reading
from hlotext.syntax.fast import shortcuts
from hlotext.syntax.language import patterns
from hlotext.syntax.language.grammar import attribute_rule
from hlotext.syntax.reading.records import (
    ComputationReference,
    InstructionRecord,
    InstructionReference,
    OperandRecord,
    OperationRecord,
    ParsedAttribute,
)

_REFERENCES = {
    "computation": ComputationReference,
    "computation_list": ComputationReference,
    "instruction_list": InstructionReference,
}
"""Rules whose values name nodes, and what stands for a name."""
_OPCODE = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")
_INDEX = re.compile(r"/\*index=[0-9]+\*/")
_BLANKS = " \t"


class Piece:
    """What of a text a line is cut from: the text itself, or a copy of several of its lines joined to one."""

    def __init__(self, cuts: list[int] | None = None, places: list[int] | None = None) -> None:
        self._cuts = cuts
        """From where on in the copy the offsets are those of the text, moved by so much. None for the text itself."""
        self._places = places or []

    @property
    def is_whole(self) -> bool:
        return self._cuts is None

    def place(self, position: int) -> int:
        """An offset in the text."""
        if self._cuts is None:
            return position
        number = bisect.bisect_right(self._cuts, position) - 1
        return position - self._cuts[number] + self._places[number]


WHOLE = Piece()
_BREAK = re.compile(r"[ \t]*+(?:\r\n?|\n)[ \t\r\n]*+")


def joined(text: str, start: int, end: int) -> tuple[str, Piece] | None:
    """The lines of an op line as one, blanks as XLA writes them; None where a line end may be part of a value."""
    parts: list[str] = []
    cuts, places = [0], [start]
    length, position, depth = 0, start, 0
    has_braces = False
    for match in _BREAK.finditer(text, start, end):
        part = text[position : match.start()]
        if '"' in part and part.count('"') % 2:
            return None  # within a string; it holds no quotes that are escaped either
        depth += part.count("{") - part.count("}")
        has_braces = has_braces or "={" in part
        if (depth and has_braces) or "//" in part or "/*" in part or "\\" in part or not part:
            return None
        if not parts and "=" not in part:
            return None  # for the grammar a name alone in its line begins nothing
        after = text[match.end() : match.end() + 1]
        blank = "" if part[-1] in "([" or after in (",", ")", "]") else " "
        parts += (part, blank)
        length += len(part) + len(blank)
        position = match.end()
        cuts.append(length)
        places.append(position)
    parts.append(text[position:end])
    return "".join(parts), Piece(cuts, places)


@functools.cache
def _name(mark: str) -> re.Pattern[str]:
    return re.compile(rf"%{patterns.IDENTIFIER}" if mark else patterns.bare_name())


def record(match: re.Match[str], mark: str, piece: Piece = WHOLE) -> InstructionRecord | None:
    """The record of a line that `patterns.op_line` has cut; None when the grammar must look at it."""
    root, name, head, names, inner, tail = match.groups()
    shape_text, _, opcode = head.rpartition(" ")
    row = opcodes.OPCODES.get(opcode)
    if (row is not None and row.payload is not Payload.OPERANDS) or _OPCODE.fullmatch(opcode) is None:
        return None
    if inner or "//" in head or "\r" in match[0]:
        return None
    operands = () if names is None else _operands(f"{mark}{names}", match.start(4) - len(mark), mark, piece)
    attributes = _attributes(tail, match.start(6), piece)
    if operands is None or attributes is None:
        return None
    try:
        shape: Shape = shortcuts.read("shape", shape_text)
    except TermError:
        return None
    operation = OperationRecord(opcode, operands, None, shape, piece.place(match.end(3) - len(opcode)))
    start = match.start(2) - len(mark) if root is None else match.start(1)
    end = piece.place(match.end() - 1) + 1
    return InstructionRecord(name, operation, attributes, root is not None, piece.place(start), end, not mark)


def _operands(text: str, position: int, mark: str, piece: Piece) -> tuple[OperandRecord, ...] | None:
    """A plain list of names at an offset, with or without their numbers."""
    found = []
    is_name = _name(mark).fullmatch
    for item in text.split(", "):
        index = _INDEX.match(item)
        start = 0 if index is None else index.end()
        if is_name(item, start) is None:
            return None
        found.append(
            OperandRecord(None, item[start:].removeprefix("%"), position=piece.place(position + start))
        )
        position += len(item) + 2
    return tuple(found)


def _attributes(tail: str, position: int, piece: Piece) -> tuple[ParsedAttribute, ...] | None:
    """The attributes behind an op line's parentheses, at an offset."""
    found = []
    behind = 0
    for match in patterns.attribute().finditer(tail):
        if match.start() != behind:
            return None
        behind = match.end()
        name, _, text = match[1].partition("=")
        start = position + match.start(1)
        rule = attribute_rule(name)
        value: Any
        try:
            if rule is None and not piece.is_whole:
                return None  # its text is kept as it stands
            if rule is None:
                value = reading.terms.read("attribute", match[1]).value
            elif rule in _REFERENCES:
                value = _references(rule, text, start + len(name) + 1, piece)
            else:
                value = shortcuts.read(rule, text)
        except TermError:
            return None
        if value is None:
            return None
        found.append(ParsedAttribute(name, value, piece.place(start)))
    return tuple(found) if behind == len(tail) else None


def _references(rule: str, text: str, position: int, piece: Piece) -> Any:
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
