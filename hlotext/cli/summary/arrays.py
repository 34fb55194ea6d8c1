"""What takes memory: the arrays that a module writes, alike ones together, by size and by memory space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import attrs

from hlotext.analysis.call_graph import CallGraph
from hlotext.analysis.origins import Origins, Place
from hlotext.analysis.sizes import Total, array_bytes, arrays_of, memory_space, written_arrays
from hlotext.ir.instruction import Instruction
from hlotext.ir.shape import Shape


def opcode_label(instruction: Instruction) -> str:
    """The opcode, with the kind of a fusion, the target of a custom call, or what an `async-start` runs."""
    opcode, attributes = instruction.opcode, instruction.attributes
    if opcode == "fusion":
        return f"fusion {attributes.get('kind', '')}".rstrip()
    if opcode == "custom-call":
        return f"custom-call {attributes.get('custom_call_target', '')}".rstrip()
    if opcode == "async-start" and (wrapped := instruction.async_wrapped_instruction) is not None:
        return f"async {wrapped.opcode}"
    return opcode


@attrs.frozen
class ArrayGroup:
    """Arrays of one shape that instructions of one kind write for one place of the source program."""

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
    place: Place | None
    op_name: str
    """The source program's operation for the first of them; for arguments their names there."""


@attrs.frozen
class MemorySpace:
    """What is written to one memory space, whether at the same time or one after the other."""

    memory_space: int
    written: Total


@attrs.frozen
class Transfer:
    """Copies from one memory space to another."""

    source: int
    target: int
    copies: int
    allocated_bytes: int


def _arrays(graph: CallGraph) -> Iterator[tuple[Instruction, tuple[int, ...], Shape]]:
    """Every array that is memory of its own: what instructions write, and the arguments of the entry."""
    for parameter in graph.module.entry.parameters:
        yield from ((parameter, index, array) for index, array in arrays_of(parameter.shape))
    for instruction in graph.stepped_instructions():
        yield from ((instruction, index, array) for index, array in written_arrays(instruction))


def array_groups(graph: CallGraph, origins: Origins) -> tuple[ArrayGroup, ...]:
    """All arrays, alike ones together; the largest first."""
    first: dict[tuple[str, Shape, Place | None], tuple[Instruction, tuple[int, ...]]] = {}
    counts: Counter[tuple[str, Shape, Place | None]] = Counter()
    for instruction, index, array in _arrays(graph):
        key = opcode_label(instruction), array, origins.place(instruction)
        first.setdefault(key, (instruction, index))
        counts[key] += 1
    found = []
    for key, (instruction, index) in first.items():
        opcode, array, place = key
        if (size := array_bytes(array)) is not None:
            metadata = instruction.metadata
            op_name = metadata.op_name if metadata is not None else ""
            which = instruction.name, index, opcode, str(array), memory_space(array)
            found.append(ArrayGroup(*which, counts[key], *size, place, op_name))
    return tuple(sorted(found, key=lambda group: (-group.allocated_bytes, -group.count)))


@attrs.frozen
class PaddedShape:
    """The arrays of one shape, wherever they lie."""

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


def most_padded(graph: CallGraph) -> tuple[PaddedShape, ...]:
    """The shapes with padding, those with most of it first."""
    first: dict[Shape, str] = {}
    counts: Counter[Shape] = Counter()
    for instruction, _, array in _arrays(graph):
        size = array_bytes(array)
        if size is not None and size[0] > size[1]:
            if array.layout is not None and array.layout.memory_space:
                array = array.with_layout(attrs.evolve(array.layout, memory_space=0))
            first.setdefault(array, instruction.name)
            counts[array] += 1
    found = []
    for array, count in counts.items():
        allocated, unpadded = array_bytes(array) or (0, 0)
        padding = (allocated - unpadded) * count
        found.append(PaddedShape(str(array), count, allocated, unpadded, padding, first[array]))
    return tuple(sorted(found, key=lambda row: -row.padding_bytes))


def memory_spaces(graph: CallGraph) -> tuple[MemorySpace, ...]:
    """What is written to each memory space, arguments included, in the order of their numbers."""
    totals: dict[int, Total] = {}
    for _, _, array in _arrays(graph):
        space = memory_space(array)
        totals[space] = totals.get(space, Total()).plus(array)
    return tuple(MemorySpace(space, totals[space]) for space in sorted(totals))


_COPIES = frozenset({"copy", "copy-start", "slice", "dynamic-slice", "dynamic-update-slice"})
"""Opcodes that only move values. Fusions that copy are not looked into."""


def transfers(graph: CallGraph) -> tuple[Transfer, ...]:
    """Copies between memory spaces (`copy`, its asynchronous form, asynchronous slices), by direction."""
    copies: Counter[tuple[int, int]] = Counter()
    moved: Counter[tuple[int, int]] = Counter()
    for instruction in graph.stepped_instructions():
        what = instruction.opcode
        if what == "async-start" and (wrapped := instruction.async_wrapped_instruction) is not None:
            what = wrapped.opcode
        if what not in _COPIES or not instruction.operands:
            continue
        sources = [memory_space(array) for _, array in arrays_of(instruction.operands[0].shape)]
        for _, array in written_arrays(instruction):
            way = sources[0] if sources else 0, memory_space(array)
            if way[0] != way[1]:
                copies[way] += 1
                moved[way] += (array_bytes(array) or (0, 0))[0]
    return tuple(Transfer(*way, copies[way], moved[way]) for way in sorted(copies))
