"""Queries of an assignment: use of each memory space, and the arrays live at a time, with their origin."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

import attrs

from hlotext.analysis import Backend, SourceLocation, byte_text, scopes, source_locations
from hlotext.analysis.meant import bare
from hlotext.analysis.views import VIEWS, source
from hlotext.analysis.views import Value as Origin
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.spelling import did_you_mean
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.layout import LayoutError, allocated_bytes, unpadded_bytes
from hlotext.memory import peaks
from hlotext.memory.aliases import Buffer
from hlotext.memory.allocations import Allocation, Slice
from hlotext.memory.assignment import Assignment
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.values import Value

By = Literal["op", "scope", "line", "opcode"]
"""Key by which bytes are summed: the program's operation, its scope, the Python line, or HLO's opcode."""

UNKNOWN = "(unknown)"
SPACES_LEGEND = "needed: static and heap, as allocated; unused: share of the heap at its peak"
"""Meaning of the columns of a table of memory spaces."""


@attrs.frozen
class SpaceUsage:
    """Use of one memory space."""

    memory_space: int
    name: str
    capacity: int | None
    """Capacity in bytes; None if the chip or its capacity is unknown."""
    usable: int | None
    """Bytes that the compiler lets a program use, which must hold `needed`; the capacity if that is unknown."""
    arguments: int
    """Bytes of arguments."""
    aliased: int
    """Bytes of arguments aliased to results."""
    results: int
    """Bytes of results not aliased to an argument."""
    constants: int
    """Bytes of constants."""
    heap: int
    """Bytes allocated for temporaries."""
    live_in_heap: int
    """Maximum of simultaneously live bytes of temporaries."""
    peak: int
    """Maximum of simultaneously live bytes, including static ones."""
    peak_time: int
    """Position of the peak in the schedule."""
    peak_instruction: str
    """Name of the instruction that executes at the peak."""
    padding: int
    """Bytes of padding live at the peak."""
    is_estimated: bool
    """True if the heap size is computed here, since the text does not contain the compiler's offsets."""

    @property
    def static(self) -> int:
        """Bytes that are live throughout: arguments, results and constants, aliased bytes once."""
        return self.arguments + self.results + self.constants

    @property
    def needed(self) -> int:
        """Bytes of this memory space that the program needs: static ones and the heap."""
        return self.static + self.heap

    @property
    def fragmentation(self) -> float:
        """Fraction of the heap that is unused even when the most temporaries are live."""
        return 1 - self.live_in_heap / self.heap if self.heap else 0.0


@attrs.frozen
class LiveArray:
    """A buffer, or part of one, that is in use at a time of the schedule, with the value in it."""

    name: str
    """Name of the instruction that defines the value."""
    index: tuple[int, ...]
    """Shape index of the value in the instruction's result."""
    bytes: int
    """Bytes of the buffer."""
    value_bytes: int
    """Bytes of the value, with padding. Less than `bytes` if a smaller value reuses memory that is allocated anyway, such as
    a donated argument's."""
    unpadded_bytes: int | None
    """Bytes of the value without padding; None if the shape is unknown."""
    first: int | None
    """Start of its live range; None if it is live throughout."""
    last: int | None
    """End of its live range; None if it is live throughout."""
    shape: str
    """Shape without layout."""
    layout: str
    opcode: str
    op_name: str
    scope: str
    place: SourceLocation | None
    """Source line, propagated if the instruction has none of its own."""
    kind: str
    """`argument 3`, `result`, `constant`, `temporary`, etc."""
    others: tuple[str, ...]
    """Other values in the same bytes at that time."""
    writer: str = ""
    """For loop state, the instruction of the loop that writes it.

    `op_name`, `scope` and `place` are then those of that instruction, or of the one that computes the slice it stores.
    """

    @property
    def padding(self) -> int | None:
        """Bytes of padding in the value; None if unknown."""
        return None if self.unpadded_bytes is None else self.value_bytes - self.unpadded_bytes

    @property
    def padding_factor(self) -> float | None:
        """Ratio of padded to unpadded bytes of the value; None if unknown."""
        return self.value_bytes / self.unpadded_bytes if self.unpadded_bytes else None

    @property
    def label(self) -> str:
        """The name, with the shape index if the value is part of a result."""
        return f"{self.name}{{{','.join(map(str, self.index))}}}" if self.index else self.name

    @property
    def shown(self) -> str:
        """Name for display: for an argument its name in the program; for loop state also the writer."""
        if self.opcode == "parameter" and self.kind != "temporary" and self.op_name:
            return self.op_name
        return f"{self.label} < {self.writer}" if self.writer else self.label


@attrs.frozen
class RepeatedArray:
    """Arrays of repeated layers, which differ only in the numbers in their names."""

    array: LiveArray
    """The first array."""
    count: int
    """Number of arrays."""
    bytes: int
    """Total bytes."""
    first: int | None
    """Earliest start of their live ranges; None if they are live throughout."""
    last: int | None
    """Latest end of their live ranges; None if they are live throughout."""


def repeated(arrays: Iterable[LiveArray]) -> list[RepeatedArray]:
    """Groups arrays with the same size, shape, line and kind, and names that differ in numbers only.

    Largest total first.
    """
    groups: dict[tuple[object, ...], list[LiveArray]] = {}
    for one in arrays:
        key = (
            one.bytes, one.value_bytes, one.unpadded_bytes, one.shape, one.layout, one.opcode, one.place, one.first is None,
            *(_NUMBER.sub("*", text) for text in (one.label, one.op_name, one.scope, one.kind, one.writer)),
        )  # fmt: skip
        groups.setdefault(key, []).append(one)
    found = []
    for members in groups.values():
        firsts = [one.first for one in members if one.first is not None]
        lasts = [one.last for one in members if one.last is not None]
        total = sum(one.bytes for one in members)
        found.append(
            RepeatedArray(
                members[0], len(members), total, min(firsts, default=None), max(lasts, default=None)
            )
        )
    return sorted(found, key=lambda group: -group.bytes)


_NUMBER = re.compile(r"[0-9]+")


@attrs.frozen
class LiveGroup:
    """Live bytes of one operation, scope, line or opcode."""

    name: str
    bytes: int
    padding: int
    arrays: int
    largest: str


_NAMES: Mapping[str, Mapping[int, str]] = {
    "cpu": {0: "memory"},
    "gpu": {0: "device memory", 1: "collective memory", 5: "host memory"},
    "tpu": {
        0: "HBM",
        1: "VMEM",
        2: "SMEM",
        3: "CMEM",
        5: "host memory",
        6: "sync flags",
        7: "SparseCore tables",
    },
}
"""Names of memory spaces by platform. TPU's 2, 6 and 7 are inferred from what lies in them."""


def memory_space_name(backend: Backend | None, memory_space: int) -> str:
    """Returns the common name of a memory space on a platform, or `S(4)`, as in HLO text, if it has none."""
    names = _NAMES.get(backend.value, {}) if backend is not None else {}
    return names.get(memory_space, f"S({memory_space})" if memory_space else "memory")


def space_name(assignment: Assignment, memory_space: int) -> str:
    """Returns the common name of a memory space of an assignment."""
    return memory_space_name(assignment.backend, memory_space)


def fast_memory_text(assignment: Assignment) -> tuple[str, str] | None:
    """Returns the name of the chip's fast memory, and a description of its usage; None if unknown."""
    found, platform = assignment.fast_memory, assignment.platform
    if found is None or platform is None or platform.fast_space is None:
        return None
    why = "" if found.is_exact else "; its offsets come from a search that cannot be reproduced from the text"
    name = space_name(assignment, platform.fast_space)
    return f"{name} in total", f"{found}, {_RESERVED}{why}"


_RESERVED = "including what operations reserve for their own use, which heap and peak exclude"


def excess_text(assignment: Assignment, memory_space: int = 0) -> str:
    """Describes by how much a program exceeds a memory of its chip; empty if it fits, or if the capacity is unknown.

    Also empty for an estimate of any memory other than main memory, since that proves nothing.
    """
    full = space_usage(assignment, memory_space)
    if full.usable is None or full.needed <= full.usable or (memory_space and full.is_estimated):
        return ""
    more = byte_text(full.needed - full.usable)
    return f"{byte_text(full.needed)} of {full.name} needed, {byte_text(full.usable)} usable: {more} too much"


def space_usage(assignment: Assignment, memory_space: int) -> SpaceUsage:
    """Returns the usage of a memory space. Cached on the assignment."""
    known = assignment._space_usages
    if memory_space not in known:
        known[memory_space] = _space_usage(assignment, memory_space)
    return known[memory_space]


def _space_usage(assignment: Assignment, memory_space: int) -> SpaceUsage:
    mine = [a for a in assignment.allocations if a.memory_space == memory_space and not a.is_thread_local]
    temporary = [peaks.live_bytes(assignment, a) for a in mine if a.is_temporary]
    peak = assignment.peak(memory_space)
    rows = live_arrays(assignment, memory_space, peak.time)
    instruction = peak.instruction
    return SpaceUsage(
        memory_space=memory_space,
        name=space_name(assignment, memory_space),
        capacity=assignment.chip.capacity(memory_space) if assignment.chip is not None else None,
        usable=assignment.chip.usable_bytes(memory_space) if assignment.chip is not None else None,
        arguments=sum(a.bytes for a in mine if a.held_for == "arguments"),
        aliased=sum(a.bytes for a in mine if a.is_parameter and a.is_aliased),
        results=sum(a.bytes for a in mine if a.held_for == "results"),
        constants=sum(a.bytes for a in mine if a.held_for == "constants"),
        heap=peaks.heap_bytes(assignment, memory_space),
        live_in_heap=max(map(sum, zip(*temporary, strict=True)), default=0),
        peak=peak.bytes,
        peak_time=peak.time,
        peak_instruction="" if instruction is None else _name(instruction),
        padding=sum(row.padding or 0 for row in rows),
        is_estimated=any(a.is_estimated or a.is_size_estimated for a in mine),
    )


def _name(place: Instruction | str) -> str:
    return place if isinstance(place, str) else place.name


def moment(assignment: Assignment, place: str) -> int:
    """Returns the time in the schedule given by an instruction's name or a number. Raises MemoryModelError if there is
    none.
    """
    if place.isdecimal() and len(place) < 19:
        time = int(place)
        if time < len(assignment.schedule):
            return time
        raise MemoryModelError(f"no step {time}: the schedule ends at {len(assignment.schedule) - 1}")
    wanted = place.removeprefix("%")
    for time, instruction in enumerate(assignment.schedule):
        if _name(instruction) == wanted:
            return time
    meant = did_you_mean(bare(wanted), [_name(instruction) for instruction in assignment.schedule])
    last = len(assignment.schedule) - 1
    raise MemoryModelError(f"no scheduled instruction is named {place}; {meant or f'steps are 0 to {last}'}")


def live_arrays(assignment: Assignment, memory_space: int, time: int) -> tuple[LiveArray, ...]:
    """Returns the arrays live in a memory space at a time of the schedule, largest first. Shared memory is listed once.

    Static arrays are live throughout, whether or not their values are still needed. Cached on the assignment.
    """
    known = assignment._live_arrays
    if (memory_space, time) not in known:
        known[memory_space, time] = _live_arrays(assignment, memory_space, time)
    return known[memory_space, time]


def _live_arrays(assignment: Assignment, memory_space: int, time: int) -> tuple[LiveArray, ...]:
    describe = _Describer(assignment)
    found: list[LiveArray] = []
    for allocation in assignment.allocations:
        if allocation.memory_space != memory_space or allocation.is_thread_local:
            continue
        at_offset: dict[int, list[Slice]] = {}
        for piece in allocation.slices:
            span = piece.value.live_range
            if allocation.is_static or (span is not None and span[0] <= time <= span[1]):
                at_offset.setdefault(0 if allocation.is_static else piece.offset, []).append(piece)
        for pieces in at_offset.values():
            found.append(describe.row(allocation, pieces, time))
    return tuple(
        sorted((row for row in found if row.bytes), key=lambda row: (-row.bytes, row.name, row.index))
    )


def temporaries(assignment: Assignment, memory_space: int) -> tuple[LiveArray, ...]:
    """Returns all temporaries of a memory space, whatever their live ranges, largest first within each allocation."""
    return tuple(row for row, _ in placed_temporaries(assignment, memory_space))


def placed_temporaries(
    assignment: Assignment, memory_space: int
) -> tuple[tuple[LiveArray, tuple[Allocation, Slice]], ...]:
    """Returns all temporaries of a memory space, each with its allocation and slice."""
    describe = _Describer(assignment)
    return tuple(
        (describe.row(allocation, [piece], 0), (allocation, piece))
        for allocation in assignment.allocations
        if allocation.memory_space == memory_space and allocation.is_temporary
        for piece in sorted(allocation.slices, key=lambda piece: -piece.bytes)
        if piece.bytes and piece.value.live_range is not None
    )


def group_by(arrays: Iterable[LiveArray], by: By) -> tuple[LiveGroup, ...]:
    """Sums live bytes by operation, scope, line or opcode, most first."""
    key = _KEYS[by]
    rows: dict[str, list[LiveArray]] = {}
    for array in arrays:
        rows.setdefault(key(array) or UNKNOWN, []).append(array)
    groups = [
        LiveGroup(
            name,
            sum(array.bytes for array in mine),
            sum(array.padding or 0 for array in mine),
            len(mine),
            max(mine, key=lambda array: array.bytes).label,
        )
        for name, mine in rows.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-group.bytes, group.name)))


def line_text(place: SourceLocation | None) -> str:
    """Formats a location as `train.py:123`, without folders; empty if unknown."""
    return f"{place.file.rsplit('/', 1)[-1]}:{place.line}" if place is not None else ""


_KEYS: Mapping[By, Callable[[LiveArray], str]] = {
    "op": lambda array: array.op_name,
    "scope": lambda array: array.scope,
    "line": lambda array: line_text(array.place),
    "opcode": lambda array: array.opcode,
}


_MOVING = traits.GIVEN | traits.COPIES | {"broadcast", "custom-call"}
"""Opcodes that say nothing of what a loop's state is for."""


class _Sized(NamedTuple):
    """Texts and bytes of a shape, as many pieces of memory have them."""

    shape: Shape | None
    """Held, so that its identity stays its own."""
    short: str
    text: str
    unpadded: int | None
    """Bytes without padding; None for what has none, and where they are not known."""


class _Describer:
    """Says of pieces of memory what they are and where they come from."""

    def __init__(self, assignment: Assignment) -> None:
        module = assignment.module
        self._scopes = scopes(module) if module is not None and module.computations else None
        self._places = source_locations(module) if module is not None and module.computations else {}
        self._buffer_of = assignment.shared_buffers
        # By identity, since equal ones of a module are nearly always one object.
        self._sizes: dict[int, _Sized] = {}
        self._scope_texts: dict[int, str] = {}
        self._states: dict[int, bool] = {}

    def _sized(self, shape: Shape | None) -> _Sized:
        found = self._sizes.get(id(shape))
        if found is None:
            found = self._sizes[id(shape)] = _sized(shape)
        return found

    def _scope(self, writer: Instruction | None) -> str:
        if self._scopes is None or writer is None:
            return ""
        scope = self._scopes.of(writer)
        found = self._scope_texts.get(id(scope))
        if found is None:
            found = self._scope_texts[id(scope)] = str(scope)
        return found

    def _is_of_state(self, buffer: Buffer) -> bool:
        """True if a loop's state or the result of branches lies in it; asked of each of its values."""
        known = self._states.get(id(buffer))
        if known is None:
            known = self._states[id(buffer)] = any(value.is_phi for value in buffer)
        return known

    def _writer(self, value: Value) -> tuple[Instruction | None, Instruction | None]:
        """The instruction that fills it, and the one that it is there for.

        Of a loop's state the first is what a round writes there last, if that is known; where this only stores a slice, the
        second is what made the slice. The same holds from that write to the end of the round.
        """
        buffer = self._buffer_of.get(value, ())
        found, latest, index = value.instruction, -1, value.index
        if not value.is_phi:
            is_state = found is not None and self._is_of_state(buffer)
            return found, (_stored(found, index) or found) if is_state and found is not None else found
        for other in buffer:
            instruction = other.instruction
            if (
                other.is_phi
                or instruction is None
                or other.live_range is None
                or instruction.opcode in _MOVING
            ):
                continue
            if other.live_range[0] > latest:
                found, latest, index = instruction, other.live_range[0], other.index
        return found, (_stored(found, index) or found) if found is not None else None

    def row(self, allocation: Allocation, pieces: list[Slice], time: int) -> LiveArray:
        """One piece of memory; of several values in it the one that was written last before that moment.

        A static allocation lives throughout: if what is in it at that moment is smaller, its largest value stands for it. For
        that of an argument the argument does, whose name the program knows, whatever is in it then.
        """
        alive = [p for p in pieces if p.value.lives_at(time)] or pieces
        filling = alive
        if allocation.is_static:
            most = max(piece.bytes for piece in pieces)
            given = [p for p in pieces if p.bytes == most and _is_argument(p.value)]
            filling = given or [p for p in alive if p.bytes == most] or [p for p in pieces if p.bytes == most]
        last = max(filling, key=lambda p: (p.value.live_range or (-1, -1), p.value.number))
        value = last.value
        size = allocation.bytes if allocation.is_static else max(piece.bytes for piece in pieces)
        instruction = value.instruction
        writer, maker = self._writer(value)
        sized = self._sized(value.shape)
        span = value.live_range
        own = min(_own_bytes(last), size)
        found = self._places.get(maker) if maker is not None else None
        metadata = maker.metadata if maker is not None else None
        return LiveArray(
            name=value.name,
            index=value.index,
            bytes=size,
            value_bytes=own,
            unpadded_bytes=_unpadded(sized, own),
            first=None if allocation.is_static or span is None else span[0],
            last=None if allocation.is_static or span is None else span[1],
            shape=sized.short,
            layout=sized.text,
            opcode=instruction.opcode if instruction is not None else "?",
            op_name=metadata.op_name if metadata is not None else "",
            scope=self._scope(maker),
            writer=writer.name if writer is not None and writer is not instruction else "",
            place=found[0] if found is not None else None,
            kind=_kind(allocation),
            others=tuple(str(piece.value) for piece in alive if piece.value is not value),
        )


def _is_argument(value: Value) -> bool:
    made = value.instruction
    return (
        made is not None
        and made.opcode == "parameter"
        and made.computation is not None
        and made.computation.is_entry
    )


def _stored(writer: Instruction, index: tuple[int, ...]) -> Instruction | None:
    """The operation that computes the slice which another stores in a stack; None for others, and if the loop carries it."""
    callers = writer.computation.callers if writer.computation is not None else ()
    around = tuple(one for one in callers if one.async_wrapped_instruction is writer)[:1]
    made = Origin(writer, around)
    if index and writer.opcode == "fusion" and writer.called_computations:
        parts = writer.called_computations[0].root.operands
        if len(index) > 1 or index[0] >= len(parts):
            return None
        made = Origin(parts[index[0]], (*around, writer))
    made = source(made, VIEWS)
    if made.instruction.opcode != "dynamic-update-slice":
        return None
    found = source(made.operands()[1], _CARRIES).instruction
    return None if found.opcode in ("parameter", "get-tuple-element") else found


_CARRIES = VIEWS | {"convert"}
"""Opcodes through which a slice is looked for: what they give is there for what they are given."""


def _own_bytes(piece: Slice) -> int:
    """Bytes of the value in a slice: as the allocator counts, or by its layout where a file tells only what is held."""
    value = piece.value
    if value.bytes is not None:
        return value.bytes
    if value.shape is None or not value.shape.is_array:
        return piece.bytes
    try:
        return allocated_bytes(value.shape)
    except LayoutError:
        return piece.bytes


def _sized(shape: Shape | None) -> _Sized:
    if shape is None:
        return _Sized(None, "?", "?", None)
    try:
        unpadded = unpadded_bytes(shape) if shape.is_array else None
    except LayoutError:
        unpadded = None
    return _Sized(shape, shape.text_without_layout(), str(shape), unpadded)


def _unpadded(sized: _Sized, size: int) -> int | None:
    """Bytes without padding; a tuple's table and a token have none."""
    if sized.shape is None:
        return None
    if not sized.shape.is_array:
        return size
    return None if sized.unpadded is None else min(sized.unpadded, size)


def _kind(allocation: Allocation) -> str:
    if allocation.is_parameter:
        return f"argument {allocation.parameter_number}" + (", result" if allocation.is_aliased else "")
    if allocation.is_constant:
        return "constant"
    return "result" if allocation.maybe_live_out else "temporary"
