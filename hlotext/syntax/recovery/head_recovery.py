"""Recovery of headers and tables that the grammar cannot read: reads the parts that can be read on their own."""

from __future__ import annotations

import re
from typing import Any

from hlotext.findings.errors import TermError
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.frames import FileLocation, FrameRow, StackFrameIndex
from hlotext.syntax.fast import shortcuts
from hlotext.syntax.language import patterns
from hlotext.syntax.language.grammar import header_attribute_rule
from hlotext.syntax.language.words import unquote
from hlotext.syntax.source.reporter import Reporter

_NAME = re.compile(rf"HloModule[ \t]++%?({patterns.IDENTIFIER})")
_LINE = re.compile(r"[^\r\n]*+(?:\r\n?|\n|\Z)")
_ROW = re.compile(r"[ \t]*+[0-9]++(?:[ \t]++|(?=[\"{]))([^\r\n]*+)")
_FIELD = re.compile(r"([a-z_]++)=(-?[0-9]{1,9})(?![0-9])")
_BEHIND = re.compile(rf"[ \t]*+(?:ENTRY\b|[%{{}}]|(?:ROOT\b|{patterns.IDENTIFIER})[ \t]*+[={{(])")
"""Beginning of the first computation, or of its remains."""

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_MISSING: dict[str, Any] = {
    "FileNames": "",
    "FunctionNames": "",
    "FileLocations": FileLocation(0, 0, 0, 0, 0, 0),
    "StackFrames": FrameRow(0, 0),
}
"""Placeholder for a row that cannot be read, so that the numbers of the others stay right."""


def recover_head(module: Module, reporter: Reporter, start: int, end: int, reported: int) -> int:
    """Reads as much as possible of an invalid header and tables. Returns the offset after them.

    `reported` is the offset of an error that has been reported.
    """
    text = reporter.source.text
    name = _NAME.match(text, start, end)
    module._name = name[1] if name is not None else ""
    line = _LINE.match(text, start, end)
    position = end if line is None else line.end()
    is_guess = (
        name is None or reported < position
    )  # not where the header can be read and a row of a table cannot
    module._attributes = _attributes(text[start:position])
    rows: dict[str, list[Any]] = {}
    table = ""
    while position < end and (line := _LINE.match(text, position, end)) is not None:
        word = line[0].strip()
        if word in _TABLES:
            if not table:
                module._tables_start = _without_blanks(text, start, position)
            table = word
            rows[table] = []
        elif table and _ROW.match(line[0]):
            row = _row(table, line[0])
            if row is None and not position <= reported <= line.end():
                message = f"this row of {table} cannot be read"
                reporter.error("X101", message, position, position + len(line[0].rstrip()))
            rows[table].append(_MISSING[table] if row is None else row)
        elif word and _BEHIND.match(line[0]):
            break
        elif word:
            is_guess = True
        position = line.end()
    if rows:
        module._stack_frames = StackFrameIndex(*(tuple(rows.get(table, ())) for table in _TABLES))
    module._is_guess = is_guess
    module._header_start = -1 if name is None else start
    return _without_blanks(text, start, position)


def _attributes(line: str) -> dict[str, Any]:
    """The attributes of a header line, as far as they can be read; the first of each name."""
    found: dict[str, Any] = {}
    for match in patterns.header_attribute().finditer(line.rstrip()):
        name, _, value = match[1].partition("=")
        rule = header_attribute_rule(name)
        if rule is not None and name not in found:
            try:
                found[name] = shortcuts.read(rule, value)
            except TermError:
                continue
    return found


def _row(table: str, line: str) -> Any:
    """One row of a table; None if it cannot be read."""
    match = _ROW.match(line)
    content = match[1].strip() if match is not None else ""
    if table in ("FileNames", "FunctionNames"):
        if not re.fullmatch(patterns.quoted(), content):
            return None
        try:
            return unquote(content)
        except TermError:
            return None
    fields = {name: int(number) for name, number in _FIELD.findall(content)}
    kind = FileLocation if table == "FileLocations" else FrameRow
    names = kind.__match_args__
    if sorted(fields) != sorted(names) or not (content.startswith("{") and content.endswith("}")):
        return None
    if kind is FrameRow:
        fields["parent_frame_id"] -= 1
    return kind(**fields)


def _without_blanks(text: str, start: int, position: int) -> int:
    """The offset behind the last character before `position` that is no blank."""
    while position > start and text[position - 1] in " \t\r\n":
        position -= 1
    return position
