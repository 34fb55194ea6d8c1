"""From `HloModuleProto` to nodes, directly: no text in between.

What is the same is made once: shapes, attributes and literals are told by their bytes. The order is XLA's when it prints the
proto (`HloModule::Print`): the schedule's, else operands before users.
"""

from __future__ import annotations

import array
import itertools
from typing import Any

from hlotext.ir import gc_control
from hlotext.ir.nodes.computation import Computation, computation_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import ENTRY_LAYOUT, Module
from hlotext.ir.values.print_options import PrintOptions
from hlotext.proto import header, print_order, wire
from hlotext.proto.codec import Tools
from hlotext.proto.errors import ProtoError
from hlotext.proto.fast_computations import LOCAL, Bodies, Body, number_of, varints
from hlotext.proto.instruction_templates import Heads
from hlotext.proto.instructions import LEAST, CarefulBodies
from hlotext.proto.literals import encoded
from hlotext.proto.metadata import text
from hlotext.proto.wire import BYTES, VARINT

MAX_INNER = 4
"""Modules inside of each other, by way of the table of original values."""
_NAME, _COMPUTATIONS, _ENTRY_ID, _SCHEDULE, _PAYLOADS = 1, 3, 6, 7, 22
_COMPUTATION_TAG = _COMPUTATIONS << 3 | BYTES


def read_module(
    data: bytes, name: str = "", start: int = 0, end: int | None = None, *, careful: bool = False
) -> Module:
    """Reads a module from a serialized `HloModuleProto`, which may be part of a file.

    Args:
        data: The bytes that contain the proto.
        name: Name of the file, for error messages.
        start: Offset of the proto in `data`.
        end: Offset after the proto; None for the end of `data`.
        careful: Read every instruction field by field, which is slower but gives the same result.

    Raises:
        ProtoError: The proto is invalid.
        MissingProtobuf: The extra `proto` is not installed.
    """
    return _read(data, name, start, len(data) if end is None else end, None, careful)


def read_module_and_ids(
    data: bytes, name: str, start: int, end: int
) -> tuple[Module, dict[int, Instruction]]:
    """Reads a module that is part of a file, and its instructions by id. Raises ProtoError if it is invalid."""
    instructions: dict[int, Instruction] = {}
    return _read(data, name, start, end, instructions, False), instructions


def _read(
    data: bytes, name: str, start: int, end: int, instructions: dict[int, Instruction] | None, careful: bool
) -> Module:
    own = data if (start, end) == (0, len(data)) else data[start:end]
    with gc_control.gc_paused(collect_first=len(own) > 1 << 20):
        try:
            return _Reader(own, instructions, careful).module()
        except ProtoError as error:
            offset = None if error.offset is None else error.offset + start
            raise ProtoError(error.bare_message, error.path, offset, name) from None


class _Reader:
    """Reads one module."""

    def __init__(self, data: bytes, instructions: dict[int, Instruction] | None, careful: bool) -> None:
        self.data = data
        self.tools = Tools()
        self.tools.inner_module_text = self._inner_text
        self.fields: dict[int, list[Any]] = {}
        self.spans = array.array("q"), array.array("q")
        """Where computations begin, and where they end: a file may say that there are very many."""
        self.carried: list[bytes] = []
        self.depth = 0
        self.instructions = instructions
        """By id, where somebody asks for them."""
        self.is_careful = careful
        self.by_key: dict[str, Computation] = {}
        """Computations by their ids as varints."""
        self.calls: dict[Computation, list[list[Computation]]] = {}
        self.schedule: dict[str, str] | None = None
        """The ids of each scheduled computation's instructions, one varint behind the other; None without a schedule."""

    def module(self) -> Module:
        self._take_apart()
        names = self.fields.get(_NAME, [b""])
        module = Module(_at("name", lambda: text(names[-1])))
        module._start = -1
        module._has_config = False
        if _SCHEDULE in self.fields:
            raw = b"".join(self.fields[_SCHEDULE])
            self.schedule = _at("schedule", lambda: _schedule(raw))
        self._read_computations(module)
        computations = [self.by_key[key] for key in sorted(self.by_key, key=_order)]
        module._computations = computation_order(computations, self.calls)
        if module._computations != computations:
            module._stored = tuple([computation.name for computation in computations])
        entry = self.fields.get(_ENTRY_ID, [0])[-1]
        key = encoded(entry).decode("latin-1")
        if entry < 0 or key not in self.by_key:
            raise ProtoError(f"no computation has the entry's id {entry}", "entry_computation_id")
        module._entry = self.by_key[key]
        if len(module._computations) != len(computations):
            raise ProtoError("computations call each other recursively", "computations")
        header.read(module, self.fields, self.tools, self.schedule is not None)
        module._carried = b"".join(self.carried)
        return module

    def _inner_text(self, raw: bytes) -> str:
        """A module in the table of original values, as XLA writes it between quotes (`OriginalValueRecoveryTable`)."""
        if self.depth >= MAX_INNER:
            raise ProtoError(f"modules are nested more than {MAX_INNER} deep")
        inner = _Reader(raw, None, self.is_careful)
        inner.depth = self.depth + 1
        return f"\n{inner.module().to_text(PrintOptions(indent_amount=2))}\n  "

    def _take_apart(self) -> None:
        data, size = self.data, len(self.data)
        position = 0
        while position < size:
            position = self._take_computations(position)
            for number, kind, a, b in itertools.islice(wire.scan(data, position, size), 1):
                if number == _COMPUTATIONS and kind == BYTES:
                    self._add_span(a, b)
                elif header.is_carried(number):
                    self.carried.append(data[position:b])
                elif kind == BYTES:
                    self.fields.setdefault(number, []).append(data[a:b])
                elif kind == VARINT:
                    self.fields.setdefault(number, []).append(a)
                position = b
        for number in header.MESSAGES:
            if any(type(value) is not bytes for value in self.fields.get(number, ())):
                raise ProtoError(f"field {number} has an unexpected wire type", offset=0)
        if any(type(value) is not int for value in self.fields.get(_ENTRY_ID, ())):
            raise ProtoError(f"field {_ENTRY_ID} has an unexpected wire type", offset=0)

    def _take_computations(self, position: int) -> int:
        """Finds computations that stand side by side with sizes of two or three bytes; gives the place behind them."""
        data, starts, ends = self.data, *self.spans
        last = len(data) - 4
        while position < last and data[position] == _COMPUTATION_TAG and (low := data[position + 1]) > 127:
            middle, high = data[position + 2], data[position + 3]
            start = position + 3 if middle < 128 else position + 4
            span = low & 127 | (middle & 127) << 7
            if middle > 127:
                if high > 127:
                    break
                span |= high << 14
            if span < LEAST or start + span > len(data):
                break
            starts.append(start)
            ends.append(position := start + span)
        return position

    def _add_span(self, start: int, end: int) -> None:
        if end - start < LEAST:
            where = f"computations[{len(self.spans[0])}]"
            raise ProtoError("a computation has no instructions", where, start)
        self.spans[0].append(start)
        self.spans[1].append(end)

    # ---- computations

    def _read_computations(self, module: Module) -> None:
        heads = Heads(self.tools, self.fields.get(_PAYLOADS, []))
        orders: list[tuple[str, tuple[str, ...]]] = []
        by_key, schedule, is_careful = self.by_key, self.schedule, self.is_careful
        read, careful = Bodies(self.data, heads, by_key).read, CarefulBodies(self.data, heads, by_key)
        for place, (start, end) in enumerate(zip(*self.spans, strict=True)):
            body = None
            if not is_careful:
                try:  # noqa: SIM105 - for every computation
                    body = read(module, start, end)
                except (ProtoError, LookupError):  # an id that nothing has, a cut number
                    pass
            if body is None:
                body = careful.read(module, f"computations[{place}]", start, end)
            if body.key in by_key:
                raise ProtoError(
                    f"two computations have the id {number_of(body.key)}", f"computations[{place}]"
                )
            computation = by_key[body.key] = body.computation
            computation._root = body.root
            if body.calls:
                if len(body.calls) > 1:
                    body.calls.sort(key=_order_of_call)  # as XLA keeps them
                self.calls[computation] = [called for _, called in body.calls]
            planned = None if schedule is None else schedule.get(body.key)
            computation._instructions = (
                print_order.instruction_order(body) if planned is None else _as_planned(body, planned)
            )
            if len(body.calls) > 1 and (stored := _stored_order(body)) is not None:
                orders.append((computation._name, stored))
            if self.instructions is not None:
                for local, node in zip(body.local_ids(), body.nodes, strict=True):
                    self.instructions[number_of(body.key) << 32 | local] = node
        module._stored_bodies = tuple(orders)


def _order(key: str) -> tuple[int, str]:
    """Sort key that orders varints of minimal length by value."""
    return len(key), key[::-1]


def _order_of_call(call: tuple[str, Any]) -> tuple[int, str]:
    return _order(call[0])


def _at(path: str, read: Any) -> Any:
    """The result of a function, with the path in what it raises."""
    try:
        return read()
    except ProtoError as error:
        raise ProtoError(error.bare_message, f"{path}{error.path}") from None


def _as_planned(body: Body, planned: str) -> list[Instruction]:
    """The instructions in the order of the schedule."""
    if planned == "".join(body.ids()):
        return body.nodes
    left: dict[Any, Instruction] = dict(zip(body.ids(), body.nodes, strict=True))
    keys: list[Any] = varints(planned)
    try:
        found = [left.pop(key) for key in keys]
        if not left:
            return found
    except KeyError:  # other upper halves, or numbers that are written longer than they need to be
        left = dict(zip(body.local_ids(), body.nodes, strict=True))
        others = [left.pop(number_of(key) & LOCAL, None) for key in keys]
        if not left and None not in others:
            return others  # type: ignore[return-value]
    raise ProtoError(
        f"the schedule of computation {body.computation.name} does not contain each instruction exactly once",
        "schedule",
    )


def _stored_order(body: Body) -> tuple[str, ...] | None:
    """The names of the instructions by their ids, where those that call others stand in another order in the module."""
    of_id = dict(zip(body.ids(), body.nodes, strict=True))
    callers = [of_id[key] for key, _ in body.calls]
    wanted = frozenset(callers)
    if callers == [node for node in body.computation._instructions if node in wanted]:
        return None
    pairs = sorted(zip(body.local_ids(), range(len(body.nodes)), strict=True))
    return tuple([body.nodes[place]._name for _, place in pairs])


def _schedule(raw: bytes) -> dict[str, str]:
    """A map's entries by key, each a list of ids."""
    found: dict[str, str] = {}
    for number, kind, start, end in wire.scan(raw, 0, len(raw)):
        if number != 1 or kind != BYTES:
            continue
        key, pieces = 0, []
        for field, field_kind, a, b in wire.scan(raw, start, end):
            if field == 1 and field_kind == VARINT:
                key = a
            elif field == 2:
                if field_kind != BYTES:
                    raise ProtoError("a sequence has an unexpected wire type")
                pieces += [_ids(raw, one) for one in wire.scan(raw, a, b) if one[0] == 1]
        found[encoded(key).decode("latin-1")] = "".join(pieces)
    return found


def _ids(raw: bytes, found: tuple[int, int, int, int]) -> str:
    """A list of ids, or one of them."""
    _, kind, start, end = found
    if kind == VARINT:
        return encoded(start).decode("latin-1")
    if kind != BYTES or (start < end and raw[end - 1] > 127):
        raise ProtoError("a list of numbers is truncated")
    return raw[start:end].decode("latin-1")


CONFIG_NUMBERS = {4: "replica_count", 5: "num_partitions"}
"""Fields of `HloModuleConfigProto` that are numbers, with the header's attribute that each is."""
CONFIG_FLAGS = {
    27: "allow_spmd_sharding_propagation_to_output",
    33: "allow_spmd_sharding_propagation_to_parameters",
}
"""The same of lists of flags."""


def read_config(module: Module, data: bytes, name: str = "") -> None:
    """Adds the attributes in the config of a `HloModuleProtoWithConfig` to the header. Raises ProtoError if it is
    invalid.
    """
    tools = Tools()
    for number, kind, start, end in wire.scan(data, 0, len(data), name):
        if number != 2 or kind != BYTES:
            continue
        module._has_config = True
        flags: dict[str, list[bool]] = {}
        for field, field_kind, a, b in wire.scan(data, start, end, name):
            if field == 1 and field_kind == BYTES:
                module._attributes[ENTRY_LAYOUT] = tools.shapes.program_shape(data[a:b])
            elif field in CONFIG_NUMBERS and field_kind == VARINT and a != 1:
                module._attributes[CONFIG_NUMBERS[field]] = a
            elif field == 17 and field_kind == VARINT and a:
                module._attributes["alias_passthrough_params"] = True
            elif field in CONFIG_FLAGS:
                values = (
                    [a]
                    if field_kind == VARINT
                    else wire.unpacked(data, a, b, name)
                    if field_kind == BYTES
                    else ()
                )
                flags.setdefault(CONFIG_FLAGS[field], []).extend(map(bool, values))
        for attribute, given in flags.items():
            if given != [False]:
                module._attributes[attribute] = tuple(given)
