"""Placement of temporaries: the events of one heap, and the placement algorithms (`HeapSimulator`)."""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory import slots
from hlotext.memory.aliases import Buffer
from hlotext.memory.dataflow import Dataflow
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.free_space import FreeSpace
from hlotext.memory.platforms import rounded_up
from hlotext.memory.sharing import Sharing
from hlotext.memory.value_sets import Values
from hlotext.memory.values import Value

EventKind = Literal["alloc", "free", "share"]


class HeapEvent(NamedTuple):
    """An event of a heap, as in XLA's heap trace."""

    kind: EventKind
    value: Value
    shared_with: Value | None = None


EventRow = tuple[EventKind, Value, Value | None]
"""Fields of a `HeapEvent`, which is made when somebody asks for it."""


class Interval:
    """The lifetime of one value in a heap, in ticks. Each event on a value that is not empty is a tick."""

    __slots__ = ("members", "pieces", "size", "start", "stop", "value")

    def __init__(self, value: Value, size: int, start: int) -> None:
        self.value = value
        self.size = size
        self.start = start
        self.stop = -1
        self.members: list[Interval] = []
        """The other values at the same place, in the order in which they came; on the first value alone."""
        self.pieces: Sequence[Interval] = ()
        """Earlier contents of this slot, in order, each with its offset from the start of the whole."""


@attrs.frozen(eq=False)
class HeapBuffers:
    """The buffers of a module by number, with their sizes."""

    members: Sequence[Buffer]
    sizes: Sequence[int]
    """Bytes of the largest value of each."""
    number_of: Mapping[Value, int]


@attrs.frozen(eq=False)
class Simulation:
    """Events of a heap, before offsets are assigned: allocations, frees and sharing."""

    event_rows: Sequence[EventRow]
    intervals: Sequence[Interval]
    """One for each place: its first value, with the others as members."""
    empty: Sequence[Value]
    """Values without bytes, at offset 0."""
    ticks: int

    @property
    def events(self) -> tuple[HeapEvent, ...]:
        return tuple(map(HeapEvent._make, self.event_rows))


@attrs.frozen(eq=False)
class HeapResult:
    """Size of a heap and offsets of its values."""

    bytes: int
    chunks: Mapping[Value, tuple[int, int]]
    """Offset and bytes of the chunk of each value: the largest of what shares it."""


def simulate(values: Sequence[Value], buffers: HeapBuffers, flow: Dataflow, sharing: Sharing) -> Simulation:
    """Simulates a heap over the schedule: at each time, values are defined, in order of (start, end, number), then
    ended ones freed.

    A value shares the chunk of its buffer. A value alone in its buffer may take over the chunk of an operand that ends
    at that time and is alone in its buffer, if its instruction may overwrite the operand.
    """
    rows = sorted((v.live_range[0], v.live_range[1], v.number, v) for v in values if v.live_range is not None)
    ends: dict[int, dict[Value, None]] = {}
    for _, last, _, value in rows:
        ends.setdefault(last, {})[value] = None
    events: list[EventRow] = []
    roots: list[Interval] = []
    empty: list[Value] = []
    interval_of: dict[Value, Interval] = {}
    root_of: dict[Value, Interval] = {}
    first_of: dict[int, Value] = {}
    buffer_of, sizes, members = buffers.number_of, buffers.sizes, buffers.members
    tick = 0

    def release(value: Value) -> None:
        nonlocal tick
        events.append(("free", value, None))
        interval = interval_of.get(value)
        if interval is not None:
            interval.stop = tick
            tick += 1

    def share(value: Value, other: Value) -> None:
        nonlocal tick
        events.append(("share", value, other))
        root = root_of.get(other)
        size = max(sizes[buffer_of[value]], root.size if root is not None else 0)
        if root is None or not size:
            empty.append(value)
            return
        interval = interval_of[value] = Interval(value, size, tick)
        tick += 1
        root.members.append(interval)
        root.size = max(root.size, size)
        root_of[value] = root

    at = flow.at
    number = 0
    asked: Instruction | None = None
    ending: list[Value] = []
    moments = sorted({*(row[0] for row in rows), *ends})
    for moment in moments:
        freed = ends.get(moment, {})
        while number < len(rows) and rows[number][0] == moment:
            value = rows[number][3]
            number += 1
            buffer = buffer_of[value]
            if (first := first_of.get(buffer)) is not None:
                share(value, first)
                continue
            over = None
            user = value.instruction
            if len(members[buffer]) == 1 and freed and user is not None and user.opcode != "copy":
                if user is not asked:
                    # All results of one instruction ask for the same operands, one after the other.
                    asked, ending = user, _ending(user, at, freed, buffers)
                for place, other in enumerate(ending):
                    source = other.instruction
                    if source is not None and sharing.may_share(source, other.index, user, value.index):
                        over = other
                        del ending[place]
                        break
            if over is not None:
                release(over)
                del freed[over]
                share(value, over)
                continue
            events.append(("alloc", value, None))
            first_of[buffer] = value
            size = sizes[buffer]
            if not size:
                empty.append(value)
                continue
            interval = interval_of[value] = root_of[value] = Interval(value, size, tick)
            tick += 1
            roots.append(interval)
        for value in freed:
            release(value)
    return Simulation(events, roots, empty, tick)


def _ending(
    user: Instruction, at: Mapping[Instruction, Values], freed: Mapping[Value, None], buffers: HeapBuffers
) -> list[Value]:
    """The values of an instruction's operands that end at its moment, alone in their buffers, each once."""
    operands = user.operands
    taken = set(operands)
    found: dict[Value, None] = {}
    for operand in operands:
        value = at[operand][0]
        if value is None or value not in freed or value.instruction not in taken:
            continue
        if len(buffers.members[buffers.number_of[value]]) == 1:
            found[value] = None
    return list(found)


def place_by_size(simulation: Simulation, alignment: int) -> HeapResult:
    """Assigns offsets by best fit, largest first (`SPATIAL`) and longest first (`TEMPORAL`), and returns the smaller
    heap.
    """
    order = sorted(simulation.intervals, key=_by_size)
    return _best_of_two(order, _least(simulation, alignment), _placer(simulation, alignment))[1]


def _best_of_two(by_size: list[Interval], least: int, place: _Place) -> tuple[HeapResult, HeapResult]:
    """The result of the order by size, and the better one of this and the order by length."""
    spatial = place(by_size, None)
    assert isinstance(spatial, HeapResult)
    if spatial.bytes <= least:
        return spatial, spatial
    temporal = place(sorted(by_size, key=_by_length), spatial.bytes)
    return spatial, temporal if isinstance(temporal, HeapResult) else spatial


def place_repaired(simulation: Simulation, alignment: int) -> HeapResult:
    """Assigns offsets by `place_by_size`, then repeatedly with the value that exceeded the best result placed first.

    For memory that a compiler filled by a search of its own, which comes close to the maximum of live bytes.
    """
    place, least = _placer(simulation, alignment), _least(simulation, alignment)
    order = sorted(simulation.intervals, key=_by_size)
    spatial, best = _best_of_two(order, least, place)
    tries = min(_REPAIRS, _MOST_PLACED // len(order)) if order else 0
    if best.bytes <= least or not tries:
        return best
    # In the order by size the first that does not fit below the best is known.
    found: HeapResult | Interval = next(one for one in order if sum(spatial.chunks[one.value]) >= best.bytes)
    for number in range(tries):
        if number:
            found = place(order, best.bytes)
        if isinstance(found, HeapResult):
            best = found
            if best.bytes <= least:
                break
        else:
            order.remove(found)
            order.insert(0, found)
    return best


def side_by_side(simulation: Simulation, alignment: int) -> HeapResult:
    """Gives each value memory of its own, for queries of live bytes only: offsets and the total are meaningless.

    Uses `place_by_size` if the total would exceed any memory.
    """
    chunks: dict[Value, tuple[int, int]] = dict.fromkeys(simulation.empty, (0, 0))
    end = 0
    for interval in simulation.intervals:
        for each in (interval, *interval.members):
            chunks[each.value] = end, interval.size
        end += interval.size
    return HeapResult(end, chunks) if end <= _END else place_by_size(simulation, alignment)


_Place = Callable[[Sequence["Interval"], int | None], "HeapResult | Interval"]
"""Places intervals in an order; or returns the first one that reaches the limit."""


def _placer(simulation: Simulation, alignment: int) -> _Place:
    """A function that places the intervals of a simulation, for many orders of them."""
    intervals = simulation.intervals
    taken = [rounded_up(interval.size, alignment) for interval in intervals]
    if len(intervals) > slots.MOST or sum(taken) > _END or any(i.pieces for i in intervals):
        return lambda order, limit: _placed(simulation, alignment, order, limit)
    number_of = {interval: number for number, interval in enumerate(intervals)}
    known = slots.Slots([_times(i) for i in intervals], [i.size for i in intervals], taken)

    def place(order: Sequence[Interval], limit: int | None) -> HeapResult | Interval:
        found = known.place([number_of[interval] for interval in order], limit)
        if isinstance(found, int):
            return intervals[found]
        heap, offsets = found
        chunks: dict[Value, tuple[int, int]] = dict.fromkeys(simulation.empty, (0, 0))
        for interval in order:
            chunk = chunks[interval.value] = offsets[number_of[interval]], interval.size
            for member in interval.members:
                chunks[member.value] = chunk
        return HeapResult(heap, chunks)

    return place


def _times(interval: Interval) -> list[tuple[int, int]]:
    """The times at which a place is taken: what one takes over from the other without a tick between is one time."""
    members = interval.members
    if not members:
        return [(interval.start, interval.stop)]
    lives = sorted([(interval.start, interval.stop), *((m.start, m.stop) for m in members)])
    found = [lives[0]]
    for start, stop in lives[1:]:
        first, last = found[-1]
        if start <= last + 1:
            found[-1] = first, max(last, stop)
        else:
            found.append((start, stop))
    return found


_REPAIRS = 64
"""Maximum number of repeated placements."""
_MOST_PLACED = 10_000
"""Places that these tries may ask for together."""


def _least(simulation: Simulation, alignment: int) -> int:
    """Bytes that no placement can do without: most that live at once, but for the padding behind the last of them."""
    change = [0] * (simulation.ticks + 1)
    padding = 0
    for interval in simulation.intervals:
        size = rounded_up(interval.size, alignment)
        padding = max(padding, size - interval.size)
        for start, stop in _times(interval):
            change[start] += size
            change[stop] -= size
        for piece in interval.pieces:
            change[piece.start] += piece.size
            change[piece.stop] -= piece.size
    return max(itertools.accumulate(change)) - padding


def _by_size(interval: Interval) -> tuple[int, int, int]:
    return -interval.size, interval.start - interval.stop, interval.value.number


def _by_length(interval: Interval) -> tuple[int, int, int]:
    start, stop = _life(interval)
    return start - stop, -interval.size, interval.value.number


def _life(interval: Interval) -> tuple[int, int]:
    """First and last tick of all that share a place."""
    members = interval.members
    if not members:
        return interval.start, interval.stop
    return min(interval.start, *(m.start for m in members)), max(interval.stop, *(m.stop for m in members))


def _placed(
    simulation: Simulation, alignment: int, order: Sequence[Interval], limit: int | None
) -> HeapResult | Interval:
    """Places everything in an order; or the first one that reaches the limit."""
    occupancy = FreeSpace(simulation.ticks)
    chunks: dict[Value, tuple[int, int]] = dict.fromkeys(simulation.empty, (0, 0))
    heap = 0
    for interval in order:
        size = interval.size
        times = _times(interval)
        pieces = _pieces(interval)
        offset = (
            occupancy.best_fit(times, size) if not pieces else occupancy.stair([(times, 0, size), *pieces])
        )
        heap = max(heap, offset + size)
        if limit is not None and heap >= limit:
            return interval
        end = offset + rounded_up(size, alignment)
        if end > _END:
            raise MemoryModelError(f"{size:,} bytes exceed any memory")
        for first, last in times:
            occupancy.reserve(first, last, offset, end)
        for piece, (lives, below, part) in zip(interval.pieces, pieces, strict=True):
            occupancy.reserve(*lives[0], offset + below, offset + below + part)
            chunks[piece.value] = offset + below, part
        chunks[interval.value] = offset, size
        for member in interval.members:
            chunks[member.value] = offset, size
    return HeapResult(heap, chunks)


def _pieces(interval: Interval) -> list[tuple[list[tuple[int, int]], int, int]]:
    """When each piece lives, where it lies in the whole, and its bytes."""
    found = []
    offset = 0
    for piece in interval.pieces:
        found.append(([(piece.start, piece.stop)], offset, piece.size))
        offset += piece.size
    return found


def place_by_time(simulation: Simulation, alignment: int) -> HeapResult:
    """Assigns offsets in order of start times, each to the smallest free chunk that fits; freed chunks merge
    (`FAST_MERGE`).

    Padding before an aligned offset belongs to the chunk.
    """
    chunks: dict[Value, tuple[int, int]] = dict.fromkeys(simulation.empty, (0, 0))
    free = _FreeChunks(alignment)
    waiting: list[tuple[int, int, int]] = []
    heap = 0

    def key(interval: Interval) -> tuple[int, int, int]:
        return _life(interval)[0], -interval.size, interval.value.number

    for interval in sorted(simulation.intervals, key=key):
        start, stop = _life(interval)
        size = interval.size
        while waiting and waiting[0][0] <= start:
            _, begin, end = heapq.heappop(waiting)
            free.give_back(begin, end)
        begin, offset = free.take(size)
        heapq.heappush(waiting, (stop, begin, offset + size))
        heap = max(heap, offset + size)
        chunks[interval.value] = offset, size
        for member in interval.members:
            chunks[member.value] = offset, size
    return HeapResult(heap, chunks)


_END = 1 << 62
"""Bytes of an address space that has no end."""


class _FreeChunks:
    """Free stretches of an address space without end (`FreeChunksManager`)."""

    def __init__(self, alignment: int) -> None:
        self._alignment = alignment
        self._by_size: list[tuple[int, int]] = []
        self._end_of: dict[int, int] = {}
        self._begin_of: dict[int, int] = {}
        self._add(0, _END)

    def _size(self, begin: int, end: int) -> int:
        """Bytes from the first aligned offset on."""
        return end - -(-begin // self._alignment) * self._alignment

    def _add(self, begin: int, end: int) -> None:
        insort(self._by_size, (self._size(begin, end), begin))
        self._end_of[begin], self._begin_of[end] = end, begin

    def _remove(self, begin: int, end: int) -> None:
        del self._by_size[bisect_left(self._by_size, (self._size(begin, end), begin))]
        del self._end_of[begin], self._begin_of[end]

    def take(self, size: int) -> tuple[int, int]:
        """Where the chunk begins that is taken, and the aligned offset in it."""
        place = bisect_left(self._by_size, (size, -1))
        if place == len(self._by_size):
            raise MemoryModelError(f"{size:,} bytes exceed any memory")
        _, begin = self._by_size[place]
        end = self._end_of[begin]
        offset = -(-begin // self._alignment) * self._alignment
        self._remove(begin, end)
        if offset + size < end:
            self._add(offset + size, end)
        return begin, offset

    def give_back(self, begin: int, end: int) -> None:
        above = self._end_of.get(end)
        if above is not None:
            self._remove(end, above)
            end = above
        below = self._begin_of.get(begin)
        if below is not None:
            self._remove(below, begin)
            begin = below
        self._add(begin, end)
