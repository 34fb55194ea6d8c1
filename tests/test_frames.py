"""Stack-frame tables: from a number to Python frames."""

from __future__ import annotations

import pytest

from hlotext.ir.values.frames import FileLocation, FrameRow, StackFrame, StackFrameIndex
from hlotext.ir.values.metadata import Metadata

INDEX = StackFrameIndex(
    ("a.py", "b.py"),
    ("main", "inner"),
    (FileLocation(1, 1, 10, 11, 1, 5), FileLocation(2, 2, 20, 20, 3, 9), FileLocation(9, 0, 30, 30, 1, 2)),
    (FrameRow(1, 0), FrameRow(2, 1), FrameRow(3, 2), FrameRow(7, 9), FrameRow(1, 6), FrameRow(2, 5)),
)
MAIN = StackFrame("a.py", "main", 10, 1, 11, 5)
INNER = StackFrame("b.py", "inner", 20, 3, 20, 9)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, (MAIN,)),
        (2, (INNER, MAIN)),
        (3, (StackFrame("", "", 30, 1, 30, 2), INNER, MAIN)),
        (4, (StackFrame("", "", 0, 0, 0, 0),)),
        (5, (MAIN, INNER)),
        (6, (INNER, MAIN)),
        (0, ()),
        (-1, ()),
        (7, ()),
    ],
)
def test_frames(number: int, expected: tuple[StackFrame, ...]) -> None:
    """Innermost first; rows that are missing give empty fields, circles end, wrong numbers have no frames."""
    actual = INDEX.frames(number)
    assert expected == actual


def test_rows_print_as_in_the_tables() -> None:
    """The caller's number stands in the text plus one."""
    assert str(INDEX.file_locations[0]) == (
        "{file_name_id=1 function_name_id=1 line=10 end_line=11 column=1 end_column=5}"
    )
    assert str(INDEX.stack_frames[0]) == "{file_location_id=1 parent_frame_id=1}"
    assert str(INDEX.stack_frames[1]) == "{file_location_id=2 parent_frame_id=2}"


def test_a_frame_prints_its_place() -> None:
    """File, line, column and function."""
    assert str(INNER) == "b.py:20:3 in inner"
    assert str(StackFrame("b.py", "", 20, 0, 20, 0)) == "b.py:20", "what is unknown is left out"


def test_metadata_with_a_frame_in_place_of_its_number() -> None:
    """As XLA prints it with inline stack frames."""
    metadata = Metadata(op_name="x", stack_frame_id=2)
    assert (
        str(metadata.with_frame(INNER)) == '{op_name="x" source_file="b.py" source_line=20 source_column=3}'
    )
