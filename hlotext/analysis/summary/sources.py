"""Instructions by line and file of the source program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import attrs

from hlotext.analysis.origins import SourceLocation


@attrs.frozen
class SourceLine:
    """The instructions of one source line."""

    place: SourceLocation
    instructions: int
    """All instructions, those in fusions included."""
    written_bytes: int
    """Allocated bytes of the arrays that they write outside fusions, each instruction once."""


@attrs.frozen
class SourceFile:
    """The instructions of one source file."""

    file: str
    instructions: int


def source_lines(
    instructions: Mapping[SourceLocation, int], written_bytes: Mapping[SourceLocation | None, int]
) -> tuple[SourceLine, ...]:
    """Returns the source lines with their instructions and written bytes, most bytes first."""
    found = [SourceLine(place, count, written_bytes.get(place, 0)) for place, count in instructions.items()]
    return tuple(sorted(found, key=lambda line: (-line.written_bytes, -line.instructions)))


def source_files(lines: tuple[SourceLine, ...]) -> tuple[SourceFile, ...]:
    """Returns the source files with their numbers of instructions, most first."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts[line.place.file] += line.instructions
    return tuple(SourceFile(file, count) for file, count in counts.most_common())
