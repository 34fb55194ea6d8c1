"""The buffer assignment of an `HloProto`: logical buffers, allocations, aliases and the heaps' events.

Instructions are named by ids there; the module that is read with them knows which these are.
"""

from __future__ import annotations

from typing import Any

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.aliasing import ShapeIndex
from hlotext.proto import pool, wire
from hlotext.proto.errors import ProtoError
from hlotext.proto.files import PROTO, kind_of
from hlotext.proto.reader import read_module_and_ids
from hlotext.proto.shapes import decoded


@attrs.frozen
class LogicalBuffer:
    """A logical buffer (`LogicalBufferProto`)."""

    number: int
    bytes: int
    instruction: Instruction | None
    """Where it is defined; None for an id that no instruction of the module has."""
    name: str
    index: ShapeIndex
    memory_space: int


@attrs.frozen
class BufferAllocation:
    """A buffer allocation (`BufferAllocationProto`)."""

    number: int
    bytes: int
    memory_space: int
    is_thread_local: bool
    is_tuple: bool
    is_constant: bool
    maybe_live_out: bool
    parameter_number: int | None
    parameter_index: ShapeIndex
    assigned: tuple[tuple[int, int, int], ...]
    """Number of the buffer, offset and bytes."""


@attrs.frozen
class HeapEvent:
    """An event of a heap's simulation (`HeapSimulatorTrace::Event`)."""

    kind: str
    """`ALLOC`, `FREE` or `SHARE_WITH`."""
    number: int
    """Of the buffer."""
    computation: str
    instruction: str
    """The name of the instruction at which it happens."""


@attrs.frozen
class ProtoBuffers:
    """The buffer assignment in an `HloProto`, from `read_buffers`."""

    module: Module
    buffers: tuple[LogicalBuffer, ...]
    allocations: tuple[BufferAllocation, ...]
    aliases: tuple[tuple[int, Instruction | None, ShapeIndex], ...]
    """Aliases of buffers: buffer number, instruction, and shape index in its result."""
    events: tuple[HeapEvent, ...]
    """Events of all heaps, in order."""


def read_buffers(data: bytes, name: str = "") -> ProtoBuffers | None:
    """Reads the buffer assignment of a serialized `HloProto`; returns None if it has none.

    Also returns None for other types of messages that `kind_of` detects. Raises ProtoError, whose message names the file
    `name`, if the proto is invalid.
    """
    if kind_of(data, name) != PROTO:
        return None
    spans: dict[int, tuple[int, int]] = {}
    for number, kind, start, end in wire.scan(data, 0, len(data), name):
        if kind == wire.BYTES:
            spans.setdefault(number, (start, end))
    if 3 not in spans:
        return None
    module, ids = read_module_and_ids(data, name, *spans[1])
    start, end = spans[3]
    try:
        return _read(module, ids, data[start:end])
    except ProtoError as error:
        raise ProtoError(error.bare_message, "buffer_assignment", start, name) from None


def _read(module: Module, ids: dict[int, Instruction], raw: bytes) -> ProtoBuffers:
    classes = pool.shallow()

    def part(name: str, one: bytes) -> Any:
        return decoded(classes, name, one)

    m = part("BufferAssignmentProto", raw)
    buffers = []
    for one in m.logical_buffers:
        p = part("LogicalBufferProto", one)
        place = part("Location", p.defined_at)
        instruction = ids.get(place.instruction_id)
        label = instruction.name if instruction is not None else place.instruction_name
        buffers.append(LogicalBuffer(p.id, p.size, instruction, label, tuple(place.shape_index), p.color))
    allocations = []
    for one in m.buffer_allocations:
        p = part("BufferAllocationProto", one)
        slices = [part("Assigned", inner) for inner in p.assigned]
        allocations.append(
            BufferAllocation(
                p.index,
                p.size,
                p.color,
                p.is_thread_local,
                p.is_tuple,
                p.is_constant,
                p.maybe_live_out,
                p.parameter_number if p.is_entry_computation_parameter else None,
                tuple(p.parameter_shape_index),
                tuple([(inner.logical_buffer_id, inner.offset, inner.size) for inner in slices]),
            )
        )
    aliases = []
    for one in m.buffer_aliases:
        p = part("BufferAlias", one)
        place = part("Location", p.location)
        aliases.append((p.source_buffer_id, ids.get(place.instruction_id), tuple(place.shape_index)))
    events = []
    kinds = pool.enum_names("EventKind")
    for trace in m.heap_simulator_traces:
        for one in part("HeapSimulatorTrace", trace).events:
            p = part("Event", one)
            events.append(
                HeapEvent(kinds.get(p.kind, str(p.kind)), p.buffer_id, p.computation_name, p.instruction_name)
            )
    return ProtoBuffers(module, tuple(buffers), tuple(allocations), tuple(aliases), tuple(events))
