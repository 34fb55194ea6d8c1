"""Templates shared by many instructions: opcode, shape, the opcode's own attributes and the common ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from hlotext.ir import caches
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.raw import NodeHead
from hlotext.ir.tables import comparison, opcodes, traits
from hlotext.ir.tables.opcode import AttributeUse, Calls, Derived, Printing
from hlotext.ir.values.configs import BackendConfig
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.shape import Shape
from hlotext.proto import attributes as table
from hlotext.proto import common, shardings, wire
from hlotext.proto.codec import Tools
from hlotext.proto.errors import ProtoError
from hlotext.proto.fields import Fields
from hlotext.proto.literals import read_literal
from hlotext.proto.metadata import payload_of, read_metadata, text
from hlotext.proto.wire import VARINT
from hlotext.semantics import conditions

_OPCODE, _SHAPE, _METADATA, _LITERAL, _PARAMETER, _CALLED = 2, 3, 7, 8, 9, 38
_SHARDING, _CONFIG, _FRONTEND, _STATISTICS, _ORIGIN, _ACCURACY, _PAYLOAD = 40, 43, 68, 82, 88, 91, 99
LONGEST = 1 << 12
"""Bytes of a head that is remembered; longer ones are large literals, which hardly come twice."""
_OLD_COMPARISONS = {
    "equal-to": "EQ", "not-equal-to": "NE", "greater-than-or-equal-to": "GE", "greater-than": "GT",
    "less-than-or-equal-to": "LE", "less-than": "LT",
}  # fmt: skip
"""Opcodes of protos from before `compare`, and what they compare."""


_HEADS = caches.Cache(20_000)
"""Heads by their two pieces, of modules without a table of payloads."""
_MOST_MET = 64
"""Kinds of operands that are remembered of one head."""
_MOST = 4_000
"""Heads of one module that are kept there."""


@attrs.define(eq=False)
class InstructionTemplate:
    """Template of instructions whose bytes differ only in name, metadata and operands."""

    node: NodeHead
    """Opcode, shape and argument."""
    attributes: dict[str, Any]
    """Shared by all of them, so never changed in place."""
    fields: Fields | None
    """For attributes that depend on the operands."""
    is_odd: bool
    """Attributes depend on the operands, or computations are called."""
    takes: int
    """Number of operands of the opcode, if its conditions depend on nothing else; otherwise -1."""
    base: InstructionTemplate | None = None
    """The same without metadata; None if it has none."""
    met: dict[Any, Any] = attrs.field(factory=dict)
    """Operands for which XLA's conditions are known to be met, of a base: their number where it is the one that is taken,
    else the ids of their shapes. The values keep the shapes alive, so that their ids stay theirs."""


Parts: TypeAlias = tuple[NodeHead, dict[str, Any], bool, int, dict[Any, Any], InstructionTemplate]
"""The fields of a head that every instruction needs, its base's `met`, and the head."""


class Heads:
    """The instruction templates of one module."""

    def __init__(self, tools: Tools, payloads: list[bytes]) -> None:
        self.tools = tools
        self.payloads = payloads
        self._bases: dict[tuple[bytes, bytes, bytes], InstructionTemplate] = {}
        self._metadata: dict[bytes, Metadata | None] = {}
        self._starts: dict[bytes, tuple[str, Shape, str]] = {}
        self._ends: dict[bytes, list[tuple[int, int | bytes]]] = {}
        self._common: dict[tuple[int, bytes], Any] = {}
        self._for_shapes: dict[Any, dict[str, Any]] = {}
        self.kept: list[Any] = []

    def parts(self, before: str, rest: str) -> Parts:
        """Returns the template for the fields from the opcode to the id, and those after the called computations.

        Both are bytes, as strings of characters below 256. Raises ProtoError unless they are such fields in order.
        """
        # A module with many of them would only drive those of others out.
        is_kept = not self.payloads and len(self.kept) < _MOST
        head: InstructionTemplate | None = _HEADS.results.get((before, rest)) if is_kept else None
        if head is None:
            head = self._head(before.encode("latin-1"), rest.encode("latin-1"))
            if is_kept:
                _HEADS.put((before, rest), head)
        self.kept.append(head)  # ids are told apart as long as what they are of lives
        met = (head.base or head).met
        return head.node, head.attributes, head.is_odd, head.takes, met, head

    def _head(self, before: bytes, rest: bytes) -> InstructionTemplate:
        start = middle = 0
        metadata = b""
        last = 1
        has_opcode = has_shape = False
        for number, kind, a, b in wire.fields(before):
            if number < last or (number == last and number <= _METADATA):
                raise ProtoError(f"field {number} is out of order, or appears twice")
            last = number
            if number <= _SHAPE:
                start = middle = b
                has_opcode |= number == _OPCODE
                has_shape |= number == _SHAPE
            elif number == _METADATA and kind == wire.BYTES:
                metadata, middle = before[a:b], b
            elif number < _LITERAL:
                middle = b
        if not has_opcode or not has_shape:
            name = "shape" if has_opcode else "opcode"
            raise ProtoError(f"an instruction has no {name}", name)
        base = self._base((before[:start], before[middle:], rest))
        if metadata:
            found = self._metadata.get(metadata, self)
            if found is self:
                found = _at("metadata", lambda: read_metadata(metadata, self.tools.classes, self.payloads))
                self._metadata[metadata] = found
            if isinstance(found, Metadata) and found.is_printed:
                return InstructionTemplate(
                    base.node, {**base.attributes, "metadata": found}, base.fields, base.is_odd, base.takes, base,
                )  # fmt: skip
        return base

    def _base(self, key: tuple[bytes, bytes, bytes]) -> InstructionTemplate:
        found = self._bases.get(key)
        return found if found is not None else self._make(key)

    def _make(self, key: tuple[bytes, bytes, bytes]) -> InstructionTemplate:
        """The head of three pieces without metadata: opcode and shape, fields up to the id, fields behind the calls."""
        start, middle, rest = key
        known = self._starts.get(start)
        if known is None:
            known = self._starts[start] = self._start(start)
        opcode, shape, direction = known
        values: dict[int, list[int | bytes]] = {}
        for number, value in _values(middle, _LITERAL, _CALLED - 4):
            values.setdefault(number, []).append(value)
        end = self._ends.get(rest)
        if end is None:
            end = self._ends[rest] = _values(rest, _CALLED + 1, 1 << 29)
        for number, value in end:
            values.setdefault(number, []).append(value)
        if direction:
            values[63] = [direction.encode()]
        fields = Fields(values)
        depends = opcode in _BY_OPERANDS
        given = {} if depends else self._own(opcode, fields, (), shape)
        self._add_common(given, fields, values)
        takes = -1 if "parameter_replication" in given else _TAKES.get(opcode, -1)
        head = InstructionTemplate(
            NodeHead(opcode, shape, self._argument(opcode, fields, shape)), given, fields if depends else None,
            depends or opcode not in _CALL_NOTHING, takes,
        )  # fmt: skip
        if sum(map(len, key)) <= LONGEST:
            self._bases[key] = head
        return head

    def _start(self, raw: bytes) -> tuple[str, Shape, str]:
        parts = {number: raw[a:b] for number, kind, a, b in wire.scan(raw, 0, len(raw)) if kind == wire.BYTES}
        for number, name in ((_OPCODE, "opcode"), (_SHAPE, "shape")):
            if number not in parts:
                raise ProtoError(f"{name} has an unexpected wire type", name)
        word = _at("opcode", lambda: text(parts[_OPCODE]))
        if not word:
            raise ProtoError("an instruction has no opcode", "opcode")
        shape = _at("shape", lambda: self.tools.shapes.shape(parts[_SHAPE]))
        direction = _OLD_COMPARISONS.get(word, "")
        word = "compare" if direction else word
        row = opcodes.opcode(word)
        return row.name if row is not None else word, shape, direction

    def _argument(self, opcode: str, fields: Fields, shape: Shape) -> int | Literal | None:
        if opcode == "parameter":
            return fields.number(_PARAMETER)
        if opcode != "constant":
            return None
        raw = fields.raw(_LITERAL)
        if raw is None:
            return Literal.elided(shape)
        found: Literal = _at("literal", lambda: read_literal(raw, shape, self.tools.shapes))
        return found

    # ---- attributes

    def for_operands(
        self, head: InstructionTemplate, fields: Fields, operands: tuple[Instruction, ...]
    ) -> dict[str, Any]:
        """Returns the attributes of an instruction whose template has fields that depend on the operands."""
        key = id(head), *[id(operand._head.shape) for operand in operands]
        found = self._for_shapes.get(key)
        if found is None:
            found = {**self._own(head.node.opcode, fields, operands, head.node.shape), **head.attributes}
            self._for_shapes[key] = found
        return found

    def _own(
        self, opcode: str, fields: Fields, operands: tuple[Instruction, ...], shape: Shape | None
    ) -> dict[str, Any]:
        """The opcode's own attributes, as far as the text would say them."""
        given: dict[str, Any] = {}
        for use, read in _WAYS.get(opcode, ()):
            try:
                value = read(fields, self.tools)
            except ProtoError as error:
                raise ProtoError(error.bare_message, use.name) from None
            if value is not None and is_shown(use, value, operands):
                given[use.name] = value
        if opcode == "compare" and "type" in given:
            given.pop("order", None)  # which says the same
        if opcode == "compare" and "direction" not in given:
            raise ProtoError("a comparison has no direction", "comparison_direction")
        if opcode.startswith("collective-permute") and 20 in fields:
            given["slice_sizes"] = _slice_sizes(fields.numbers(20), operands)
        return given

    def _add_common(
        self, given: dict[str, Any], fields: Fields, values: dict[int, list[int | bytes]]
    ) -> None:
        """Adds what every instruction may have."""
        for number, name, read in _COMMON:
            if number in values:
                raw = fields.raw(number) or b""
                value = self._common.get((number, raw), self)
                if value is self:
                    try:
                        value = self._common[number, raw] = read(raw, self.tools)
                    except ProtoError as error:
                        raise ProtoError(error.bare_message, name) from None
                if value is not None:
                    given[name] = value
        if _PAYLOAD in values:
            raw = fields.raw(_PAYLOAD) or b""
            payload = _at(
                "backend_config_payload", lambda: payload_of(raw, self.tools.classes, self.payloads)
            )
            if (config := _config(payload, self.tools)) is not None:
                given["backend_config"] = config

    # ---- conditions

    def check(self, instruction: Instruction, told: Any, met: dict[Any, Any]) -> None:
        """Raises ProtoError if XLA's parser would reject an instruction. Conditions that depend on shapes only are
        cached.
        """
        for problem in (*conditions.of_opcode(instruction), *conditions.of_values(instruction)):
            if problem.is_error:
                raise ProtoError(f"{instruction._name}: {problem.message}")
        if instruction._head.opcode not in conditions.LOOK_FURTHER:
            if len(met) >= _MOST_MET:
                met.clear()
            met[told] = [operand._head.shape for operand in instruction._operands]


def _at(path: str, read: Callable[[], Any]) -> Any:
    """The result of a function, with the field in what it raises."""
    try:
        return read()
    except ProtoError as error:
        raise ProtoError(error.bare_message, path) from None


def _config(raw: bytes, tools: Tools) -> BackendConfig | None:
    return BackendConfig(raw.decode("utf-8", "surrogateescape")) if raw else None


_COMMON: tuple[tuple[int, str, Callable[[bytes, Tools], Any]], ...] = (
    (_SHARDING, "sharding", lambda raw, t: shardings.read_sharding(raw, t.classes)),
    (_FRONTEND, "frontend_attributes", common.read_frontend),
    (_STATISTICS, "statistics", common.read_statistics),
    (_ORIGIN, "origin", common.read_origin),
    (_ACCURACY, "result_accuracy", common.read_accuracy),
    (_CONFIG, "backend_config", _config),
)
_BY_OPERANDS = (traits.of_kind("collective-permute") - traits.DONES) | {"compare"}
"""Opcodes with attributes that are told apart by the operands' shapes, or left out because of them."""
_TAKES = {
    row.name: row.arity.minimum
    for row in opcodes.OPCODES.values()
    if row.arity.minimum == row.arity.maximum
    and row.name not in conditions.BY_OPCODE
    and row.name not in conditions.LOOK_FURTHER
}
"""Number of operands of the opcodes that have no other condition."""


_WAYS = {
    row.name: tuple(
        [
            (use, way[0])
            for use in row.attributes
            if use.calls is Calls.NONE
            and use.printed is not Printing.INPUT_ONLY
            and (way := table.SPECIAL.get((row.name, use.name)) or table.ATTRIBUTES.get(use.name)) is not None
        ]
    )
    for row in opcodes.OPCODES.values()
}
"""Readers of the attributes of each opcode."""
_CALL_NOTHING = frozenset({row.name for row in opcodes.OPCODES.values() if not row.stored_called_names})


def _values(piece: bytes, least: int, most: int) -> list[tuple[int, int | bytes]]:
    """Numbers and values of some fields; raises ProtoError for other fields than these."""
    found: list[tuple[int, int | bytes]] = []
    for number, kind, a, b in wire.fields(piece):
        if not least <= number <= most:
            raise ProtoError(f"field {number} is out of order, or appears twice")
        found.append((number, a if kind == VARINT else piece[a:b]))
    return found


def is_shown(use: AttributeUse, value: Any, operands: tuple[Instruction, ...]) -> bool:
    """Returns True if text would contain the attribute, so that modules from protos and from text are equal."""
    if use.printed is Printing.IF_TRUE:
        return value is True
    if use.printed is Printing.IF_NOT_DEFAULT:
        return bool(value != _default(use, operands))
    if use.printed is Printing.IF_ANY_NOT_DEFAULT:
        return any(item != use.default for item in value)
    if use.printed is Printing.IF_NOT_EMPTY:
        return value != () and str(value) not in ("", "{}")
    return True


def _default(use: AttributeUse, operands: tuple[Instruction, ...]) -> Any:
    if not isinstance(use.default, Derived):
        return use.default
    shape = operands[0]._head.shape if operands else None
    if shape is None:
        return None
    if use.default is Derived.COMPARISON_ORDER:
        return comparison.default_order(shape.element_type)
    return (
        comparison.default_type(shape.element_type) if use.default is Derived.COMPARISON_TYPE else use.default
    )


def _slice_sizes(numbers: tuple[int, ...], operands: tuple[Instruction, ...]) -> tuple[tuple[int, ...], ...]:
    """The sizes of each slice that a collective permute sends, in groups of as many as the operand has dimensions."""
    shapes = [operand._head.shape for operand in operands]
    if not shapes or shapes[0] is None:
        raise ProtoError("slices need an operand", "dynamic_slice_sizes")
    arrays = shapes[0].tuple_shapes if shapes[0].is_tuple else (shapes[0],)
    counts = [1] * len(arrays)
    starts = shapes[2] if len(shapes) > 2 else None
    if starts is not None and starts.is_tuple and starts.tuple_shapes and starts.tuple_shapes[0].is_tuple:
        inner = starts.tuple_shapes[0].tuple_shapes
        if not shapes[0].is_tuple:
            counts = [len(starts.tuple_shapes)]
        elif inner and inner[0].is_tuple:
            counts = [len(part.tuple_shapes) for part in starts.tuple_shapes]
    found: list[tuple[int, ...]] = []
    place = 0
    for array, count in zip(arrays, counts, strict=False):
        for _ in range(count):
            found.append(numbers[place : place + array.rank])
            place += array.rank
    if place != len(numbers):
        raise ProtoError(f"{len(numbers)} slice sizes do not match the operand", "dynamic_slice_sizes")
    return tuple(found)
