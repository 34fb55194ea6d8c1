"""Where instructions come from in the Python program."""

from __future__ import annotations

import attrs

from hlotext.ir.instruction import Instruction


@attrs.frozen
class Place:
    """A line of a source program: the innermost frame of an instruction."""

    file: str
    line: int
    function: str
    """Empty where the text does not tell."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" {self.function}" if self.function else "")


@attrs.define
class Origins:
    """Finds places, each stack frame of the module once."""

    _places: dict[int, Place | None] = attrs.field(factory=dict)

    def place(self, instruction: Instruction) -> Place | None:
        """The innermost frame; None where the text has none."""
        metadata = instruction.metadata
        if metadata is None:
            return None
        number = metadata.stack_frame_id
        if not number:
            return Place(metadata.source_file, metadata.source_line, "") if metadata.source_file else None
        if number not in self._places:
            frames = instruction.frames
            self._places[number] = (
                Place(frames[0].file, frames[0].line, frames[0].function) if frames else None
            )
        return self._places[number]
