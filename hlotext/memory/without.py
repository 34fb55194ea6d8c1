"""The peak of memory without some of its arrays, or with smaller ones: what repairs of a program would save. Estimates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory import peaks
from hlotext.memory.allocations import Allocation, Slice
from hlotext.memory.assignment import Assignment
from hlotext.memory.subshapes import ShapeIndex

if TYPE_CHECKING:
    import numpy as np
else:
    np = late_module("numpy")

Written: TypeAlias = "Instruction | tuple[Instruction, ShapeIndex]"
"""All that an instruction writes, or one array of its result."""


def peak_without(before: Assignment, shares: Mapping[Written, float], memory_space: int = 0) -> int:
    """Estimates the peak in bytes if results took less memory; `shares` gives the saved fraction (0 to 1) of the bytes
    of each.

    Everything else keeps its place and live range. A slice shared by several values in turn shrinks to the largest that
    remains. In the memory of a result, values that are there earlier and are not updated in place into what becomes
    smaller still need room. The memory of an argument belongs to the caller, and shrinks only with the argument itself.
    """
    line = before._timeline_arrays.get(memory_space)
    if line is None:
        line = np.array(peaks.timeline(before, memory_space), np.int64)
        before._timeline_arrays[memory_space] = line
    if not len(line):
        return before.peak(memory_space).bytes
    moments = len(line)
    change = np.zeros(moments + 1, np.int64)
    touched: dict[Allocation, list[Slice]] = {}
    for one in dict.fromkeys(one[0] if isinstance(one, tuple) else one for one in shares):
        for allocation, piece in before._places.of(one):
            if allocation.memory_space == memory_space:
                touched.setdefault(allocation, []).append(piece)
    for allocation, pieces in touched.items():
        # In the memory of a result, what is there besides counts too.
        is_result = allocation.maybe_live_out and not allocation.is_parameter
        gone: dict[tuple[int, int], list[tuple[int, int, float]]] = {}
        others: list[tuple[int, int, int]] = []
        written = moments
        for value, offset, size in allocation.slices if is_result else pieces:
            writer = value.instruction
            share = shares.get(writer, shares.get((writer, value.index), 0.0)) if writer is not None else 0.0
            if allocation.is_parameter and not _is_argument(writer):
                share = 0.0
            if share > 0 and value.live_range is not None:
                span = (0, moments - 1) if allocation.is_static else value.live_range
                gone.setdefault((offset, size), []).append((*span, share))
                written = min(written, value.live_range[0])
            elif value.live_range is not None and is_result:
                others.append((*value.live_range, size))
        for (_, size), rows in gone.items():
            for first, last, share in _merged(rows):
                change[min(first, moments)] += round(size * share)
                change[min(last + 1, moments)] -= round(size * share)
        freed = sum(size * max(share for _, _, share in rows) for (_, size), rows in gone.items())
        for first, last, size in others:
            if last < written:
                change[min(first, moments)] -= round(min(size, freed))
                change[min(last + 1, moments)] += round(min(size, freed))
    return max(0, int((line - np.cumsum(change[:-1])).max()))


def kept(before: Assignment, changed: Collection[Written], memory_space: int = 0) -> int:
    """Returns the bytes that stay live whatever a repair of these instructions saves.

    These are the bytes of arguments, of results with memory of their own, and of constants. A kind is left out entirely
    if any of its values is changed.
    """
    stays: dict[str, int] = {}
    changes = set()
    for allocation in before.allocations:
        if allocation.memory_space != memory_space or not allocation.is_static:
            continue
        kind = allocation.held_for
        stays[kind] = stays.get(kind, 0) + allocation.bytes
        for value, *_ in allocation.slices:
            one = value.instruction
            if one is None or (kind == "arguments" and not _is_argument(one)):
                continue
            if one in changed or (one, value.index) in changed:
                changes.add(kind)
    return sum(size for kind, size in stays.items() if kind not in changes)


def _is_argument(one: Instruction | None) -> bool:
    """True for a parameter of the entry."""
    home = one.computation if one is not None and one.opcode == "parameter" else None
    return home is not None and home.module is not None and home is home.module.entry


def _merged(rows: list[tuple[int, int, float]]) -> Iterator[tuple[int, int, float]]:
    """Spans that overlap as one, with the larger share."""
    rows.sort()
    first, last, share = rows[0]
    for start, stop, other in rows[1:]:
        if start > last:
            yield first, last, share
            first, last, share = start, stop, other
        else:
            last, share = max(last, stop), max(share, other)
    yield first, last, share
