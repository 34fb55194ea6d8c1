"""Arrays that a module writes, equal ones grouped, by size and by memory space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import attrs

from hlotext.analysis.origins import SourceLocation
from hlotext.analysis.sizes import Total, array_bytes, arrays_of, memory_space, written_arrays
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.shape import Shape

LABELLED = (traits.BINDS_OPERANDS - {"call"}) | {"custom-call"}
"""Opcodes whose label is more specific than the opcode."""


def opcode_label(instruction: Instruction) -> str:
    """Returns the opcode with the kind of a fusion, the target of a custom call, or the operation inside an
    `async-start`.
    """
    opcode, attributes = instruction.opcode, instruction._attributes
    if opcode not in LABELLED:
        return opcode
    if opcode == "fusion":
        return f"fusion {attributes.get('kind', '')}".rstrip()
    if opcode == "custom-call":
        return f"custom-call {attributes.get('custom_call_target', '')}".rstrip()
    wrapped = instruction.async_wrapped_instruction
    return f"async {wrapped.opcode}" if wrapped is not None else opcode


@attrs.frozen
class ArrayGroup:
    """Arrays of one shape that instructions of one kind write for one source line."""

    name: str
    """The first instruction in the text that writes one."""
    shape_index: tuple[int, ...]
    """Where in that instruction's result the array is."""
    opcode: str
    shape: str
    memory_space: int
    count: int
    allocated_bytes: int
    """Of one array. So is the next."""
    unpadded_bytes: int
    place: SourceLocation | None
    op_name: str
    """The source program's operation for the first of them; for arguments their names there."""


@attrs.frozen
class MemorySpace:
    """Total of all arrays written to one memory space, simultaneously or not."""

    memory_space: int
    written: Total


@attrs.frozen
class Transfer:
    """Copies from one memory space to another."""

    source: int
    target: int
    copies: int
    allocated_bytes: int


@attrs.define(eq=False)
class Arrays:
    """Counter of arrays of one shape, kind and origin."""

    count: int = 0
    first: str = ""
    """The first instruction in the text that writes one. So are the next."""
    shape_index: tuple[int, ...] = ()
    metadata: Metadata | None = None


Counted: TypeAlias = Mapping[tuple[str, Shape, SourceLocation | None], Arrays]
"""All arrays that are memory of their own, by label, shape and place, in the order of the text, arguments first."""


def array_groups(counted: Counted) -> tuple[ArrayGroup, ...]:
    """Returns the arrays grouped by shape, kind and origin, largest first."""
    found = []
    for (label, array, place), row in counted.items():
        if (size := array_bytes(array)) is not None:
            op_name = row.metadata.op_name if row.metadata is not None else ""
            which = row.first, row.shape_index, label, str(array), memory_space(array)
            found.append(ArrayGroup(*which, row.count, *size, place, op_name))
    return tuple(sorted(found, key=lambda group: (-group.allocated_bytes, -group.count)))


@attrs.frozen
class PaddedShape:
    """All arrays of one shape, in any memory space."""

    shape: str
    """Without memory space."""
    count: int
    allocated_bytes: int
    """Of one array. So is the next."""
    unpadded_bytes: int
    padding_bytes: int
    """Of all of them."""
    name: str
    """The first instruction in the text that writes one."""


def most_padded(counted: Counted) -> tuple[PaddedShape, ...]:
    """Returns the shapes with padding, by total padding, largest first."""
    first: dict[Shape, str] = {}
    counts: Counter[Shape] = Counter()
    for (_, array, _), row in counted.items():
        size = array_bytes(array)
        if size is not None and size[0] > size[1]:
            if array.layout is not None and array.layout.memory_space:
                array = array.with_layout(attrs.evolve(array.layout, memory_space=0))
            first.setdefault(array, row.first)
            counts[array] += row.count
    found = []
    for array, count in counts.items():
        allocated, unpadded = array_bytes(array) or (0, 0)
        padding = (allocated - unpadded) * count
        found.append(PaddedShape(str(array), count, allocated, unpadded, padding, first[array]))
    return tuple(sorted(found, key=lambda row: -row.padding_bytes))


def memory_spaces(counted: Counted) -> tuple[MemorySpace, ...]:
    """Returns the total written to each memory space, including arguments, by number of the space."""
    totals: dict[int, Total] = {}
    for (_, array, _), row in counted.items():
        space = memory_space(array)
        totals[space] = totals.get(space, Total()).plus(array, row.count)
    return tuple(MemorySpace(space, totals[space]) for space in sorted(totals))


COPIES = traits.SLICES | traits.COPIES | {"dynamic-update-slice"}
"""Opcodes that only move values. Fusions that copy are not looked into."""


def moved_arrays(instruction: Instruction) -> Iterator[tuple[tuple[int, int], Shape]]:
    """Yields the arrays that a copy (`COPIES`, or asynchronous) moves between memory spaces, with source and target
    space.
    """
    what = instruction.opcode
    if what == "async-start" and (wrapped := instruction.async_wrapped_instruction) is not None:
        what = wrapped.opcode
    if what not in COPIES or not instruction.operands:
        return
    sources = [memory_space(array) for _, array in arrays_of(instruction.operands[0].shape)]
    for _, array in written_arrays(instruction):
        way = sources[0] if sources else 0, memory_space(array)
        if way[0] != way[1]:
            yield way, array


def transfers(moved: Mapping[tuple[int, int], tuple[int, int]]) -> tuple[Transfer, ...]:
    """Creates the list of copies between memory spaces from their number and bytes by (source, target)."""
    return tuple(Transfer(*way, *moved[way]) for way in sorted(moved))
