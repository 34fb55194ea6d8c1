"""What the lines and files of the source program became."""

from __future__ import annotations

from collections import Counter

import attrs

from hlotext.analysis.call_graph import CallGraph
from hlotext.analysis.origins import Origins, Place
from hlotext.analysis.sizes import written_bytes


@attrs.frozen
class SourceLine:
    """What one line of the source program became."""

    place: Place
    instructions: int
    """All instructions, those in fusions included."""
    written_bytes: int
    """Allocated bytes of the arrays that they write outside fusions, each instruction once."""


@attrs.frozen
class SourceFile:
    """What one file of the source program became."""

    file: str
    instructions: int


def source_lines(graph: CallGraph, origins: Origins) -> tuple[SourceLine, ...]:
    """The lines of the source program, those that write most first."""
    instructions: Counter[Place] = Counter()
    written: Counter[Place] = Counter()
    for computation in graph.module.computations:
        is_stepped = computation in graph.stepped
        for instruction in computation:
            place = origins.place(instruction)
            if place is not None:
                instructions[place] += 1
                if is_stepped:
                    written[place] += written_bytes(instruction)
    found = [SourceLine(place, count, written[place]) for place, count in instructions.items()]
    return tuple(sorted(found, key=lambda line: (-line.written_bytes, -line.instructions)))


def source_files(lines: tuple[SourceLine, ...]) -> tuple[SourceFile, ...]:
    """The files of the source program, those with the most instructions first."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts[line.place.file] += line.instructions
    return tuple(SourceFile(file, count) for file, count in counts.most_common())
