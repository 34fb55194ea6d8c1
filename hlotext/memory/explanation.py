"""Explains why values share a buffer, and why others do not."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis.meant import names_meant
from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory.aliases import MustAlias, must_alias_pairs
from hlotext.memory.allocations import Allocation, Slice
from hlotext.memory.assignment import Assignment, Model
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.values import Range, Value


@attrs.frozen
class Sharer:
    """A value that shares bytes with the explained one."""

    name: str
    live_range: Range | None
    offset: int
    bytes: int
    why: str


@attrs.frozen
class Refusal:
    """An operand that the value did not overwrite, and the reason."""

    name: str
    why: str


@attrs.frozen
class BufferExplanation:
    """Explanation of the memory of one value."""

    name: str
    shape: str
    memory_space: int
    live_range: Range | None
    allocation: int
    kind: str
    offset: int
    bytes: int
    must_share: tuple[Sharer, ...]
    """Values that must share its memory."""
    in_turn: tuple[Sharer, ...]
    """Values that share its bytes at other times, or reuse them."""
    refusals: tuple[Refusal, ...]
    """Operands that it could have overwritten, and why it did not."""
    is_estimated: bool


def explain(assignment: Assignment, name: str) -> tuple[BufferExplanation, ...]:
    """Explains the memory of every value that an instruction defines, given its name.

    Raises MemoryModelError for an unknown name, for an instruction that defines no value (such as a bitcast), and for
    an assignment that was read from files.
    """
    model = assignment.model
    if model is None:
        raise MemoryModelError(
            "only a computed buffer assignment, not one read from files, explains why buffers are shared"
        )
    wanted = name.removeprefix("%").split("{")[0]
    found = [value for value in assignment.values if value.name == wanted]
    if not found:
        known = assignment.module.find(wanted) if assignment.module is not None else None
        if known is None:
            near = "" if assignment.module is None else names_meant(assignment.module, wanted)
            raise MemoryModelError(f"no instruction is named {name}{near}")
        found = [v for v in assignment.values if any(place is known for place, _ in v.positions)]
        if not found:
            raise MemoryModelError(f"{name} has no buffer of its own")
    places = {p.value: (a, p) for a in assignment.allocations for p in a.slices}
    reasons = _reasons(model, found)
    return tuple(_explained(assignment, model, value, places, reasons) for value in found if value in places)


def _reasons(model: Model, values: list[Value]) -> dict[Value, list[MustAlias]]:
    """For every value of the buffers of these: what makes it share."""
    found: dict[Value, list[MustAlias]] = {}
    for meeting in must_alias_pairs(model.flow, model.pairs):
        if meeting.first is not meeting.second:
            found.setdefault(meeting.first, []).append(meeting)
            found.setdefault(meeting.second, []).append(meeting)
    return found


def _why(meeting: MustAlias, model: Model) -> str:
    cause = meeting.cause
    if cause is None:
        known = [
            v.instruction.parameter_number
            for v in (meeting.first, meeting.second)
            if v.instruction is not None
        ]
        number = next((number for number in known if number is not None), None)
        return (
            f"an output uses the buffer of parameter {number}"
            if number is not None
            else "an output uses the buffer of a parameter"
        )
    if cause.opcode == "while":
        return f"the state of {cause.name}"
    if cause.opcode == "conditional":
        return f"the results of the branches of {cause.name}"
    return f"{cause.name} ({cause.opcode}) writes in place"


def _explained(
    assignment: Assignment,
    model: Model,
    value: Value,
    places: dict[Value, tuple[Allocation, Slice]],
    reasons: dict[Value, list[MustAlias]],
) -> BufferExplanation:
    allocation, piece = places[value]
    buffer = next((b for b in assignment.buffers or () if value in b), (value,))
    members = set(buffer)
    must = [
        Sharer(str(v), v.live_range, places[v][1].offset, v.bytes or 0, "; ".join(
            dict.fromkeys(_why(m, model) for m in reasons.get(v, ()))
        ))
        for v in buffer
        if v is not value and v in places
    ]  # fmt: skip
    end = piece.offset + piece.bytes
    turn = [
        Sharer(str(p.value), p.value.live_range, p.offset, p.bytes, _order(value, p.value))
        for p in allocation.slices
        if p.value not in members and p.offset < end and piece.offset < p.offset + p.bytes and p.bytes
    ]
    turn.sort(key=lambda sharer: sharer.live_range or (-1, -1))
    return BufferExplanation(
        name=str(value),
        shape=str(value.shape),
        memory_space=value.memory_space,
        live_range=value.live_range,
        allocation=allocation.number,
        kind=_kind(allocation),
        offset=piece.offset,
        bytes=piece.bytes,
        must_share=tuple(must),
        in_turn=tuple(turn),
        refusals=tuple(_refusals(model, value, allocation, places)),
        is_estimated=allocation.is_estimated,
    )


def _kind(allocation: Allocation) -> str:
    if allocation.is_parameter:
        held = "donated" if allocation.is_aliased else "not donated, so live to the end"
        return f"parameter {allocation.parameter_number}, {held}"
    if allocation.is_constant:
        return "constant"
    if allocation.is_thread_local:
        return "thread-local"
    return "result" if allocation.maybe_live_out else "temporary heap"


def _order(value: Value, other: Value) -> str:
    first, second = value.live_range, other.live_range
    if first is None or second is None:
        return "the same allocation"
    if second[1] < first[0]:
        return "before it"
    if first[1] < second[0]:
        return "after it"
    if second[1] == first[0]:
        return "it overwrites this"
    return "this overwrites it" if first[1] == second[0] else "the same allocation"


def _refusals(
    model: Model, value: Value, allocation: Allocation, places: dict[Value, tuple[Allocation, Slice]]
) -> Iterator[Refusal]:
    instruction = value.instruction
    if instruction is None or value.live_range is None or value.is_phi or instruction.opcode == "parameter":
        return
    if value.shape is not None and value.shape.is_tuple:
        return  # a table of pointers has a place of its own
    seen: set[Value] = set()
    for operand in instruction.operands:
        given = model.flow.at[operand][0]
        if given is None or given in seen or given not in places:
            continue
        seen.add(given)
        held, piece = places[given]
        if held is allocation and piece.offset == places[value][1].offset:
            continue
        why = _refused(model, value, instruction, given, held)
        if why:
            yield Refusal(str(given), why)


def _refused(model: Model, value: Value, instruction: Instruction, given: Value, held: Allocation) -> str:
    if held.is_constant:
        return "constants are never overwritten"
    if held.is_parameter and not held.is_aliased:
        return f"parameter {held.parameter_number} is not donated"
    if given.memory_space != value.memory_space:
        return f"it is in memory space {given.memory_space}"
    assert value.live_range is not None
    if given.live_range is not None and given.live_range[1] > value.live_range[0]:
        return f"it is needed until {given.live_range[1]}, {_user(model, given)}"
    operand, index = model.ranges.end_of(given)
    if operand is None or operand not in instruction.operands:
        return "it is used through another instruction"
    reason = model.sharing.why_not(operand, index, instruction, value.index)
    return reason or "another allocation fits better, or is live-out"


def _user(model: Model, value: Value) -> str:
    """The use that keeps a value alive to its end."""
    assert value.live_range is not None
    last = value.live_range[1]
    for user in value.flat_uses()[::3]:
        if isinstance(user, Instruction) and model.schedule.times.get(user) == last:
            return f"when {user.name} reads it"
    return "where it is passed on or returned"
