"""Links a module's header: its attributes, and the tables between it and the first computation."""

from __future__ import annotations

import itertools
import re
from typing import Any

from hlotext.ir import tables as knowledge
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.frames import FileLocation, FrameRow, StackFrameIndex
from hlotext.ir.values.raw_value import RawValue
from hlotext.syntax.reading.records import ModuleRecord, SectionRecord
from hlotext.syntax.source.reporter import Reporter

_TABLES: dict[str, tuple[str, ...]] = {
    "FileNames": (),
    "FunctionNames": (),
    "FileLocations": ("file_name_id", "function_name_id", "line", "end_line", "column", "end_column"),
    "StackFrames": ("file_location_id", "parent_frame_id"),
}
"""The stack-frame tables in order, with the fields of a row; no fields: each row is a string."""


def link_head(module: Module, reporter: Reporter, record: ModuleRecord) -> None:
    """Sets a module's header and tables from their record."""
    module._name, module._header_end = record.name, record.header_end
    module._tables_start = record.tables_start
    places: dict[str, int] = {}
    for attribute in record.attributes:
        name = attribute.name
        if name in places:
            related = [("first given here", places[name], None)]
            reporter.error("X111", f"attribute {name} is given twice", attribute.position, related=related)
        if isinstance(attribute.value, RawValue):
            message = f"header attribute {name} is unknown to this release"
            reporter.note(
                "X203",
                message,
                attribute.position,
                help=reporter.did_you_mean(name, knowledge.attributes.HEADER_ATTRIBUTES),
            )
        places[name] = attribute.position
        module._attributes[name] = attribute.value
    tables = {section.name: section for section in record.sections}
    others = []
    for name, section in tables.items():
        if name not in _TABLES:
            message = f"table {name} is unknown to this release"
            reporter.note("X205", message, section.position, help=reporter.did_you_mean(name, _TABLES))
            others.append(reporter.source.text[section.position : section.end])
    if others:
        module._stack_frames = StackFrameIndex(other_tables=tuple(others))
    if tables.keys() & _TABLES:
        _link_tables(module, reporter, tables)


def _link_tables(module: Module, reporter: Reporter, tables: dict[str, SectionRecord]) -> None:
    """Links the stack-frame tables; once one is there, all four must be."""
    rows: dict[str, tuple[Any, ...]] = {}
    for name, fields in _TABLES.items():
        if name not in tables:
            first = min(section.position for key, section in tables.items() if key in _TABLES)
            help = f"{', '.join(_TABLES)} must appear together"
            reporter.error("X101", f"table {name} is missing", first, help=help)
            return
        for number, row in enumerate(tables[name].rows, 1):
            problem = _problem(row, fields)
            if problem:
                message = f"row {number} of {name} {problem}"
                reporter.error("X101", message, *_place_of_row(reporter.source.text, tables[name], number))
                return
        rows[name] = tables[name].rows
    module._stack_frames = StackFrameIndex(
        rows["FileNames"],
        rows["FunctionNames"],
        tuple(FileLocation(**row) for row in rows["FileLocations"]),
        tuple(FrameRow(row["file_location_id"], row["parent_frame_id"] - 1) for row in rows["StackFrames"]),
        module.stack_frames.other_tables,
    )


def _place_of_row(text: str, section: SectionRecord, number: int) -> tuple[int, int | None]:
    """Where a row begins and ends, as XLA writes it on a line of its own; the table's name where it stands otherwise."""
    rows = itertools.islice(_ROW.finditer(text, section.position, section.end), number - 1, None)
    row = next(rows, None)
    return (section.position, None) if row is None else row.span(1)


_ROW = re.compile(r"[\r\n][ \t]*+([0-9]++[ \t]*+[\"{][^\r\n]*+)")


def _problem(row: str | dict[str, int], fields: tuple[str, ...]) -> str:
    """Error in a row; empty if there is none."""
    if not fields or isinstance(row, str):
        if bool(fields) != isinstance(row, str):
            return ""
        return f"must contain {', '.join(fields)}" if fields else "must be a string"
    missing = [field for field in fields if field not in row]
    foreign = [field for field in row if field not in fields]
    if missing:
        return f"has no {missing[0]}"
    return f"has no field named {foreign[0]}, only {', '.join(fields)}" if foreign else ""
