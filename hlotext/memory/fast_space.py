"""What TPU's memory space assignment notes of the memory that it fills before buffers are assigned.

Where it puts a value is its own search and not in the text; what lives when is.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory.dataflow import Dataflow
from hlotext.memory.heap import Event
from hlotext.memory.schedule import Schedule
from hlotext.memory.values import Value

_JOINS_SLICES = "ConcatBitcast"
"""The custom call that makes one array of the slices of a prefetch; it copies nothing."""


def trace_of_fast_space(values: Iterable[Value], flow: Dataflow, schedule: Schedule) -> list[Event]:
    """The events as XLA's trace has them: each value from its definition to its last use. Inferred.

    A value that nothing uses has none. One that a conditional uses last lives until the branches begin, and in each
    branch to its last use there.
    """
    rows: list[tuple[int, int, int, Value]] = []
    for value in values:
        instruction = value.instruction
        if value.live_range is None or instruction is None or _is_joined(instruction):
            continue
        for start, stop in _stretches(value, flow, schedule):
            rows.append((start, 0, value.number, value))
            rows.append((stop, 1, value.number, value))
    rows.sort(key=lambda row: row[:3])
    return [Event("free" if is_free else "alloc", value) for _, is_free, _, value in rows]


def _is_joined(instruction: Instruction) -> bool:
    return (
        instruction.opcode == "custom-call"
        and instruction.attributes.get("custom_call_target") == _JOINS_SLICES
    )


def _users(value: Value, flow: Dataflow) -> Iterable[Instruction]:
    """What uses a value; of what is joined its users."""
    stack, seen = [value], {value}
    while stack:
        for user in stack.pop().flat_uses()[::3]:
            if isinstance(user, str | int | tuple):
                continue
            if _is_joined(user):
                joined = flow.at[user][0]
                if joined is not None and joined not in seen:
                    seen.add(joined)
                    stack.append(joined)
            else:
                yield user


def _stretches(value: Value, flow: Dataflow, schedule: Schedule) -> list[tuple[int, int]]:
    assert value.live_range is not None
    first, end = value.live_range
    times = schedule.times
    read = sorted(((times[user], user) for user in _users(value, flow) if user in times), key=_time)
    if not read:
        return []
    last, user = read[-1]
    if user.opcode != "conditional" or last > end:
        return [(first, min(last, end))]
    spans = sorted(schedule.spans[branch] for branch in user.called_computations if branch in schedule.spans)
    found = [(first, spans[0][0])]
    for low, high in spans:
        inside = [time for time, _ in read if low <= time < high]
        if inside:
            found.append((low, inside[-1]))
    return found


def _time(row: tuple[int, Instruction]) -> int:
    return row[0]
