"""Totals of an assignment: time lines, peaks and the figures that JAX reports."""

from __future__ import annotations

import itertools
import operator
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from hlotext.analysis.chips import HOST
from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory.allocations import Allocation
from hlotext.memory.heap import EventRow
from hlotext.memory.values import Value

if TYPE_CHECKING:
    from hlotext.memory.assignment import Assignment


@attrs.frozen(eq=False)
class Peak:
    """The time with the most live bytes in one memory space."""

    bytes: int
    """Live bytes, including static allocations."""
    time: int
    """Position in `Assignment.schedule`."""
    instruction: Instruction | str | None
    """Instruction executing at the peak, given by name if not in the module, or None for an empty schedule."""
    values: tuple[Value, ...]
    """Values live at the peak in that memory space."""


@attrs.frozen
class MemoryStatistics:
    """Statistics as reported by JAX's `memory_analysis()`, in bytes, or None for unknown values."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int | None
    host_argument_size_in_bytes: int
    host_output_size_in_bytes: int
    host_alias_size_in_bytes: int
    host_temp_size_in_bytes: int
    peak_memory_in_bytes: int | None
    generated_code_size_in_bytes: int | None = None


def static_bytes(assignment: Assignment, memory_space: int) -> int:
    """Returns the bytes of parameters, constants and results in a memory space, which are live throughout."""
    return sum(a.bytes for a in assignment.allocations if a.memory_space == memory_space and a.is_static)


def heap_bytes(assignment: Assignment, memory_space: int) -> int:
    """Returns the bytes allocated for temporaries in a memory space, including fragmentation."""
    return sum(a.bytes for a in assignment.allocations if a.memory_space == memory_space and a.is_temporary)


def live_in(allocation: Allocation, moments: int) -> list[int]:
    """Returns the live bytes of an allocation at each time. Values in the same slice count once."""
    ranges: dict[tuple[int, int], list[tuple[int, int]]] = {}
    begun = _begun(allocation)
    for value, offset, size in allocation.slices:
        if value.live_range is not None and size:
            first, last = value.live_range
            if first < last and _is_inside(begun.get(last, ()), offset, size):
                last -= 1
            ranges.setdefault((offset, size), []).append((first, last))
    change = [0] * (moments + 1)
    for (_, size), rows in ranges.items():
        rows.sort()
        first, last = rows[0]
        for start, stop in rows[1:]:
            if start > last + 1:
                change[min(first, moments)] += size
                change[min(last + 1, moments)] -= size
                first = start
            last = max(last, stop)
        change[min(first, moments)] += size
        change[min(last + 1, moments)] -= size
    return list(itertools.accumulate(change[:moments]))


def live_bytes(assignment: Assignment, allocation: Allocation) -> list[int]:
    """Returns `live_in` for an allocation of an assignment, cached."""
    known = assignment._live_bytes
    if allocation not in known:
        known[allocation] = live_in(allocation, len(assignment.schedule))
    return known[allocation]


def _begun(allocation: Allocation) -> dict[int, list[tuple[int, int]]]:
    """Places by the moment at which something is made there, in the order of their offsets."""
    found: dict[int, list[tuple[int, int]]] = {}
    for value, offset, size in allocation.slices:
        if value.live_range is not None and size:
            found.setdefault(value.live_range[0], []).append((offset, size))
    for places in found.values():
        places.sort()
    return found


def _is_inside(places: Sequence[tuple[int, int]], offset: int, size: int) -> bool:
    """True if one of the places, which do not overlap, is larger than this one and holds it."""
    number = bisect_right(places, (offset, 1 << 62)) - 1
    return number >= 0 and places[number][1] > size and offset + size <= places[number][0] + places[number][1]


def timeline(assignment: Assignment, memory_space: int) -> list[int]:
    """Returns the live bytes of a memory space at each time, including static allocations. Cached."""
    known = assignment._timelines.get(memory_space)
    if known is not None:
        return known
    total = [static_bytes(assignment, memory_space)] * len(assignment.schedule)
    for allocation in assignment.allocations:
        if allocation.memory_space == memory_space and allocation.is_temporary:
            total = list(map(operator.add, total, live_bytes(assignment, allocation)))
    assignment._timelines[memory_space] = total
    return total


def peak(assignment: Assignment, memory_space: int) -> Peak:
    """Returns the first time with the most live bytes in a memory space. Raises TypeError unless that is a number."""
    if not isinstance(memory_space, int):
        raise TypeError(f"a memory space is a number, 0 for main memory, not {memory_space!r}")
    line = timeline(assignment, memory_space)
    if not line:
        return Peak(static_bytes(assignment, memory_space), 0, None, ())
    most = max(line)
    time = line.index(most)
    return Peak(most, time, assignment.schedule[time], live_at(assignment, memory_space, time))


def held_at_peak(assignment: Assignment) -> dict[Value, int]:
    """Returns the bytes of main memory allocated at its peak, by value: of values that share memory, the one written
    first.

    A loop's state is attributed to the values that enter the loop, and static memory to the first of its largest
    values.
    """
    time = assignment.peak().time
    shared = assignment.shared_buffers
    found: dict[Value, int] = {}
    for allocation in assignment.allocations:
        if allocation.memory_space or allocation.is_thread_local:
            continue
        if allocation.is_static:
            most = max((piece.bytes for piece in allocation.slices), default=0)
            largest = [piece.value for piece in allocation.slices if piece.bytes == most]
            if largest:
                value = min(largest, key=_beginning)
                found[value] = found.get(value, 0) + allocation.bytes
            continue
        places: dict[int, tuple[int, Value]] = {}
        for value, offset, size in allocation.slices:
            if value.lives_at(time) and size > places.get(offset, (0, value))[0]:
                places[offset] = size, value
        for size, value in places.values():
            first = min(shared.get(value, (value,)), key=_beginning)
            found[first] = found.get(first, 0) + size
    return found


def _beginning(value: Value) -> tuple[bool, int, int]:
    return value.is_phi, value.live_range[0] if value.live_range is not None else -1, value.number


def live_at(assignment: Assignment, memory_space: int, time: int) -> tuple[Value, ...]:
    """Returns the values of a memory space that are live at a time."""
    return tuple(
        value
        for value in assignment.values
        if value.live_range is not None
        and value.memory_space == memory_space
        and value.live_range[0] <= time <= value.live_range[1]
    )


# ---- what XLA says


def xla_peak(assignment: Assignment) -> int | None:
    """Returns XLA's peak (`ComputePeakMemory`): the largest value of each static allocation plus the peak of heap
    events.

    Returns None for an assignment that was read from files.
    """
    platform = assignment.platform
    if not assignment.is_computed or platform is None:
        return None
    base = 0
    for allocation in assignment.allocations:
        if allocation.is_static:
            base += max((piece.value.bytes or 0 for piece in allocation.slices), default=0)
    if not platform.keeps_traces:
        return base
    most = now = base
    for heap in assignment.heaps:
        for change in _changes(heap.event_rows):
            now += change
            most = max(most, now)
    return most


def _changes(events: Sequence[EventRow]) -> list[int]:
    """By how many bytes each event changes what lives; a place counts the value that was put there first."""
    users: dict[Value, int] = {}
    root_of: dict[Value, Value] = {}
    found = []
    for kind, value, other in events:
        if kind == "alloc":
            users[value] = users.get(value, 0) + 1
            found.append((value.bytes or 0) if users[value] == 1 else 0)
        elif kind == "share":
            root = other if other is not None else value
            while root in root_of:
                root = root_of[root]
            root_of[value] = root
            users[root] = users.get(root, 0) + 1
            found.append((root.bytes or 0) if users[root] == 1 else 0)
        else:
            root = root_of.pop(value, value)
            users[root] = users.get(root, 0) - 1
            found.append(-(root.bytes or 0) if users[root] == 0 else 0)
    return found


def run_bytes(assignment: Assignment) -> int:
    """Returns the bytes of a run by JAX's statistics: arguments, results without aliased ones, and known temporaries."""
    sums, _ = _by_use(assignment)
    temporary = sums["temp"] if _knows_temporaries(assignment) else 0
    return sums["argument"] + sums["output"] - sums["alias"] + temporary


def statistics(assignment: Assignment) -> MemoryStatistics:
    """Returns allocated bytes by use: arguments, outputs, aliases, temporaries (`CompiledMemoryStats`)."""
    sums, host = _by_use(assignment)
    return MemoryStatistics(
        argument_size_in_bytes=sums["argument"],
        output_size_in_bytes=sums["output"],
        alias_size_in_bytes=sums["alias"],
        temp_size_in_bytes=sums["temp"] if _knows_temporaries(assignment) else None,
        host_argument_size_in_bytes=host["argument"],
        host_output_size_in_bytes=host["output"],
        host_alias_size_in_bytes=host["alias"],
        host_temp_size_in_bytes=host["temp"],
        peak_memory_in_bytes=assignment.xla_peak,
    )


def _knows_temporaries(assignment: Assignment) -> bool:
    return assignment.platform is None or assignment.platform.knows_temporaries


def _by_use(assignment: Assignment) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes of the allocations by their use: those of the device, and those of the host."""
    sums = dict.fromkeys(("argument", "output", "alias", "temp"), 0)
    host = dict(sums)
    for allocation in assignment.allocations:
        into = host if allocation.memory_space == HOST else sums
        if allocation.is_parameter:
            into["argument"] += allocation.bytes
            if allocation.is_aliased:
                into["alias"] += allocation.bytes
        if allocation.maybe_live_out:
            into["output"] += allocation.bytes
        if allocation.is_temporary:
            into["temp"] += allocation.bytes
    return sums, host
