"""A message that a program does not fit, taken further: who takes the memory, and what would save how much of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import attrs

from hlotext.analysis.updates import undonated_updates
from hlotext.memory import usage, what_if
from hlotext.memory.assignment import Assignment
from hlotext.memory.errors import MemoryModelError
from hlotext.messages import ListedAllocation, Message

_CANDIDATES = 6
"""Of each kind of change how many are tried, from the largest arrays on: each assigns the memory anew."""


@attrs.frozen
class Share:
    """Total size in bytes of several allocations listed in a message, rounded as in the message."""

    name: str
    """The op_name, or the shape; "" for those that the message does not name."""
    bytes: float
    count: int
    padding: float
    """Bytes of it that are padding, as far as the message says."""


def shares(message: Message, key: Callable[[ListedAllocation], str | None]) -> tuple[Share, ...]:
    """Sums the allocations that a message lists by `key`, largest sum first.

    >>> from hlotext.messages import Memory
    >>> rows = (ListedAllocation(8.0, op_name="a"), ListedAllocation(4.0, 3.0, op_name="a"), ListedAllocation(1.0))
    >>> message = Message("hbm", "", memory=Memory(allocations=rows))
    >>> [(share.name, share.bytes, share.padding) for share in shares(message, lambda row: row.op_name)]
    [('a', 12.0, 1.0), ('', 1.0, 0)]
    """
    groups: dict[str, list[ListedAllocation]] = defaultdict(list)
    for row in message.memory.allocations if message.memory is not None else ():
        groups[key(row) or ""].append(row)
    found = [
        Share(
            name,
            sum(row.size for row in rows),
            len(rows),
            sum(row.size - row.unpadded for row in rows if row.unpadded is not None),
        )
        for name, rows in groups.items()
    ]
    return tuple(sorted(found, key=lambda share: -share.bytes))


@attrs.frozen
class Saving:
    """A change of the program, and its estimated savings."""

    what: str
    """`donate 0, 1` or `rematerialize NAME`."""
    saved: int
    """Reduction of the peak in bytes."""
    peak_after: int
    line: str | None
    """Where in the Python program the array is made; None if that is not known, and for arguments."""
    notes: tuple[str, ...]


def savings(assignment: Assignment, memory_space: int = 0) -> tuple[Saving, ...]:
    """Returns changes that would lower the peak, best first: donating arguments and rematerializing temporaries.

    Each is evaluated alone, with the module's own schedule. Raises MemoryModelError if the assignment was read from
    files.
    """
    if assignment.model is None:
        raise MemoryModelError("the buffer assignment was read from files; it must be computed")
    peak = assignment.peak(memory_space)
    live = usage.live_arrays(assignment, memory_space, peak.time)
    found = [
        *_donations(assignment, live, memory_space),
        *_rematerializations(assignment, live, memory_space),
    ]
    return tuple(sorted((one for one in found if one.saved > 0), key=lambda one: -one.saved))


def not_estimated(assignment: Assignment, memory_space: int = 0) -> tuple[usage.LiveArray, ...]:
    """Returns the temporaries live at the peak for which `savings` cannot estimate rematerialization, largest first.

    These are results of loops, calls and communication.
    """
    live = usage.live_arrays(assignment, memory_space, assignment.peak(memory_space).time)
    found = [one for one in _temporaries(live) if one.opcode in what_if.ONCE]
    return tuple(sorted(found, key=lambda one: -one.bytes))


def _temporaries(live: Sequence[usage.LiveArray]) -> Iterator[usage.LiveArray]:
    return (one for one in live if one.kind == "temporary")


def _donations(
    assignment: Assignment, live: Sequence[usage.LiveArray], memory_space: int
) -> Iterator[Saving]:
    """The arguments that results are new values of: others, such as gradients, a caller may need again."""
    assert assignment.model is not None
    module = assignment.model.flow.module
    updated = {update.parameter.parameter_number for update in undonated_updates(module)}
    numbers = sorted(
        {
            int(words[1])
            for array in live
            if len(words := array.kind.split()) == 2 and words[0] == "argument" and words[1].isdigit()
        }
        & updated
    )
    tries = [numbers] if len(numbers) > 1 else []
    tries += [[number] for number in numbers[:_CANDIDATES]]
    for some in tries:
        try:
            outcome = what_if.donate(module, some, memory_space=memory_space, before=assignment)
        except MemoryModelError:
            continue
        yield Saving(outcome.what, outcome.saved, outcome.peak_after, None, outcome.notes)


def _rematerializations(
    assignment: Assignment, live: Sequence[usage.LiveArray], memory_space: int
) -> Iterator[Saving]:
    assert assignment.model is not None
    module = assignment.model.flow.module
    largest: dict[str, usage.LiveArray] = {}
    for array in sorted(_temporaries(live), key=lambda one: -one.bytes):
        if array.opcode not in what_if.ONCE:
            largest.setdefault(array.name, array)
    for array in list(largest.values())[:_CANDIDATES]:
        try:
            outcome = what_if.rematerialize(
                module, [array.name], memory_space=memory_space, before=assignment
            )
        except MemoryModelError:
            continue
        line = str(array.place) if array.place is not None else None
        yield Saving(outcome.what, outcome.saved, outcome.peak_after, line, outcome.notes)
