"""The stack-frame tables as XLA's reader builds them anew: only frames that an instruction names, as they are met."""

from __future__ import annotations

from typing import Any

import attrs

from hlotext.ir.nodes.module import Module
from hlotext.ir.values.frames import StackFrameIndex
from hlotext.ir.values.metadata import Metadata


def keep_used_frames(module: Module) -> None:
    """Rebuilds the stack-frame tables in the order of the instructions (`HloModule::CanonicalizeStackFrameIds`)."""
    old = module.stack_frames
    tables = _Tables(old)
    replaced: dict[int, Metadata] = {}
    for instruction in module.instructions():
        metadata = instruction._attributes.get("metadata")
        if not isinstance(metadata, Metadata) or not metadata.stack_frame_id:
            continue
        if id(metadata) not in replaced:
            replaced[id(metadata)] = attrs.evolve(
                metadata, stack_frame_id=tables.number(metadata.stack_frame_id)
            )
        instruction._attributes = {**instruction._attributes, "metadata": replaced[id(metadata)]}
    module._stack_frames = tables.index()


class _Tables:
    """Stack-frame tables that grow by what is asked for."""

    def __init__(self, old: StackFrameIndex) -> None:
        self.old = old
        self.numbers: dict[int, int] = {}
        """From rows of the old table to rows of this one."""
        self.files: dict[str, int] = {}
        self.functions: dict[str, int] = {}
        self.locations: dict[Any, int] = {}
        self.frames: dict[Any, int] = {}

    def number(self, row: int) -> int:
        """The row that holds what a row of the old tables held; 0 for one that is missing or has no end."""
        path: list[int] = []
        seen: set[int] = set()
        while row and row not in self.numbers:
            if not 0 < row <= len(self.old.stack_frames) or row in seen:
                return 0
            seen.add(row)
            path.append(row)
            row = self.old.stack_frames[row - 1].parent_frame_id
        found = self.numbers.get(row, 0)
        for frame in reversed(path):
            found = self._frame(frame, found)
            if not found:
                return 0
            self.numbers[frame] = found
        return found

    def _frame(self, row: int, parent: int) -> int:
        """A row with a parent in the new table; 0 where the old one lacks its place."""
        old = self.old
        place = old.stack_frames[row - 1].file_location_id
        if not 0 < place <= len(old.file_locations):
            return 0
        location = old.file_locations[place - 1]
        if not (
            0 < location.file_name_id <= len(old.file_names)
            and 0 < location.function_name_id <= len(old.function_names)
        ):
            return 0
        file = _numbered(self.files, old.file_names[location.file_name_id - 1])
        function = _numbered(self.functions, old.function_names[location.function_name_id - 1])
        new = attrs.evolve(location, file_name_id=file, function_name_id=function)
        return _numbered(
            self.frames,
            attrs.evolve(
                old.stack_frames[row - 1],
                file_location_id=_numbered(self.locations, new),
                parent_frame_id=parent,
            ),
        )

    def index(self) -> StackFrameIndex:
        """The tables."""
        return StackFrameIndex(
            tuple(self.files), tuple(self.functions), tuple(self.locations), tuple(self.frames)
        )


def _numbered(table: dict[Any, int], key: Any) -> int:
    return table.setdefault(key, len(table) + 1)
