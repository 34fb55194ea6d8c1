"""Many `HloInstructionProto` at once: columns of fields become nodes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from hlotext.ir.memo import memoised
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Calls, Printing
from hlotext.ir.values.shape import Shape
from hlotext.proto import pool, wire
from hlotext.proto.errors import ProtoError
from hlotext.proto.heads import Head, Heads
from hlotext.proto.literals import field
from hlotext.proto.wire import BYTES, VARINT, Buffer, Column, Ints

_NAME, _OPCODE, _SHAPE, _METADATA, _LITERAL, _ID, _OPERANDS, _PREDECESSORS, _CALLED = (
    1,
    2,
    3,
    7,
    8,
    35,
    36,
    37,
    38,
)
_LOCAL = 0xFFFFFFFF
"""An instruction's id has the computation's above these bits (`HloInstruction::CalculateLocalId`)."""


class Batch:
    """The instructions of some computations."""

    def __init__(self, buffer: Buffer, heads: Heads) -> None:
        self.buffer = buffer
        self.heads = heads
        self.paths: list[str] = []
        self.bounds = [0]
        self.nodes: list[Instruction] = []
        self.predecessors: dict[int, list[int]] = {}
        """The control predecessors' places, of instructions that have some."""
        self.calls: dict[int, list[Computation]] = {}
        """What is called, by the place of the instruction."""
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, path: str, starts: list[int], ends: list[int]) -> None:
        """Adds the instructions of one computation."""
        self.paths.append(path)
        self._starts += starts
        self._ends += ends
        self.bounds.append(len(self._starts))

    def error(self, message: str, row: int, field: str = "") -> ProtoError:
        """An error of one instruction, with its path."""
        number = int(np.searchsorted(np.array(self.bounds), row, side="right")) - 1
        path = f"{self.paths[number]}.instructions[{row - self.bounds[number]}]"
        return self.buffer.error(message, self.places[row], f"{path}.{field}" if field else path)

    # ---- columns

    def read(self) -> None:
        """Takes all instructions apart. Raises ProtoError."""
        self.places = self._starts
        try:
            self._read()
        except Unordered:
            # Other writers than XLA may give fields in another order or in pieces: such a batch is written anew first.
            data = self.buffer.data
            pieces = [in_order(data, a, b) for a, b in zip(self._starts, self._ends, strict=True)]
            bounds = [0, *itertools.accumulate(map(len, pieces))]
            self._starts, self._ends = bounds[:-1], bounds[1:]
            self.buffer = Buffer.of(b"".join(pieces), self.buffer.name)
            self._read()

    def _read(self) -> None:
        starts, ends = (np.array(part, dtype=np.int64) for part in (self._starts, self._ends))
        self.count = len(starts)
        found, rests = wire.columns(self.buffer, starts, ends, last=_CALLED)
        self._check_order(found)
        data = self.buffer.data
        names, opcode = self._column(found, _NAME, "name"), self._column(found, _OPCODE, "opcode")
        # Bytes as characters, so that one slice is a name; the few that are not ASCII are decoded behind.
        characters = self.buffer.characters
        self.names = [characters[a:b] for a, b in _spans(names.start, names.end)]
        if not "".join(self.names).isascii():
            self.names = [name.encode("latin-1").decode("utf-8", "replace") for name in self.names]
        # What lies between the name and the ids, and what lies behind them: instructions with equal bytes are one head.
        stops = rests.copy()
        for number in (_CALLED, _PREDECESSORS, _OPERANDS, _ID):
            if number in found:
                stops[found[number].rows[::-1]] = found[number].at[::-1]
        self.head_keys = [
            (data[a:b], data[c:d])
            for a, b, c, d in zip(
                opcode.at.tolist(), stops.tolist(), rests.tolist(), ends.tolist(), strict=True
            )
        ]
        self._find_operands(found)

    def _check_order(self, found: dict[int, Column]) -> None:
        """Fields in the order of their numbers, each once, are what slices of the file rely on; XLA writes no others."""
        rows = np.concatenate([column.rows for column in found.values()] or [np.zeros(0, dtype=np.int64)])
        at = np.concatenate([column.at for column in found.values()] or [np.zeros(0, dtype=np.int64)])
        order = np.argsort(rows, kind="stable")  # the columns come by number
        rows, at = rows[order], at[order]
        wrong = (rows[1:] == rows[:-1]) & (at[1:] < at[:-1])
        if wrong.any():
            raise Unordered(int(rows[1:][wrong][0]))

    def _column(self, found: dict[int, Column], number: int, what: str) -> Column:
        """A field that every instruction has once."""
        column = found.get(number)
        rows = column.rows if column is not None else np.zeros(0, dtype=np.int64)
        if len(rows) != self.count or (rows != np.arange(self.count)).any():
            counts = np.bincount(rows, minlength=self.count)
            row = int(np.flatnonzero(counts != 1)[0])
            if counts[row]:
                raise Unordered(row)
            raise self.error(f"an instruction has no {what}", row, what)
        assert column is not None
        self._expect(column, BYTES, what)
        return column

    def _expect(self, column: Column, kind: int, what: str) -> None:
        wrong = column.wire_type != kind
        if wrong.any():
            raise self.error(f"{what} has another wire type", int(column.rows[wrong][0]), what)

    def _find_operands(self, found: dict[int, Column]) -> None:
        """The places of operands and control predecessors, found by their ids all at once."""
        count = self.count
        ids = np.zeros(count, dtype=np.int64)
        column = found.get(_ID)
        if column is not None:
            self._expect(column, VARINT, "id")
            ids[column.rows] = column.start
        bounds = np.array(self.bounds)
        owner = np.repeat(np.arange(len(self.paths), dtype=np.int64), np.diff(bounds))
        keys = owner << 32 | ids & _LOCAL
        self.ids = (ids & _LOCAL).tolist()
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        twice = np.flatnonzero(ranked[1:] == ranked[:-1])
        if len(twice):
            row = int(order[twice[0] + 1])
            raise self.error(f"two instructions have the id {int(ids[row])}", row, "id")
        self.by_id = order.tolist()
        """Places in the order of ids, computation by computation."""

        def places(number: int, field: str) -> tuple[Ints, Ints]:
            column = found.get(number)
            if column is None:
                return np.zeros(0, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
            numbers, ends = wire.packed(self.buffer, column, count)
            rows = np.repeat(np.arange(count), np.diff(ends))
            wanted = owner[rows] << 32 | numbers & _LOCAL
            at = np.minimum(np.searchsorted(ranked, wanted), count - 1)
            found_at = order[at]
            wrong = (ranked[at] != wanted) | (found_at >= rows)
            if wrong.any():
                first = int(np.flatnonzero(wrong)[0])
                message = f"no instruction before it has the id {int(numbers[first])}"
                raise self.error(message, int(rows[first]), field)
            return found_at, ends

        operands, ends = places(_OPERANDS, "operand_ids")
        self.operands, self.operand_bounds = operands.tolist(), ends.tolist()
        before, ends = places(_PREDECESSORS, "control_predecessor_ids")
        if len(before):
            numbers = before.tolist()
            for row in np.flatnonzero(np.diff(ends)).tolist():
                self.predecessors[row] = list(dict.fromkeys(numbers[ends[row] : ends[row + 1]]))
        self.called: dict[int, list[int]] = {}
        column = found.get(_CALLED)
        if column is not None:
            called, ends = wire.packed(self.buffer, column, count)
            ids_of_called = called.tolist()
            for row in np.flatnonzero(np.diff(ends)).tolist():
                self.called[row] = ids_of_called[ends[row] : ends[row + 1]]

    # ---- nodes

    def build(self, number: int, computation: Computation, computations: dict[int, Computation]) -> None:
        """Makes the nodes of the computation that was added as the `number`th, which calls those that are known by id."""
        first, last = self.bounds[number], self.bounds[number + 1]
        names = self.names[first:last]
        if len(set(names)) != len(names):
            seen: set[str] = set()
            for row, name in enumerate(names, first):
                if name in seen:
                    raise self.error(f"two instructions are called {name}", row, "name")
                seen.add(name)
        try:
            self._make(first, last, computation, computations)
        except ProtoError as error:
            raise self.error(error.bare_message, len(self.nodes), error.path) from None

    def _make(
        self, first: int, last: int, computation: Computation, computations: dict[int, Computation]
    ) -> None:
        """Makes the nodes of these rows, in order.

        The hot loop of the reader, one turn for each instruction, so its steps stand here and not in methods.
        """
        nodes, places, bounds = self.nodes, self.operands, self.operand_bounds
        append, new, line = nodes.append, object.__new__, Form.LINE
        known, make_head, check = self.heads.known, self.heads.parts, self.heads.check
        predecessors, names, head_keys = self.predecessors, self.names, self.head_keys
        self.calls = {}
        b = bounds[first]
        for row in range(first, last):
            try:
                opcode, shape, attributes, argument, is_odd, is_simple, met, head = known[head_keys[row]]
            except KeyError:
                opcode, shape, attributes, argument, is_odd, is_simple, met, head = make_head(head_keys[row])
            a, b = b, bounds[row + 1]
            count = b - a
            operands: tuple[Instruction, ...]
            if count == 1:
                operands = (nodes[places[a]],)
            elif count == 2:
                operands = nodes[places[a]], nodes[places[a + 1]]
            elif count:
                operands = tuple([nodes[place] for place in places[a:b]])
            else:
                operands = ()
            if is_odd:
                attributes = self._odd(row, head, operands, computations)
            if predecessors and row in predecessors:
                before = tuple([nodes[place] for place in predecessors[row]])
                attributes = {**attributes, "control-predecessors": before}
            # What `Instruction(...)` would do, in half of its time.
            instruction = new(Instruction)
            instruction._name = names[row]
            instruction._opcode = opcode
            instruction._shape = shape
            instruction._operands = operands
            instruction._attributes = attributes
            instruction._argument = argument
            instruction._computation = computation
            instruction._place = None
            instruction._form = line
            instruction._is_touched = False
            instruction._users = None
            if is_simple:
                if count not in met:
                    check(head, instruction)
            elif tuple([id(operand._shape) for operand in operands]) not in met:
                check(head, instruction)
            append(instruction)

    def _odd(
        self, row: int, head: Head, operands: tuple[Instruction, ...], computations: dict[int, Computation]
    ) -> dict[str, Any]:
        """The attributes where they depend on operands, or name computations."""
        attributes = self.heads.for_operands(head, operands)
        called = self.called.get(row)
        if called is None:
            return attributes
        found = []
        for key in called:
            computation = computations.get(key)
            if computation is None:
                raise ProtoError(f"no computation before it has the id {key}", "called_computation_ids")
            found.append(computation)
        if head.opcode in ("async-update", "async-done"):
            return attributes  # they repeat what the start says
        self.calls[row] = found
        return {**attributes, **callees(head.opcode, found, operands)}


class Unordered(Exception):  # noqa: N818 - caught where batches are read
    """An instruction whose fields come in another order than that of their numbers, or in pieces."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def in_order(data: bytes, start: int, end: int) -> bytes:
    """An instruction with its fields in the order of their numbers, each as often as XLA's schema has it.

    Of a message in pieces the pieces are joined; of any other field that is not repeated the last one counts.
    """
    schema = pool.messages()["HloInstructionProto"]
    found: dict[int, list[bytes]] = {}
    position = start
    for number, kind, a, b in wire.scan(data, start, end):
        known = schema.get(number)
        values = found.setdefault(number, [])
        if known is None or known.is_repeated or not values:
            values.append(data[position:b])
        elif known.is_message and kind == BYTES:
            whole = b"".join([values[0][-size:] for size in (_content(values[0]),) if size]) + data[a:b]
            values[:] = [field(number, whole)]
        else:
            values[:] = [data[position:b]]
        position = b
    return b"".join([raw for number in sorted(found) for raw in found[number]])


def _content(raw: bytes) -> int:
    """How many bytes the value of a field of bytes has; 0 for other wire types."""
    ((_, kind, a, b),) = wire.scan(raw, 0, len(raw))
    return b - a if kind == BYTES else 0


def _spans(starts: Ints, ends: Ints) -> Any:
    return zip(starts.tolist(), ends.tolist(), strict=True)


def callees(opcode: str, called: list[Computation], operands: tuple[Instruction, ...]) -> dict[str, Any]:
    """The called computations as attributes; they come in XLA's stored order."""
    index: Shape | None = operands[0].shape if operands and opcode == "conditional" else None
    names = _names_of_calls(opcode, index is not None and index.element_type.name == "pred")
    if names is None:
        raise ProtoError(f"opcode {opcode} calls computations in a way that this release does not know")
    if isinstance(names, str):
        return {names: tuple(called)}
    if len(names) != len(called):
        raise ProtoError(
            f"{opcode} calls {len(names)} computations, but {len(called)} are given", "called_computation_ids"
        )
    return dict(zip(names, called, strict=True))


@memoised(1_000)
def _names_of_calls(opcode: str, is_predicate: bool) -> str | tuple[str, ...] | None:
    """The attributes that name computations, or the one that lists them; None for an opcode that is not known."""
    row = opcodes.opcode(opcode)
    if row is None:
        return None
    names = row.stored_called_names
    if opcode == "conditional":
        names = names[:2] if is_predicate else names[2:]
    uses = [use for name in names if (use := row.attribute(name)) is not None]
    if uses and uses[0].calls is Calls.LIST:
        return uses[0].name
    return tuple([use.name for use in uses if use.printed is not Printing.INPUT_ONLY])
