"""Live ranges of values on the flattened schedule of the whole module (`HloLiveRange`)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory.aliases import Buffer
from hlotext.memory.dataflow import Dataflow
from hlotext.memory.schedule import Schedule
from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.values import Value


@attrs.frozen(eq=False)
class LiveRanges:
    """Module-level results of `find_live_ranges`; the live ranges themselves are in `Value.live_range`."""

    ends: Mapping[Value, tuple[Instruction, ShapeIndex]]
    """The position that determines the end of a value's live range, if it is not the definition.

    Used for sharing with a user (`LiveRangeBounds::end_position`).
    """

    def end_of(self, value: Value) -> tuple[Instruction | None, ShapeIndex]:
        """Returns the position of a value that ends its live range."""
        return self.ends.get(value, (value.instruction, value.index))


def find_live_ranges(
    flow: Dataflow, schedule: Schedule, buffers: Iterable[Buffer], *, async_results_begin_late: bool = False
) -> LiveRanges:
    """Sets the `live_range` of every value on the schedule.

    A value is live from its definition (a parameter from the start of its computation) to its last position or use; a
    root to the end of its computation, and an entry parameter without an aliased output to the end of the module.
    Values of one buffer follow each other without overlap.

    With `async_results_begin_late`, as in XLA since 2026-09-18, the result of an asynchronous body starts at its
    async-start, rather than at the earlier instruction of the body, and ends at the async-done, so that a user of the
    result may overwrite it.
    """
    times, spans, end_of_all = schedule.times, schedule.spans, schedule.end
    ends: dict[Value, tuple[Instruction, ShapeIndex]] = {}
    module = flow.module
    entry = module.entry
    donated = set(flow.aliases.values())
    root_ends = {computation.root: span[1] for computation, span in spans.items()}
    last_of_async = {
        computation: max((times[i] for i in _chain(start) if i in times), default=-1)
        for computation, start in schedule.async_bodies.items()
    }
    # A loop reads its first state when its body starts; a call reads nothing itself.
    read_at = dict(times)
    for callers in flow.callers.values():
        for caller in callers:
            if caller.opcode == "while":
                parameter = caller.called_computations[0].parameters[0]
                read_at[caller] = times.get(parameter, -1)
            elif caller.opcode == "call":
                read_at[caller] = -1
    position_time = {**times, **root_ends}
    for value in flow.values:
        instruction = value.instruction
        own = times.get(instruction) if instruction is not None else None
        if instruction is None or own is None:
            continue
        is_parameter = instruction._head.opcode == "parameter"
        start, last = own, root_ends.get(instruction, own)
        computation = instruction._computation
        if is_parameter and computation is not None:
            start = spans[computation][0]
        floor = last
        if last_of_async and computation in last_of_async:
            floor = max(last, last_of_async[computation])
            if async_results_begin_late and computation.root is instruction:
                start = _found_first(value, schedule.async_bodies[computation], times, start)
            else:
                last = floor
        flat = value._positions
        for place in range(0, len(flat), 2):
            time = position_time.get(flat[place], -1)  # type: ignore[arg-type]
            if time > last:
                last = time
                ends[value] = flat[place], flat[place + 1]  # type: ignore[assignment]
        if last < floor:
            last = floor
        if (
            is_parameter
            and computation is entry
            and (instruction.parameter_number, value.index) not in donated
        ):
            last = end_of_all
        else:
            uses = value._uses
            for user in uses[::3] if len(uses) > 3 else uses[:1]:
                time = read_at.get(user, -1)  # type: ignore[arg-type]
                if time > last:
                    last = time
        value.live_range = start, last
    for buffer in buffers:
        if len(buffer) > 1:
            _follow_each_other(buffer)
    return LiveRanges(ends)


def _follow_each_other(buffer: Sequence[Value]) -> None:
    """Values of one buffer in turn: each ends where the next begins, and the last takes the latest end."""
    rows = sorted((value.live_range, value.number, value) for value in buffer if value.live_range is not None)
    for (_, _, first), (_, _, second) in itertools.pairwise(rows):
        assert first.live_range is not None
        assert second.live_range is not None
        second.live_range = second.live_range[0], max(first.live_range[1], second.live_range[1])
        first.live_range = first.live_range[0], min(first.live_range[1], second.live_range[0])


def _found_first(value: Value, start: Instruction, times: Mapping[Instruction, int], own: int) -> int:
    """The moment of the first of an asynchronous operation that holds the value: its start, or the update that binds it."""
    holders = set(value.flat_positions()[::2])
    first = next((i for i in start.async_chain if i in holders), start)
    return times.get(first, own)


def _chain(start: Instruction) -> tuple[Instruction, ...]:
    """Chain of an asynchronous operation, up to its done."""
    return start.async_chain[-1:]
