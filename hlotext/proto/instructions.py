"""One computation's instructions field by field: for what `bodies` does not cut, and to say what is wrong and where."""

from __future__ import annotations

from typing import Any

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.configs import BackendConfig
from hlotext.proto import pool, wire
from hlotext.proto.calls import REPEATING, callees
from hlotext.proto.errors import ProtoError
from hlotext.proto.fast_computations import LOCAL, Body
from hlotext.proto.instruction_templates import Heads
from hlotext.proto.literals import encoded, field
from hlotext.proto.metadata import text
from hlotext.proto.wire import BYTES, VARINT

LEAST = 8
"""Bytes that an instruction takes at least. What has fewer is refused before anything is made for it."""
_NAME, _ID, _OPERANDS, _PREDECESSORS, _CALLED = 1, 35, 36, 37, 38


class CarefulBodies:
    """Reader of the computations of one module with fields in any order. Raises ProtoError with path and offset."""

    def __init__(self, data: bytes, heads: Heads, known: dict[str, Computation]) -> None:
        self._data = data
        self._heads = heads
        self._known = known
        """Computations read so far, by the varint of their id."""

    def read(self, module: Module, path: str, start: int, end: int) -> Body:
        """Reads the computation between two offsets. Raises ProtoError if it is malformed or has no instructions."""
        name, thread, number, root = "", "main", 0, 0
        config: BackendConfig | None = None
        spans: list[tuple[int, int]] = []
        for count, (tag, kind, a, b) in enumerate(wire.scan(self._data, start, end)):
            if tag == 2 and kind == BYTES:
                if b - a < LEAST:
                    where = f"{path}.instructions[{len(spans)}]"
                    raise ProtoError("an instruction has no opcode", where, a)
                spans.append((a, b))
            elif count - len(spans) > wire.MAX_FIELDS:
                raise ProtoError(f"a message has more than {wire.MAX_FIELDS:,} fields", path, a)
            elif kind == BYTES and tag in (1, 8):
                value = _text(self._data[a:b], f"{path}.name")
                name, thread = (value, thread) if tag == 1 else (name, value or "main")
            elif kind == BYTES and tag == 9:
                config = BackendConfig(_text(self._data[a:b], f"{path}.backend_config"))
            elif kind == VARINT:
                number, root = (a, root) if tag == 5 else (number, a) if tag == 6 else (number, root)
        if not spans:
            raise ProtoError(f"computation {name} has no instructions", path)
        computation = Computation(name, module=module)
        computation._parts_read = None
        computation._execution_thread = thread
        computation._backend_config = config
        body = _Body(self._data, self._heads, self._known, computation)
        for place, (a, b) in enumerate(spans):
            try:
                body.add(a, b)
            except ProtoError as error:
                where = f"{path}.instructions[{place}]{'.' if error.path else ''}{error.path}"
                raise ProtoError(error.bare_message, where, a) from None
        found = body.by_id.get(root & LOCAL)
        if found is None:
            raise ProtoError(f"no instruction has root id {root}", f"{path}.root_id")
        nodes = list(body.by_id.values())
        keys = [_varint(local) for local in body.by_id]
        return Body(computation, _varint(number), nodes, found, keys, "", body.calls, body.has_predecessors)


class _Body:
    """The instructions of one computation so far."""

    def __init__(
        self, data: bytes, heads: Heads, known: dict[str, Computation], computation: Computation
    ) -> None:
        self._data = data
        self._heads = heads
        self._known = known
        self._computation = computation
        self._names: set[str] = set()
        self.by_id: dict[int, Instruction] = {}
        self.calls: list[tuple[str, list[Computation]]] = []
        self.has_predecessors = False

    def add(self, start: int, end: int) -> None:
        """Reads the instruction between two places."""
        fields = in_order(self._data, start, end)
        before = b"".join([raw for number in fields if _NAME < number < _ID for raw in fields[number]])
        rest = b"".join([raw for number in fields if number > _CALLED for raw in fields[number]])
        if _NAME not in fields:
            raise ProtoError("an instruction has no name", "name")
        (_, kind, a, b), *_ = wire.scan(fields[_NAME][0], 0, len(fields[_NAME][0]))
        if kind != BYTES:
            raise ProtoError("name has an unexpected wire type", "name")
        name = fields[_NAME][0][a:b].decode("utf-8", "replace")
        if name in self._names:
            raise ProtoError(f"two instructions are named {name}", "name")
        numbers = _numbers(fields, _ID, "id")
        local = numbers[-1] & LOCAL if numbers else 0
        if local in self.by_id:
            raise ProtoError(f"two instructions have the id {numbers[-1] if numbers else 0}", "id")
        operands = self._nodes(_numbers(fields, _OPERANDS, "operand_ids"), "operand_ids")
        predecessors = self._nodes(
            _numbers(fields, _PREDECESSORS, "control_predecessor_ids"), "control_predecessor_ids"
        )
        parts = self._heads.parts(before.decode("latin-1"), rest.decode("latin-1"))
        node, attributes, is_odd, takes, met, head = parts
        if is_odd:
            if head.fields is not None:
                attributes = self._heads.for_operands(head, head.fields, operands)
            called = _numbers(fields, _CALLED, "called_computation_ids")
            if called:
                attributes = {**attributes, **self._called(local, node.opcode, called, operands)}
        if predecessors:
            self.has_predecessors = True
            attributes = {**attributes, "control-predecessors": tuple(dict.fromkeys(predecessors))}
        made = Instruction(name, "", None, operands, attributes, None, self._computation)
        made._head = node
        told: Any = takes
        if takes != len(operands):
            told = tuple([id(operand._head.shape) for operand in operands])
            told = told[0] if len(operands) == 1 else told
        if is_odd and _CALLED not in fields:
            told = told, None
        if told not in met:
            self._heads.check(made, told, met)
        self._names.add(name)
        self.by_id[local] = made

    def _nodes(self, numbers: list[int], what: str) -> tuple[Instruction, ...]:
        try:
            return tuple([self.by_id[number & LOCAL] for number in numbers])
        except KeyError:
            missing = next(number for number in numbers if number & LOCAL not in self.by_id)
            raise ProtoError(f"no instruction before it has the id {missing}", what) from None

    def _called(
        self, local: int, opcode: str, numbers: list[int], operands: tuple[Instruction, ...]
    ) -> dict[str, Any]:
        found = []
        for number in numbers:
            computation = self._known.get(_varint(number))
            if computation is None:
                raise ProtoError(f"no computation before it has the id {number}", "called_computation_ids")
            found.append(computation)
        if opcode in REPEATING:
            return {}
        self.calls.append((_varint(local), found))
        return callees(opcode, found, operands)


def in_order(data: bytes, start: int, end: int) -> dict[int, list[bytes]]:
    """Returns an instruction's fields by number, each with its tag, as often as XLA's schema allows.

    Occurrences of a message field are merged; of any other non-repeated field, the last one is used.
    """
    schema = pool.messages()["HloInstructionProto"]
    found: dict[int, list[bytes]] = {}
    position = start
    for count, (number, kind, a, b) in enumerate(wire.scan(data, start, end)):
        if count > wire.MAX_FIELDS:
            raise ProtoError(f"a message has more than {wire.MAX_FIELDS:,} fields")
        known = schema.get(number)
        values = found.setdefault(number, [])
        if known is None or known.is_repeated or not values:
            values.append(data[position:b])
        elif known.is_message and kind == BYTES:
            values[:] = [field(number, _content(values[0]) + data[a:b])]
        else:
            values[:] = [data[position:b]]
        position = b
    return {number: found[number] for number in sorted(found)}


def _content(raw: bytes) -> bytes:
    """The value of a field of bytes; nothing for other wire types."""
    ((_, kind, a, b),) = wire.scan(raw, 0, len(raw))
    return raw[a:b] if kind == BYTES else b""


def _numbers(fields: dict[int, list[bytes]], number: int, what: str) -> list[int]:
    """The numbers of a field, packed or not."""
    found: list[int] = []
    for raw in fields.get(number, ()):
        ((_, kind, a, b),) = wire.scan(raw, 0, len(raw))
        if kind == VARINT:
            found.append(a)
        elif kind == BYTES and number != _ID:
            found += wire.unpacked(raw, a, b)
        else:
            raise ProtoError(f"{what} has an unexpected wire type", what)
    return found


def _varint(number: int) -> str:
    return encoded(number).decode("latin-1")


def _text(raw: bytes, path: str) -> str:
    try:
        return text(raw)
    except ProtoError as error:
        raise ProtoError(error.bare_message, path) from None
