"""Where instructions come from: stack frames that exist, original values of the right structure."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.ir.nodes.module import Module
from hlotext.ir.values.frames import StackFrameIndex
from hlotext.verify.findings import FindingCollector


def check_tables(module: Module, findings: FindingCollector) -> None:
    """Checks that rows of the stack-frame tables refer to existing rows, and that parent frames have no cycle."""
    index = module.stack_frames
    for table, row, message in _table_problems(index):
        findings.in_header(table, "V702", f"row {row} of {table} {message}")


def _table_problems(index: StackFrameIndex) -> Iterator[tuple[str, int, str]]:
    """Table, row (from 1), and what is wrong with it."""
    files, functions = len(index.file_names), len(index.function_names)
    for row, location in enumerate(index.file_locations, 1):
        if not 0 < location.file_name_id <= files:
            yield "FileLocations", row, f"refers to file {location.file_name_id} of {files}"
        if not 0 < location.function_name_id <= functions:
            yield "FileLocations", row, f"refers to function {location.function_name_id} of {functions}"
    frames, locations = len(index.stack_frames), len(index.file_locations)
    for row, frame in enumerate(index.stack_frames, 1):
        if not 0 < frame.file_location_id <= locations:
            yield "StackFrames", row, f"refers to location {frame.file_location_id} of {locations}"
        if not 0 <= frame.parent_frame_id <= frames:
            yield "StackFrames", row, f"refers to frame {frame.parent_frame_id} of {frames} as its caller"
    for row in _endless(index):
        yield "StackFrames", row, "is its own caller, indirectly"


def _endless(index: StackFrameIndex) -> Iterator[int]:
    """Rows (from 1) that lead back to themselves; one for each circle."""
    state = [0] * (len(index.stack_frames) + 1)  # 0 not seen, otherwise the walk that saw it
    for start in range(1, len(index.stack_frames) + 1):
        row = start
        while 0 < row <= len(index.stack_frames) and not state[row]:
            state[row] = start
            row = index.stack_frames[row - 1].parent_frame_id
        if 0 < row <= len(index.stack_frames) and state[row] == start:
            yield row
