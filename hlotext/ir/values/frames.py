"""The stack-frame tables of a module, and the Python frames in them."""

from __future__ import annotations

import attrs

from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class StackFrame(Value):
    """A Python stack frame. Lines and columns start at 1; 0 if unknown."""

    file: str
    function: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        column = f":{self.column}" if self.column else ""
        function = f" in {self.function}" if self.function else ""
        return f"{self.file}:{self.line}{column}{function}"


@attrs.frozen(repr=False)
class FileLocation(Value):
    """A row of FileLocations (`StackFrameIndexProto::FileLocation`). Ids start at 1."""

    file_name_id: int
    function_name_id: int
    line: int
    end_line: int
    column: int
    end_column: int

    def __str__(self) -> str:
        return (
            f"{{file_name_id={self.file_name_id} function_name_id={self.function_name_id} line={self.line} "
            f"end_line={self.end_line} column={self.column} end_column={self.end_column}}}"
        )


@attrs.frozen(repr=False)
class FrameRow(Value):
    """A row of StackFrames (`StackFrameIndexProto::StackFrame`)."""

    file_location_id: int
    """Row of FileLocations, counted from 1."""
    parent_frame_id: int
    """Row of StackFrames of the caller, counted from 1; 0 for none. The text holds this number plus one."""

    def __str__(self) -> str:
        return f"{{file_location_id={self.file_location_id} parent_frame_id={self.parent_frame_id + 1}}}"


@attrs.frozen(repr=False)
class StackFrameIndex(Value):
    """The four stack-frame tables between a module's header and its first computation (`StackFrameIndexProto`)."""

    file_names: tuple[str, ...] = ()
    function_names: tuple[str, ...] = ()
    file_locations: tuple[FileLocation, ...] = ()
    stack_frames: tuple[FrameRow, ...] = ()
    other_tables: tuple[str, ...] = ()
    """Texts of the tables that this release does not know, without the blank lines around them."""

    @property
    def is_empty(self) -> bool:
        """True if the module has no such tables, or only empty ones."""
        return self == StackFrameIndex()

    def frames(self, stack_frame_id: int) -> tuple[StackFrame, ...]:
        """Returns the Python frames of a `Metadata.stack_frame_id`, innermost first; empty if the id has no row.

        Ends at a row without a caller, at a missing row, or at a cycle. Missing fields are empty or 0.
        """
        found: list[StackFrame] = []
        seen: set[int] = set()
        while 0 < stack_frame_id <= len(self.stack_frames) and stack_frame_id not in seen:
            seen.add(stack_frame_id)
            row = self.stack_frames[stack_frame_id - 1]
            found.append(self._frame(row.file_location_id))
            stack_frame_id = row.parent_frame_id
        return tuple(found)

    def innermost(self, stack_frame_id: int) -> StackFrame | None:
        """Returns the first of `frames`, without computing the others, or None if the id has no row."""
        if not 0 < stack_frame_id <= len(self.stack_frames):
            return None
        return self._frame(self.stack_frames[stack_frame_id - 1].file_location_id)

    def _frame(self, file_location_id: int) -> StackFrame:
        if not 0 < file_location_id <= len(self.file_locations):
            return StackFrame("", "", 0, 0, 0, 0)
        place = self.file_locations[file_location_id - 1]
        return StackFrame(
            _row(self.file_names, place.file_name_id),
            _row(self.function_names, place.function_name_id),
            place.line,
            place.column,
            place.end_line,
            place.end_column,
        )


def _row(names: tuple[str, ...], number: int) -> str:
    return names[number - 1] if 0 < number <= len(names) else ""
