"""Where instructions come from: stack frames that exist, original values of the right structure."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.frames import StackFrameIndex
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.original_value import OriginalNode, OriginalValue
from hlotext.ir.values.shape import Shape
from hlotext.layout.errors import shorten
from hlotext.verify.facts import Facts
from hlotext.verify.findings import Findings
from hlotext.verify.problems import Problem
from hlotext.verify.words import plural


def check_frame(instruction: Instruction, facts: Facts) -> Iterator[Problem]:
    """`stack_frame_id=` is a row of the module's StackFrames; a pasted op line comes without tables."""
    metadata = instruction.attributes.get("metadata")
    if not isinstance(metadata, Metadata) or facts.stack_frames.is_empty:
        return
    rows = len(facts.stack_frames.stack_frames)
    if metadata.stack_frame_id and not 0 < metadata.stack_frame_id <= rows:
        yield Problem(
            "V701",
            f"there is no frame {metadata.stack_frame_id}: StackFrames has {plural(rows, 'row')}",
            "metadata",
        )


def check_tables(module: Module, findings: Findings) -> None:
    """Every row refers to rows that exist, and a frame's callers end (`StackFrameIndexProto`)."""
    index = module.stack_frames
    for table, row, message in _table_problems(index):
        findings.in_header(table, "V702", f"row {row} of {table} {message}")


def _table_problems(index: StackFrameIndex) -> Iterator[tuple[str, int, str]]:
    """Table, row (from 1), and what is wrong with it."""
    files, functions = len(index.file_names), len(index.function_names)
    for row, location in enumerate(index.file_locations, 1):
        if not 0 < location.file_name_id <= files:
            yield "FileLocations", row, f"names file {location.file_name_id} of {files}"
        if not 0 < location.function_name_id <= functions:
            yield "FileLocations", row, f"names function {location.function_name_id} of {functions}"
    frames, locations = len(index.stack_frames), len(index.file_locations)
    for row, frame in enumerate(index.stack_frames, 1):
        if not 0 < frame.file_location_id <= locations:
            yield "StackFrames", row, f"names location {frame.file_location_id} of {locations}"
        if not 0 <= frame.parent_frame_id <= frames:
            yield "StackFrames", row, f"names frame {frame.parent_frame_id} of {frames} as its caller"
    for row in _endless(index):
        yield "StackFrames", row, "is its own caller, through others"


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


def check_origin(instruction: Instruction, facts: Facts) -> Iterator[Problem]:
    """`origin=` has one entry for each leaf of the shape (`VerifyOriginalValue`)."""
    origin = instruction.attributes.get("origin")
    if not isinstance(origin, OriginalValue) or origin.is_synthetic_call or instruction.shape is None:
        return
    if not _same_structure(origin.tree, instruction.shape):
        yield Problem(
            "V703",
            f"origin={shorten(str(origin))} is not built like {shorten(str(instruction.shape))}",
            "origin",
        )


def _same_structure(node: OriginalNode, shape: Shape) -> bool:
    if shape.is_tuple:
        return (
            isinstance(node, tuple)
            and len(node) == len(shape.tuple_shapes)
            and all(map(_same_structure, node, shape.tuple_shapes))
        )
    return not isinstance(node, tuple)
