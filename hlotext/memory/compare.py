"""Where two assignments of one module differ: what was read from XLA's files, and what was computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping

import attrs

from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.memory.allocations import Allocation
from hlotext.memory.assignment import Assignment
from hlotext.memory.values import Value, by_key

Key = tuple[str, tuple[int, ...], bool]


@attrs.frozen
class AssignmentDifference:
    """A difference between an assignment read from XLA's files and the computed one."""

    item: str
    """Kind of the compared item: `values`, `live range`, `offset`, `allocation` ..."""
    name: str
    """Name of the compared item: a value such as `fusion.3{0}`, or an allocation identified by its values."""
    read: str
    computed: str
    is_estimated: bool = False
    """True for offsets that cannot be derived from the module, which are expected to differ."""

    def __str__(self) -> str:
        return f"{self.item} of {self.name}: {self.read} in XLA's files, {self.computed} computed"


def differences(read: Assignment, computed: Assignment) -> tuple[AssignmentDifference, ...]:
    """Compares an assignment read from XLA's files with the computed one.

    Differences of values come before those of offsets. Ids of values and allocations are not compared, nor is the order
    of positions and uses; values are identified by name, index and whether they are phis. Module text that writes tuple
    elements as `BASE#I` does not show when XLA extracts them. In that case, times are counted without these
    instructions on both sides, and live ranges that end at one are compared by their start only.
    """
    return tuple(_differences(read, computed))


class _Moments:
    """Moments of a schedule without the elements that the text has no place for."""

    def __init__(self, assignment: Assignment) -> None:
        schedule = assignment.schedule
        self.kept = [place for place in schedule if isinstance(place, str) or place.form is not Form.COMPACT]
        self._is_plain = len(self.kept) == len(schedule)
        self._numbers: list[int | None] = []
        if not self._is_plain:
            number = 0
            for place in schedule:
                is_kept = isinstance(place, str) or place.form is not Form.COMPACT
                self._numbers.append(number if is_kept else None)
                number += is_kept
        self._ends = len(schedule), len(self.kept)

    def number(self, time: int) -> int | None:
        """The moment counted so; None for that of an element."""
        if self._is_plain:
            return time
        if time >= self._ends[0]:
            return time - self._ends[0] + self._ends[1]
        return self._numbers[time] if time >= 0 else time


def _lives(
    values: Mapping[Key, Value], others: Mapping[Key, Value], moments: _Moments, other: _Moments
) -> dict[str, str]:
    """The life of each value in words; what is not told on one of both sides is left open on both."""
    found = {}
    for key, value in values.items():
        mine = value.live_range
        theirs = others[key].live_range if key in others else None
        if mine is None:
            found[_shown(key, value)] = "none"
            continue
        ends = []
        for number in (0, 1):
            time = moments.number(mine[number])
            is_told = time is not None and (theirs is None or other.number(theirs[number]) is not None)
            ends.append(str(time) if is_told else "an element")
        found[_shown(key, value)] = "-".join(ends)
    return found


def _differences(read: Assignment, computed: Assignment) -> Iterator[AssignmentDifference]:
    placed = [_places(assignment) for assignment in (read, computed)]
    values = [
        _placed_values(assignment, places)
        for assignment, places in zip((read, computed), placed, strict=True)
    ]
    estimated = {a.memory_space for a in computed.allocations if a.is_estimated}
    first, second = values

    def is_estimated(key: Key) -> bool:
        value = second.get(key) or first.get(key)
        return value is not None and value.memory_space in estimated

    moments = [_Moments(assignment) for assignment in (read, computed)]
    yield from _of(
        "schedule",
        {str(time): _name(place) for time, place in enumerate(moments[0].kept)},
        {str(time): _name(place) for time, place in enumerate(moments[1].kept)},
    )
    if read.schedule:
        yield from _of(
            "live range",
            _lives(first, second, moments[0], moments[1]),
            _lives(second, first, moments[1], moments[0]),
        )
    for item, ask in _QUESTIONS.items():
        yield from _of(
            item,
            {_shown(key, value): ask(value) for key, value in first.items()},
            {_shown(key, value): ask(value) for key, value in second.items()},
        )
    for number, item in enumerate(("chunk", "offset")):
        rows = [
            {key: places[key][number] for key in mine} for mine, places in zip(values, placed, strict=True)
        ]
        for key in sorted(rows[0].keys() & rows[1].keys()):
            if rows[0][key] != rows[1][key]:
                shown = _shown(key, first[key])
                yield AssignmentDifference(
                    item, shown, str(rows[0][key]), str(rows[1][key]), is_estimated(key)
                )
    if read.allocations:
        yield from _allocations(read, computed, estimated)


def _name(place: Instruction | str) -> str:
    return place if isinstance(place, str) else place.name


def _places(assignment: Assignment) -> Mapping[Key, tuple[int, int]]:
    """Bytes of the chunk and offset of each value that has an allocation."""
    return {p.value.key: (p.bytes, p.offset) for a in assignment.allocations for p in a.slices}


def _placed_values(assignment: Assignment, places: Mapping[Key, tuple[int, int]]) -> Mapping[Key, Value]:
    return {key: value for key, value in by_key(assignment.values).items() if key in places}


def _shown(key: Key, value: Value) -> str:
    return str(value) if value.key == key else key[0]


def _positions(value: Value) -> str:
    return ", ".join(sorted(f"{_name(place)}{list(index)}" for place, index in value.positions))


def _uses(value: Value) -> str:
    return ", ".join(
        sorted(f"{u.name} operand {u.operand_number} {list(u.operand_index)}" for u in value.uses)
    )


_QUESTIONS: dict[str, Callable[[Value], str]] = {
    "values": lambda _: "there",
    "memory space": lambda value: str(value.memory_space),
    "positions": _positions,
    "uses": _uses,
}
"""Compared properties of a value."""


def _of(item: str, read: Mapping[str, str], computed: Mapping[str, str]) -> Iterator[AssignmentDifference]:
    for name in {**read, **computed}:
        first, second = read.get(name, "not there"), computed.get(name, "not there")
        if first != second:
            yield AssignmentDifference(item, name, first, second)


def _allocations(
    read: Assignment, computed: Assignment, estimated: set[int]
) -> Iterator[AssignmentDifference]:
    rows = [Counter(map(_allocation_key, assignment.allocations)) for assignment in (read, computed)]
    shown = {_allocation_key(a): a for assignment in (read, computed) for a in assignment.allocations}
    for missing, label in ((rows[0] - rows[1], "read"), (rows[1] - rows[0], "computed")):
        for key in missing:
            allocation = shown[key]
            text = f"{allocation.bytes} bytes in memory space {allocation.memory_space}"
            first, second = (text, "absent") if label == "read" else ("absent", text)
            yield AssignmentDifference(
                "allocation", _members(allocation), first, second, allocation.memory_space in estimated
            )


def _allocation_key(allocation: Allocation) -> Hashable:
    return (
        frozenset(piece.value.key for piece in allocation.slices),
        allocation.bytes,
        allocation.memory_space,
        allocation.parameter_number,
        allocation.is_output,
        allocation.is_constant,
        allocation.is_thread_local,
        allocation.maybe_live_out,
        allocation.is_temporary,
    )


def _members(allocation: Allocation) -> str:
    names = [str(piece.value) for piece in allocation.slices[:3]]
    more = len(allocation.slices) - len(names)
    return (", ".join(names) or "nothing") + (f" and {more} more" if more else "")
