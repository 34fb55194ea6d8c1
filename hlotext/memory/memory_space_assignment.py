"""Contents of the fast memory that TPU's memory space assignment fills before buffers are assigned.

Where it puts a value is its own search and not in the text; what lives when is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import attrs

from hlotext.ir.caches import text_cache
from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory.dataflow import Dataflow
from hlotext.memory.heap import EventRow, Interval, Simulation
from hlotext.memory.schedule import Schedule
from hlotext.memory.values import Value

_JOINS_SLICES = "ConcatBitcast"
"""The custom call that makes one array of the slices of a prefetch; it copies nothing."""


def trace_of_fast_space(values: Iterable[Value], flow: Dataflow, schedule: Schedule) -> list[EventRow]:
    """Returns the heap events of fast memory as in XLA's trace: each value from its definition to its last use.
    Inferred.

    Unused values have no events. A value last used by a conditional is live until the branches start, and in each
    branch until its last use there.
    """
    rows: list[tuple[int, int, int, Value]] = []
    for value in values:
        instruction = value.instruction
        if value.live_range is None or instruction is None or is_joined(instruction):
            continue
        for start, stop in stretches(value, flow, schedule):
            rows.append((start, 0, value.number, value))
            rows.append((stop, 1, value.number, value))
    rows.sort(key=lambda row: row[:3])
    return [("free" if is_free else "alloc", value, None) for _, is_free, _, value in rows]


def with_slices_in_place(simulation: Simulation, flow: Dataflow) -> Simulation:
    """Returns the simulation with the slices of each prefetch as parts of the array that they are joined to.

    Joining copies nothing: the slices are contiguous, each live from its own start, in the memory of the array.
    """
    at = {interval.value: interval for interval in simulation.intervals}
    pieces: set[Interval] = set()
    for value, interval in at.items():
        if value.instruction is None or not is_joined(value.instruction):
            continue
        slices = [at.get(found) for o in value.instruction.operands if (found := flow.at[o][0]) is not None]
        own = [each for each in slices if each is not None and not each.members and each not in pieces]
        if (
            len(set(own)) == len(value.instruction.operands)
            and sum(each.size for each in own) <= interval.size
        ):
            pieces.update(own)
            interval.pieces = own
            for each in own:
                each.stop = interval.start
    kept = [interval for interval in simulation.intervals if interval not in pieces]
    return attrs.evolve(simulation, intervals=kept)


def with_results_over_operands(simulation: Simulation, flow: Dataflow) -> Simulation:
    """Returns the simulation with results in the memory of operands that they overwrite according to the backend
    config.
    """
    at = {interval.value: interval for interval in simulation.intervals}
    over: dict[Interval, Interval] = {}
    for value, interval in at.items():
        instruction = value.instruction
        for place, index in written_over(instruction) if instruction is not None else ():
            if index != value.index or instruction is None or interval.pieces:
                continue
            operand = flow.at[instruction.operands[place]][0]
            below = at.get(operand) if operand is not None else None
            if below is None or operand is None or below is interval or below.size < interval.size:
                continue
            lives, ends = value.live_range, operand.live_range
            if lives is not None and ends is not None and ends[1] == lives[0]:
                over[interval] = below
                break
    for interval in sorted(over, key=lambda each: each.start):
        below = over[interval]
        while below in over:  # the ways were made shorter by those before
            below = over[below]
        over[interval] = below
        below.members.extend((interval, *interval.members))
    kept = [interval for interval in simulation.intervals if interval not in over]
    return attrs.evolve(simulation, intervals=kept)


_ALIASING = re.compile(r'"aliasing_operands":\{"lists":\[((?:\{"indices":\[[^\]]*\]\},?)*)\]')
_INDICES = re.compile(r'"indices":\["([0-9]{1,9})","([0-9]{1,9})"\]')


def written_over(instruction: Instruction) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yields the pairs of operand number and result index that share a buffer according to a fusion's backend config.

    The config numbers the leaves of the result after the operands. Inferred from the compiler's output.
    """
    if instruction._head.opcode != "fusion":
        return
    config = instruction.backend_config
    if config is None or instruction.shape is None:
        return
    pairs = _aliasing_operands(config.text)
    if not pairs or any(o.shape is None or not o.shape.is_array for o in instruction.operands):
        return
    leaves = [index for index, _ in instruction.shape.leaves()]
    count = len(instruction.operands)
    for place, number in pairs:
        if place < count and 0 <= number - count < len(leaves):
            yield place, leaves[number - count]


@text_cache(1 << 12)
def _aliasing_operands(config: str) -> tuple[tuple[int, int], ...]:
    """The pairs of a fusion's configuration, of which a module has few distinct ones."""
    found = _ALIASING.search(config)
    return tuple((int(a), int(b)) for a, b in _INDICES.findall(found[1])) if found is not None else ()


def is_joined(instruction: Instruction) -> bool:
    """Returns True if an instruction joins the slices of a prefetch into one array, which copies nothing."""
    return (
        instruction._head.opcode == "custom-call"
        and instruction._attributes.get("custom_call_target") == _JOINS_SLICES
    )


def _with_joined(value: Value, flow: Dataflow) -> list[Value]:
    """A value and, of a slice of a prefetch, the arrays that are joined of it without a copy."""
    found = [value]
    for one in found:
        for user in one.flat_uses()[::3]:
            if isinstance(user, Instruction) and user._head.opcode == "custom-call" and is_joined(user):
                joined = flow.at[user][0]
                if joined is not None and joined not in found:
                    found.append(joined)
    return found


def stretches(value: Value, flow: Dataflow, schedule: Schedule) -> list[tuple[int, int]]:
    """Returns the time intervals in which a value is live: until its last use, separately for each branch of a
    conditional.

    A slice of a prefetch is live as long as the whole array.
    """
    assert value.live_range is not None
    whole = _with_joined(value, flow)
    first, end = value.live_range[0], max(one.live_range[1] for one in whole if one.live_range is not None)
    times = schedule.times
    users = (user for one in whole for user in one.flat_uses()[::3] if isinstance(user, Instruction))
    read = [(times[user], user) for user in users if user in times and not is_joined(user)]
    if not read:
        return []
    last, user = max(reversed(read), key=_time)
    if user.opcode != "conditional" or last > end:
        return [(first, min(last, end))]
    read.sort(key=_time)
    spans = sorted(schedule.spans[branch] for branch in user.called_computations if branch in schedule.spans)
    found = [(first, spans[0][0])]
    for low, high in spans:
        inside = [time for time, _ in read if low <= time < high]
        if inside:
            found.append((low, inside[-1]))
    return found


def _time(row: tuple[int, Instruction]) -> int:
    return row[0]
