"""From `HloModuleProto` to nodes, directly: all instructions of a batch at once, column by column.

What is the same is made once: shapes, attributes and literals are told by their bytes. The order is XLA's when it prints the
proto (`HloModule::Print`): the schedule's, else operands before users.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hlotext.ir import collector
from hlotext.ir.nodes.computation import Computation, opened
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import ENTRY_LAYOUT, Module
from hlotext.ir.values.print_options import PrintOptions
from hlotext.proto import header, order, wire
from hlotext.proto.attributes import Tools
from hlotext.proto.errors import ProtoError
from hlotext.proto.heads import Heads
from hlotext.proto.instructions import Batch
from hlotext.proto.metadata import text
from hlotext.proto.wire import BYTES, VARINT, Buffer

MAX_INNER = 4
"""Modules inside of each other, by way of the table of original values."""
LEAST = 8
"""Bytes that an instruction takes at least. What has fewer is refused before anything is made for it."""
BATCH = 1 << 22
"""Bytes of instructions that are taken apart at a time: what that needs is a small multiple of it."""
_NAME, _COMPUTATIONS, _ENTRY_ID, _SCHEDULE, _FRAMES, _PAYLOADS = 1, 3, 6, 7, 17, 22


def read_module(data: bytes, name: str = "", start: int = 0, end: int | None = None) -> Module:
    """The module of a serialized `HloModuleProto`, which may be a part of a file. Raises ProtoError."""
    with collector.paused(pays=len(data) > 1 << 20):
        return _Reader(Buffer.of(data, name), start, len(data) if end is None else end).module()


def read_module_and_ids(
    data: bytes, name: str, start: int, end: int
) -> tuple[Module, dict[int, Instruction]]:
    """A module inside of a file, and its instructions by the ids under which the file speaks of them. Raises ProtoError."""
    with collector.paused(pays=len(data) > 1 << 20):
        reader = _Reader(Buffer.of(data, name), start, end)
        reader.instructions = {}
        return reader.module(), reader.instructions


class _Part:
    """One computation as it lies in the proto."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = ""
        self.id = 0
        self.root_id = 0
        self.thread = "main"
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.other: list[tuple[int, int]] = []
        """Places of fields that have no place in a module."""


class _Reader:
    """Reads one module."""

    def __init__(self, buffer: Buffer, start: int, end: int) -> None:
        self.buffer = buffer
        self.tools = Tools()
        self.tools.inner_module_text = self._inner_text
        self.bounds = start, end
        self.fields: dict[int, list[Any]] = {}
        self.parts: list[_Part] = []
        self.carried: list[bytes] = []
        self.depth = 0
        self.instructions: dict[int, Instruction] | None = None
        """By id, where somebody asks for them."""
        self.by_id: dict[int, Computation] = {}
        self.calls: dict[Computation, list[list[Computation]]] = {}

    def module(self) -> Module:
        self._take_apart()
        names = self.fields.get(_NAME, [b""])
        module = Module(self._said("name", lambda: text(names[-1])))
        module._start = -1
        schedule = self._schedule()
        payloads = self.fields.get(_PAYLOADS, [])
        computations: list[Computation] = []
        heads = Heads(self.tools, payloads)
        for parts in self._batches():
            batch = Batch(self.buffer, heads)
            for part in parts:
                batch.add(part.path, part.starts, part.ends)
            batch.read()
            for number, part in enumerate(parts):
                computations.append(self._computation(module, part, batch, number, schedule))
        computations = [self.by_id[key] for key in sorted(self.by_id)]
        module._computations = order.computation_order(computations, self.calls)
        entry = self.fields.get(_ENTRY_ID, [0])[-1]
        if entry not in self.by_id:
            raise self.buffer.error(f"no computation has the entry's id {entry}", path="entry_computation_id")
        module._entry = self.by_id[entry]
        if len(module._computations) != len(computations):
            raise self.buffer.error("computations call each other in a circle", path="computations")
        header.read(module, self.fields, self.tools, self.buffer, schedule is not None)
        module._carried = b"".join(self.carried)
        header.renumber_frames(module, self.fields, self.tools, computations)
        return module

    def _inner_text(self, raw: bytes) -> str:
        """A module in the table of original values, as XLA writes it between quotes (`OriginalValueRecoveryTable`)."""
        if self.depth >= MAX_INNER:
            raise ProtoError(f"modules are inside of each other more than {MAX_INNER} times")
        inner = _Reader(Buffer.of(raw, self.buffer.name), 0, len(raw))
        inner.depth = self.depth + 1
        return f"\n{inner.module().to_text(PrintOptions(indent_amount=2))}\n  "

    def _said(self, path: str, read: Any) -> Any:
        """The result of a function, with the path in what it raises."""
        try:
            return read()
        except ProtoError as error:
            raise self.buffer.error(error.bare_message, path=f"{path}{error.path}") from None

    def _take_apart(self) -> None:
        data, name = self.buffer.data, self.buffer.name
        start, end = self.bounds
        position = start
        for number, kind, a, b in wire.scan(data, start, end, name):
            if number == _COMPUTATIONS and kind == BYTES:
                if b - a < LEAST:
                    where = f"computations[{len(self.parts)}]"
                    raise self.buffer.error("a computation has no instructions", a, where)
                self.parts.append(self._part(f"computations[{len(self.parts)}]", a, b))
            elif header.is_carried(number):
                self.carried.append(data[position:b])
            elif kind == BYTES:
                self.fields.setdefault(number, []).append(data[a:b])
            elif kind == VARINT:
                self.fields.setdefault(number, []).append(a)
            position = b
        for number in header.MESSAGES:
            if any(type(value) is not bytes for value in self.fields.get(number, ())):
                raise self.buffer.error(f"field {number} has another wire type", start)
        if any(type(value) is not int for value in self.fields.get(_ENTRY_ID, ())):
            raise self.buffer.error(f"field {_ENTRY_ID} has another wire type", start)

    def _part(self, path: str, start: int, end: int) -> _Part:
        part = _Part(path)
        data, name = self.buffer.data, self.buffer.name
        begin, finish = part.starts.append, part.ends.append
        fields = 0
        while start < end:
            # One instruction behind the other is what a computation nearly is.
            while data[start] == 0x12:
                if start + 1 >= end:
                    break
                size = data[start + 1]
                behind = start + 2
                if size >= 128:
                    size, behind = wire.varint(data, start + 1, end, name)
                elif size < LEAST:
                    where = f"{path}.instructions[{len(part.starts)}]"
                    raise self.buffer.error("an instruction has no name, opcode or shape", start, where)
                stop = behind + size
                if stop > end or stop < behind:
                    break
                begin(behind)
                finish(stop)
                start = stop
                if start == end:
                    return part
            number, kind, a, b = next(wire.scan(data, start, end, name))
            fields += 1
            if fields > wire.MAX_FIELDS:
                raise self.buffer.error(f"a message has more than {wire.MAX_FIELDS:,} fields", start, path)
            start = b
            if kind == BYTES and number in (1, 8):
                value = self._said(f"{path}.name", lambda raw=data[a:b]: text(raw))
                if number == 1:
                    part.name = value
                else:
                    part.thread = value or "main"
            elif kind == VARINT and number == 5:
                part.id = a
            elif kind == VARINT and number == 6:
                part.root_id = a
        return part

    def _batches(self) -> Iterator[list[_Part]]:
        batch: list[_Part] = []
        size = 0
        for part in self.parts:
            batch.append(part)
            size += part.ends[-1] - part.starts[0] if part.starts else 0
            if size > BATCH:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _schedule(self) -> dict[int, list[int]] | None:
        """The ids of each scheduled computation's instructions in order; None where the module is not scheduled."""
        if _SCHEDULE not in self.fields:
            return None
        raw = b"".join(self.fields[_SCHEDULE])
        found: dict[int, list[int]] = self._said("schedule", lambda: _schedule(Buffer.of(raw)))
        return found

    def _computation(
        self, module: Module, part: _Part, batch: Batch, number: int, schedule: dict[int, list[int]] | None
    ) -> Computation:
        """Builds one computation: nodes, then their order."""
        computation = opened(part.name, module, -1, -1)
        computation._parts_read = None
        computation._execution_thread = part.thread
        if part.id in self.by_id:
            raise self.buffer.error(f"two computations have the id {part.id}", path=part.path)
        first, last = batch.bounds[number], batch.bounds[number + 1]
        if first == last:
            raise self.buffer.error(f"computation {part.name} has no instructions", path=part.path)
        batch.build(number, computation, self.by_id)
        by_id = batch.by_id[first:last]  # as XLA keeps them
        local = part.root_id & 0xFFFFFFFF
        nodes, keys = batch.nodes, batch.ids[first:last]
        try:
            computation._root = nodes[first + keys.index(local)]
        except ValueError:
            path = f"{part.path}.root_id"
            raise self.buffer.error(f"no instruction has the root's id {part.root_id}", path=path) from None
        if self.instructions is not None:
            for key, node in zip(keys, nodes[first:last], strict=True):
                self.instructions[part.id << 32 | key] = node
        if batch.calls:
            self.calls[computation] = [batch.calls[place] for place in by_id if place in batch.calls]
        planned = None if schedule is None else schedule.get(part.id)
        if planned is None:
            places = order.post_order(batch.operands, batch.operand_bounds, batch.predecessors, by_id)
            computation._instructions = [nodes[place] for place in places]
        else:
            ids = dict(zip(keys, nodes[first:last], strict=True))
            found = [ids.pop(key & 0xFFFFFFFF, None) for key in planned]
            if ids or None in found:
                raise self.buffer.error(
                    f"the schedule of computation {part.name} does not hold each instruction once",
                    path="schedule",
                )
            computation._instructions = found
        self.by_id[part.id] = computation
        return computation


def _schedule(buffer: Buffer) -> dict[int, list[int]]:
    """A map's entries by key, each a list of ids; all of them are taken apart at once."""

    def columns(starts: Any, ends: Any) -> dict[int, wire.Column]:
        return wire.columns(buffer, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64))[0]

    entries = [
        (a, b)
        for number, kind, a, b in wire.scan(buffer.data, 0, len(buffer.data))
        if number == 1 and kind == BYTES
    ]
    count = len(entries)
    found = columns([a for a, _ in entries], [b for _, b in entries])
    keys = np.zeros(count, dtype=np.int64)
    starts, ends = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    if 1 in found:
        keys[found[1].rows] = found[1].start
    if 2 in found:
        if (found[2].wire_type != BYTES).any():
            raise ProtoError("a sequence has another wire type")
        starts[found[2].rows], ends[found[2].rows] = found[2].start, found[2].end
    inner = columns(starts, ends)
    if 1 not in inner:
        return {key: [] for key in keys.tolist()}
    numbers, bounds = wire.packed(buffer, inner[1], count)
    ids, places = numbers.tolist(), bounds.tolist()
    return {key: ids[places[n] : places[n + 1]] for n, key in enumerate(keys.tolist())}


_CONFIG_NUMBERS = {4: "replica_count", 5: "num_partitions"}
_CONFIG_FLAGS = {
    27: "allow_spmd_sharding_propagation_to_output",
    33: "allow_spmd_sharding_propagation_to_parameters",
}


def read_config(module: Module, data: bytes, name: str = "") -> None:
    """Adds what the config of a `HloModuleProtoWithConfig` says to the header. Raises ProtoError."""
    tools = Tools()
    for number, kind, start, end in wire.scan(data, 0, len(data), name):
        if number != 2 or kind != BYTES:
            continue
        flags: dict[str, list[bool]] = {}
        for field, field_kind, a, b in wire.scan(data, start, end, name):
            if field == 1 and field_kind == BYTES:
                module._attributes[ENTRY_LAYOUT] = tools.shapes.program_shape(data[a:b])
            elif field in _CONFIG_NUMBERS and field_kind == VARINT and a != 1:
                module._attributes[_CONFIG_NUMBERS[field]] = a
            elif field == 17 and field_kind == VARINT and a:
                module._attributes["alias_passthrough_params"] = True
            elif field in _CONFIG_FLAGS:
                values = (
                    [a]
                    if field_kind == VARINT
                    else wire.unpacked(data, a, b, name)
                    if field_kind == BYTES
                    else ()
                )
                flags.setdefault(_CONFIG_FLAGS[field], []).extend(map(bool, values))
        for attribute, given in flags.items():
            if given != [False]:
                module._attributes[attribute] = tuple(given)
