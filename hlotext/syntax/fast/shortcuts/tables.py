"""The stack-frame tables in the form in which XLA writes them, read without the grammar."""

from __future__ import annotations

import re

from hlotext.findings.errors import TermError
from hlotext.ir.values.frames import FileLocation, FrameRow, StackFrameIndex
from hlotext.syntax.language.words import unquote

_TABLES = re.compile(
    r"(?:\r?\n){2}FileNames\r?\n(?P<files>(?:[0-9]++ \"[^\r\n]*+\r?\n)*+)\r?\n"
    r"FunctionNames\r?\n(?P<functions>(?:[0-9]++ \"[^\r\n]*+\r?\n)*+)\r?\n"
    r"FileLocations\r?\n(?P<locations>(?:[0-9]++ \{[^\r\n]*+\r?\n)*+)\r?\n"
    r"StackFrames\r?\n(?P<frames>(?:[0-9]++ \{[^\r\n]*+\r?\n)*+)"
)
_NUMBER = "([0-9]{1,9})"
_LOCATION = re.compile(
    rf"^[0-9]++ \{{file_name_id={_NUMBER} function_name_id={_NUMBER} line={_NUMBER} end_line={_NUMBER}"
    rf" column={_NUMBER} end_column={_NUMBER}\}}\r?\n",
    re.MULTILINE,
)
_FRAME = re.compile(
    rf"^[0-9]++ \{{file_location_id={_NUMBER} parent_frame_id={_NUMBER}\}}\r?\n", re.MULTILINE
)
_QUOTED = re.compile(r"^[0-9]++ (\"[^\"\\\r\n]*+(?:\\.[^\"\\\r\n]*+)*+\")\r?\n", re.MULTILINE)


def read_tables(text: str, start: int) -> tuple[StackFrameIndex, int] | None:
    """Parses the four stack-frame tables at an offset. Returns them and the offset after them; None if the grammar
    must.
    """
    match = _TABLES.match(text, start)
    if match is None:
        return None
    locations = _LOCATION.findall(match["locations"])
    frames = _FRAME.findall(match["frames"])
    names = [_QUOTED.findall(match[table]) for table in ("files", "functions")]
    for found, table in (
        (locations, "locations"),
        (frames, "frames"),
        (names[0], "files"),
        (names[1], "functions"),
    ):
        if len(found) != match[table].count("\n"):
            return None
    try:
        files, functions = (tuple(map(unquote, table)) for table in names)
        index = StackFrameIndex(
            files,
            functions,
            tuple(FileLocation(*map(int, row)) for row in locations),
            tuple(FrameRow(int(location), int(parent) - 1) for location, parent in frames),
        )
    except TermError:
        return None
    return index, match.end()
