"""Assigns buffers to allocations (`BufferAssigner`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from hlotext.ir.nodes.computation import instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.layout import LayoutError
from hlotext.memory.aliases import Buffer
from hlotext.memory.allocations import Allocation, Slice, slices_of
from hlotext.memory.dataflow import Dataflow
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.heap import (
    EventRow,
    HeapBuffers,
    HeapEvent,
    HeapResult,
    place_by_size,
    place_by_time,
    place_repaired,
    side_by_side,
    simulate,
)
from hlotext.memory.live_ranges import LiveRanges
from hlotext.memory.memory_space_assignment import (
    trace_of_fast_space,
    with_results_over_operands,
    with_slices_in_place,
)
from hlotext.memory.platforms import SPARSE_CORE_TUPLES, Platform, rounded_up
from hlotext.memory.reuse import LiveIntervals, Owners, ReusableAllocations
from hlotext.memory.schedule import Schedule
from hlotext.memory.sharing import Sharing
from hlotext.memory.values import Range, Value


@attrs.frozen(eq=False)
class Heap:
    """One heap of temporaries: its memory space, size and events."""

    memory_space: int
    bytes: int
    event_rows: Sequence[EventRow]
    is_assigned_before: bool = False
    """True if filled by TPU's memory space assignment, whose offsets are not in the text."""

    @property
    def events(self) -> tuple[HeapEvent, ...]:
        """The events, as in XLA's heap trace."""
        return tuple(map(HeapEvent._make, self.event_rows))


@attrs.frozen(eq=False)
class Result:
    allocations: tuple[Allocation, ...]
    heaps: tuple[Heap, ...]
    """Heaps in order of placement."""

    @property
    def main_bytes(self) -> int:
        """Bytes of all allocations in main memory."""
        return sum(a.bytes for a in self.allocations if not a.memory_space and not a.is_thread_local)


class Opened:
    """An allocation that is being filled."""

    __slots__ = ("allocation", "held", "last", "slices", "timeline", "values")

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation
        self.slices: list[Slice] = []
        self.timeline = LiveIntervals()
        self.values: list[Value] = []
        self.held: set[Value] = set()
        """The same."""
        self.last = -1
        """The last moment of what it holds."""

    def hold(self, value: Value) -> None:
        """Adds a value, which must have a live range."""
        assert value.live_range is not None
        self.timeline.add(*value.live_range, len(self.values))
        self.last = max(self.last, value.live_range[1])
        self.values.append(value)
        self.held.add(value)

    @property
    def is_reusable(self) -> bool:
        a = self.allocation
        is_read_only = a.is_constant or (a.is_parameter and not a.is_aliased)
        return not (is_read_only or a.is_thread_local or a.is_tuple)


class Assigner:
    """Assigns the buffers of a module."""

    def __init__(
        self,
        flow: Dataflow,
        schedule: Schedule,
        buffers: Sequence[Buffer],
        ranges: LiveRanges,
        sharing: Sharing,
        platform: Platform,
        *,
        places_fast_memory: bool = True,
        places_heaps: bool = True,
    ) -> None:
        self._flow = flow
        self._schedule = schedule
        self._ranges = ranges
        self._sharing = sharing
        self._platform = platform
        self._places_fast_memory = places_fast_memory
        self._places_heaps = places_heaps
        self._open: list[Opened] = []
        self._of: dict[Value, Opened] = {}
        self._gaps: dict[int, ReusableAllocations] = {}
        self._callers_first = list(flow.module.computations)[::-1]
        self._heaps: list[Heap] = []
        _color(buffers, platform)
        set_bytes(flow.values, platform)
        number_of = {value: number for number, buffer in enumerate(buffers) for value in buffer}
        sizes = [max([value.bytes or 0 for value in buffer]) for buffer in buffers]
        self._buffers = HeapBuffers(buffers, sizes, number_of)
        root = flow.at[flow.module.entry.root]
        self._live_out = {number_of[value] for value in root if value is not None}
        self._top_of_result = root[0]
        self._donated = set(flow.aliases.values())

    def run(self) -> Result:
        """Assigns all buffers in XLA's order: global ones, heaps, thread-local ones; then combines temporary
        allocations.
        """
        global_numbers, local_numbers = self._by_kind()
        assigned_before = self._assign_fast_space(global_numbers)
        self._place_heaps(self.run_all([n for n in global_numbers if n not in assigned_before]))
        for number in self._sorted(local_numbers):
            self._assign_special(number, is_local=True)
        return Result(self._joined(), tuple(self._heaps))

    def run_all(self, numbers: Sequence[int]) -> list[int]:
        """Assigns the global buffers among these, and returns the numbers of those that are left to the heap."""
        return [
            number
            for number in self._sorted(numbers)
            if not self._assign_special(number, is_local=False) and not self._assign(number)
        ]

    # ---- the order

    def _by_kind(self) -> tuple[list[int], list[int]]:
        """Numbers of the buffers of scheduled computations, and of those that are applied to elements."""
        embedded = self._flow.embedded
        scheduled: list[int] = []
        local: list[int] = []
        for number, buffer in enumerate(self._buffers.members):
            instruction = buffer[0].instruction
            computation = instruction.computation if instruction is not None else None
            (local if computation in embedded else scheduled).append(number)
        return scheduled, local

    def _sorted(self, numbers: Sequence[int]) -> list[int]:
        """Size descending, what lives out first, then by the first definition, callers before callees."""
        members, sizes, live_out = self._buffers.members, self._buffers.sizes, self._live_out
        needed = {v.instruction.computation for n in numbers for v in members[n] if v.instruction is not None}
        place: dict[Instruction | None, int] = {}
        for computation in self._callers_first:
            if computation in needed:
                for instruction in instruction_post_order(computation):
                    place[instruction] = len(place)

        def key(number: int) -> tuple[int, bool, int, int]:
            first = min([place.get(value.instruction, -1) for value in members[number]])
            return -sizes[number], number not in live_out, first, number

        return sorted(numbers, key=key)

    # ---- one buffer

    def _new(self, number: int, size: int, **flags: bool | int | tuple[int, ...] | None) -> Opened:
        buffer = self._buffers.members[number]
        opened = Opened(Allocation(len(self._open), size, buffer[0].memory_space, **flags))  # type: ignore[arg-type]
        self._open.append(opened)
        self._put(opened, number, size)
        return opened

    def _put(self, opened: Opened, number: int, size: int) -> None:
        allocation = opened.allocation
        for value in self._buffers.members[number]:
            opened.slices.append(Slice(value, 0, size))
            self._note(opened, value)
        if number in self._live_out:
            allocation.maybe_live_out = True

    def _note(self, opened: Opened, value: Value) -> None:
        self._of[value] = opened
        if value is self._top_of_result:
            opened.allocation.is_output = True
        if value.live_range is not None and opened.is_reusable:
            opened.hold(value)

    def _assign_special(self, number: int, is_local: bool) -> bool:
        """Constants, entry parameters, what is thread-local and tuples have allocations of their own."""
        size = self._buffers.sizes[number]
        entry = self._flow.module.entry
        for value in self._buffers.members[number]:
            instruction = value.instruction
            if instruction is None:
                continue
            opcode = instruction._head.opcode
            if opcode == "constant":
                self._new(number, size, is_constant=True)
                return True
            if opcode == "parameter" and instruction.computation is entry:
                parameter = instruction.parameter_number
                is_aliased = (parameter, value.index) in self._donated
                opened = self._new(
                    number,
                    size,
                    is_parameter=True,
                    parameter_number=parameter,
                    parameter_index=value.index,
                    is_aliased=is_aliased,
                )
                if is_aliased:
                    self._fill(opened)
                    self._occupied(opened, number, is_new=True)
                return True
        if is_local:
            self._new(number, size, is_thread_local=True)
            return True
        if any(value.shape is not None and value.shape.is_tuple for value in self._buffers.members[number]):
            self._new(number, size, is_tuple=True)
            return True
        return False

    def _fill(self, opened: Opened) -> None:
        """Notes when an allocation is held, once it is known that it may be used again."""
        if not opened.values:
            for piece in opened.slices:
                if piece.value.live_range is not None:
                    opened.hold(piece.value)

    def _gaps_in(self, opened: Opened) -> ReusableAllocations:
        """When allocations of the same memory space are free."""
        return self._gaps.get(opened.allocation.memory_space) or self._gaps.setdefault(
            opened.allocation.memory_space, ReusableAllocations(self._schedule.end)
        )

    def _ranges_of(self, number: int) -> list[Range]:
        return [v.live_range for v in self._buffers.members[number] if v.live_range is not None]

    def _assign(self, number: int) -> bool:
        """Tries the operands' allocations, then all that may be used again; what lives out then gets its own.

        False for what waits for the heap.
        """
        members = self._buffers.members[number]
        for value in members:
            if value.index or (value.shape is not None and value.shape.is_tuple) or value.instruction is None:
                continue
            for operand in value.instruction.operands:
                given = self._flow.at[operand][0]
                opened = self._of.get(given) if given is not None else None
                if opened is not None and self._fits(opened, number):
                    self._take(opened, number)
                    return True
        for candidate in self._candidates(number):
            opened = self._open[candidate]
            if self._fits(opened, number):
                self._take(opened, number)
                return True
        if number not in self._live_out:
            return False
        self._occupied(self._new(number, self._buffers.sizes[number]), number, is_new=True)
        return True

    def _candidates(self, number: int) -> Iterator[int]:
        """Allocations made before that may have room for a buffer, in the order in which they are tried."""
        members = self._buffers.members[number]
        ranges = self._ranges_of(number)
        gaps = self._gaps.get(members[0].memory_space)
        if not ranges or gaps is None:
            return
        may_live_out = not any(map(self._platform.cannot_live_out, members))
        yield from gaps.candidates(*ranges[0], *self._neighbours(members), may_live_out=may_live_out)

    def _occupied(self, opened: Opened, number: int, *, is_new: bool) -> None:
        """Notes that a buffer was put into an allocation that may be used again."""
        allocation, ranges = opened.allocation, self._ranges_of(number)
        gaps = self._gaps_in(opened)
        if is_new:
            gaps.add(allocation.number, ranges, lives_out=allocation.maybe_live_out)
        else:
            gaps.occupy(allocation.number, ranges, lives_out=allocation.maybe_live_out)

    def _neighbours(self, members: Sequence[Value]) -> tuple[Owners, Owners]:
        """Allocations whose contents a buffer can directly follow, and those it can directly precede; None: any.

        Of a sort of several arrays each result goes at most over its own operand, of a reduction over none, so that not each
        is tried with each.
        """
        value, *others = members
        made, (operand, _) = value.instruction, self._ranges.end_of(value)
        if others or made is None or value.live_range is None:
            return None, None
        _, last = value.live_range
        before: Owners = None
        if _takes_several(made) and value.index and value.index[0] < len(made.operands):
            before = (
                self._numbers_of(self._flow.at[made.operands[value.index[0]]])
                if made.opcode == "sort"
                else ()
            )
        if operand is None:
            return before, None
        for user in filter(_takes_several, operand.users):
            first = self._flow.value_at(user, (0,))
            if first is not None and first.live_range is not None and first.live_range[0] == last:
                numbers = self._sharing.operand_numbers(user)[operand] if user.opcode == "sort" else ()
                return before, self._numbers_of(self._flow.value_at(user, (n,)) for n in numbers)
        return before, None

    def _numbers_of(self, values: Iterable[Value | None]) -> set[int]:
        opened = (self._of.get(value) for value in values if value is not None)
        return {one.allocation.number for one in opened if one is not None}

    def _take(self, opened: Opened, number: int) -> None:
        self._put(opened, number, self._buffers.sizes[number])
        self._occupied(opened, number, is_new=False)

    def _fits(self, opened: Opened, number: int) -> bool:
        """True if an allocation takes a buffer (`MaybeAssignBuffer`)."""
        allocation, members = opened.allocation, self._buffers.members[number]
        size = self._buffers.sizes[number]
        lives_out = number in self._live_out
        if (
            not opened.is_reusable
            or allocation.memory_space != members[0].memory_space
            or size > allocation.bytes
        ):
            return False
        if lives_out and allocation.bytes != size:
            return False
        stays = self._platform.cannot_live_out
        if allocation.maybe_live_out and any(map(stays, members)):
            return False
        if lives_out and any(map(stays, opened.values)):
            return False
        for value in members:
            if value.live_range is None:
                return False
            first, last = value.live_range
            for held_first, held_last, place in opened.timeline.meeting(first, last):
                held = opened.values[place]
                if last == held_first:
                    if not self._may_follow(held, value):
                        return False
                elif held_last == first:
                    if not self._may_follow(value, held):
                        return False
                else:
                    return False
            made = value.instruction
            # A copy is no neighbour of its source.
            sources = self._flow.at[made.operands[0]] if made is not None and made.opcode == "copy" else ()
            if any(one in opened.held for one in sources):
                return False
        return True

    def _may_follow(self, user: Value, held: Value) -> bool:
        """True if a value may lie where another ends at the moment of its definition."""
        instruction = user.instruction
        if instruction is None or instruction.opcode == "copy":
            return False
        operand, index = self._ranges.end_of(held)
        if operand is None or operand not in instruction.operands:
            return False
        return self._sharing.may_share(operand, index, instruction, user.index)

    # ---- heaps

    def _assign_fast_space(self, numbers: Iterable[int]) -> set[int]:
        """Allocation for what TPU's memory space assignment placed, made before all others. Its offsets are estimates."""
        space = self._platform.fast_space
        if space is None:
            return set()
        mine = [n for n in numbers if self._buffers.members[n][0].memory_space == space]
        values = [value for n in mine for value in self._buffers.members[n]]
        events = trace_of_fast_space(values, self._flow, self._schedule)
        if self._places_fast_memory:
            simulation = simulate(values, self._buffers, self._flow, self._sharing)
            simulation = with_results_over_operands(with_slices_in_place(simulation, self._flow), self._flow)
            place = place_repaired if self._places_heaps else side_by_side
            placement = place(simulation, self._platform.alignment(space))
        else:
            # What is made beside them asks whether they have an allocation.
            placement = HeapResult(0, dict.fromkeys(values, (0, 0)))
        self._add_heap(space, events, placement, True)
        return set(mine)

    def _place_heaps(self, waiting: Sequence[int]) -> None:
        by_space: dict[int, list[Value]] = {}
        for number in waiting:
            for value in self._buffers.members[number]:
                by_space.setdefault(value.memory_space, []).append(value)
        for space, values in sorted(by_space.items()):
            simulation = simulate(values, self._buffers, self._flow, self._sharing)
            place = place_by_time if space in self._platform.merged_spaces else place_by_size
            if not self._places_heaps:
                place = side_by_side
            placement = place(simulation, self._platform.alignment(space))
            self._add_heap(space, simulation.event_rows, placement, False)
            self._open[-1].allocation.is_size_estimated = self._is_estimated(space, placement)

    def _is_estimated(self, space: int, placement: HeapResult) -> bool:
        """True if XLA may need other bytes: where its heaps are not known to be these, and memory is used again."""
        certain = self._platform.certain_spaces
        if certain is None or self._flow.late_bound:
            return certain is not None
        if space in certain:
            return False
        sizes: dict[int, int] = {}
        for value, (_, size) in placement.chunks.items():
            number = self._buffers.number_of[value]
            sizes[number] = max(size, sizes.get(number, 0))
        unit = self._platform.alignment(space)
        return placement.bytes <= sum(rounded_up(size, unit) for size in sizes.values()) - unit

    def _add_heap(self, space: int, events: Sequence[EventRow], placement: HeapResult, before: bool) -> None:
        allocation = Allocation(len(self._open), placement.bytes, space, is_estimated=before, heaps=1)
        opened = Opened(allocation)
        self._open.append(opened)
        chunks, number_of = placement.chunks, self._buffers.number_of
        opened.slices += slices_of((value, *chunk) for value, chunk in chunks.items())
        self._of.update(dict.fromkeys(chunks, opened))
        if not self._live_out.isdisjoint(map(number_of.__getitem__, chunks)):
            allocation.maybe_live_out = True
        self._heaps.append(Heap(space, placement.bytes, events, before))

    # ---- the end

    def _joined(self) -> tuple[Allocation, ...]:
        """Temporaries of one memory space end to end (`CombineTempAllocations`), in the order that a partition leaves."""
        order = _partition(self._open)
        kept = [opened for opened in order if not opened.allocation.is_temporary]
        first_of: dict[int, Opened] = {}
        for opened in order[len(kept) :]:
            allocation = opened.allocation
            if allocation.is_estimated and not self._places_fast_memory:
                continue
            into = first_of.setdefault(allocation.memory_space, opened)
            if into is opened:
                kept.append(opened)
                continue
            base = rounded_up(into.allocation.bytes, self._platform.alignment(allocation.memory_space))
            into.allocation.bytes = base + allocation.bytes
            into.allocation.heaps += allocation.heaps
            into.allocation.is_size_estimated |= allocation.is_size_estimated
            into.allocation.is_tuple = False
            into.slices += slices_of((value, base + offset, size) for value, offset, size in opened.slices)
        for number, opened in enumerate(kept):
            opened.allocation.number = number
            opened.allocation.slices = tuple(sorted(opened.slices, key=lambda piece: piece.value.number))
        return tuple(opened.allocation for opened in kept)


def _partition(items: list[Opened]) -> list[Opened]:
    """Temporaries behind all others as `std::partition` leaves them: it swaps from both ends."""
    found = list(items)
    low, high = 0, len(found)
    while True:
        while low < high and not found[low].allocation.is_temporary:
            low += 1
        high -= 1
        while low < high and found[high].allocation.is_temporary:
            high -= 1
        if low >= high:
            return found
        found[low], found[high] = found[high], found[low]
        low += 1


def _color(buffers: Iterable[Buffer], platform: Platform) -> None:
    """Sets the memory space of every value: that of its shape, 0 for a tuple."""
    if platform.one_space_for_each_buffer:
        for buffer in buffers:
            spaces = [_space(value) for value in buffer]
            space = next((s for s in spaces if s), 0)
            for value in buffer:
                value.memory_space = space
        return
    for buffer in buffers:
        for value in buffer:
            value.memory_space = _space(value)
            if value.shape is not None and value.shape.is_tuple and _on_sparse_core(value):
                value.memory_space = SPARSE_CORE_TUPLES


def _space(value: Value) -> int:
    shape = value.shape
    return shape.layout.memory_space if shape is not None and shape.layout is not None else 0


def _on_sparse_core(value: Value) -> bool:
    computation = value.instruction.computation if value.instruction is not None else None
    return computation is not None and computation.execution_thread == "sparsecore"


def set_bytes(values: Iterable[Value], platform: Platform) -> None:
    """Sets the size of every value in bytes. Raises MemoryModelError for a shape of unknown size."""
    known: dict[tuple[object, int], int] = {}
    for value in values:
        shape = value.shape
        if shape is None:
            continue
        key = shape, value.memory_space
        size = known.get(key)
        if size is None:
            try:
                size = known[key] = platform.size_of(shape, value.memory_space)
            except (LayoutError, ValueError) as error:
                raise MemoryModelError(f"the size of {value.name} is unknown: {error}") from None
        value.bytes = size


def _takes_several(instruction: Instruction) -> bool:
    """True if it is a sort or a reduction of several arrays, which gives as many."""
    shape = instruction.shape
    return instruction.opcode in ("sort", "reduce") and shape is not None and shape.is_tuple
