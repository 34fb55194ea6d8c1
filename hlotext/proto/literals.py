"""Literals to and from `LiteralProto`: elements in the order of memory there, in logical order here.

Every element takes whole bytes, those of narrow types too (`LiteralBase::Piece::WriteToProto`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Layout, Shape
from hlotext.ir.values.types import TypeKind
from hlotext.proto import wire
from hlotext.proto.errors import ProtoError
from hlotext.proto.pool import Classes
from hlotext.proto.shapes import MAX_DEPTH, ShapeReader, ShapeWriter

MAX_SIZE = 2 << 30
"""Bytes of a message: protobuf's own bound."""

FIELDS: dict[str, tuple[int, str]] = {
    "pred": (2, "varint"), "u8": (3, "raw"), "s32": (4, "varint"), "s64": (5, "varint"), "u32": (6, "varint"),
    "u64": (7, "varint"), "f32": (8, "raw"), "f64": (9, "raw"), "f16": (11, "raw"), "c64": (12, "raw"),
    "bf16": (13, "raw"), "s8": (15, "raw"), "u16": (16, "raw"), "s16": (17, "raw"), "c128": (18, "raw"),
    "f8e5m2": (19, "raw"), "f8e4m3fn": (20, "raw"), "s4": (21, "raw"), "u4": (22, "raw"), "f8e4m3b11fnuz": (23, "raw"),
    "f8e5m2fnuz": (24, "raw"), "f8e4m3fnuz": (25, "raw"), "s2": (26, "raw"), "u2": (27, "raw"), "f8e4m3": (28, "raw"),
    "f8e3m4": (29, "raw"), "s1": (30, "raw"), "u1": (31, "raw"), "f4e2m1fn": (32, "raw"), "f8e8m0fnu": (33, "raw"),
    "f6e3m2fn": (35, "raw"), "f6e2m3fn": (36, "raw"),
}  # fmt: skip
"""The field of `LiteralProto` that holds each element type: number, and whether it is a list of varints or bytes as they
lie in memory (packed floats lie in the file as in memory)."""
_TUPLE_LITERALS, _SHAPE = 10, 1


def read_literal(raw: bytes, shape: Shape, shapes: ShapeReader, depth: int = 0) -> Literal:
    """Parses a `LiteralProto` for a constant of a shape. Raises ProtoError if it is invalid or does not fit the shape."""
    if depth > MAX_DEPTH:
        raise ProtoError(f"literals nest deeper than {MAX_DEPTH} levels")
    own: Shape | None = None
    parts: list[bytes] = []
    values: list[tuple[int, int, int, int]] = []
    for number, kind, start, end in wire.scan(raw, 0, len(raw)):
        if number == _SHAPE and kind == wire.BYTES:
            own = shapes.shape(raw[start:end])
        elif number == _TUPLE_LITERALS and kind == wire.BYTES:
            parts.append(raw[start:end])
        else:
            values.append((number, kind, start, end))
    if own is None:
        raise ProtoError("a literal has no shape")
    if own.without_layout() != shape.without_layout():
        raise ProtoError(f"a literal is {own.without_layout()}, but its constant {shape.without_layout()}")
    if shape.is_tuple:
        if len(parts) != len(shape.tuple_shapes):
            raise ProtoError(f"a literal of {shape} has {len(parts)} elements")
        inner = [
            read_literal(part, of, shapes, depth + 1)
            for part, of in zip(parts, shape.tuple_shapes, strict=True)
        ]
        return Literal(shape, tuple(inner))
    if not shape.is_array:
        return Literal(shape)
    return _array(raw, values, shape, own.layout)


def _array(
    raw: bytes, values: list[tuple[int, int, int, int]], shape: Shape, layout: Layout | None
) -> Literal:
    type_ = shape.element_type
    known = FIELDS.get(type_.name)
    if known is None:
        raise ProtoError(f"literals of {type_} are unknown to this release")
    number, how = known
    count = shape.element_count
    given = [value for value in values if value[0] == number]
    if how == "raw":
        data = b"".join([raw[start:end] for _, _, start, end in given])
        dtype = type_.dtype
        if len(data) != count * dtype.itemsize:
            raise ProtoError(
                f"a literal of {shape.without_layout()} has {len(data):,} bytes, not {count * dtype.itemsize:,}"
            )
        found = np.frombuffer(data, dtype=dtype)
        if type_.bits < 8:
            # The unused bits of a byte are nobody's value.
            found = found.astype(np.int8).astype(dtype) if type_.is_integral else found
    else:
        column = wire.Column(*(np.array([v[i] for v in given], dtype=np.int64) for i in (1, 0, 2, 3, 2)))
        column.rows[:] = 0
        numbers = wire.packed(wire.Buffer.of(raw), column, 1)[0] if given else np.zeros(0, dtype=np.int64)
        if len(numbers) != count:
            raise ProtoError(
                f"a literal of {shape.without_layout()} has {len(numbers):,} elements, not {count:,}"
            )
        found = numbers != 0 if type_.kind is TypeKind.PREDICATE else numbers.astype(type_.dtype)
    return Literal.from_values(shape, np.array(_logical(found, shape, layout)).reshape(-1))


def _logical(values: Any, shape: Shape, layout: Layout | None) -> Any:
    """Elements in the order of memory brought into logical order."""
    order = _major_to_minor(shape, layout)
    if order is None:
        return values
    stored = values.reshape([shape.dimensions[d] for d in order])
    return stored.transpose([order.index(d) for d in range(len(order))])


def _major_to_minor(shape: Shape, layout: Layout | None) -> list[int] | None:
    """Dimension numbers as they lie in memory; None for the descending layout."""
    if layout is None:
        return None
    order = list(layout.minor_to_major[::-1])
    ascending = list(range(shape.rank))
    if sorted(order) != ascending:
        raise ProtoError(f"the layout of a literal of {shape.without_layout()} is {layout}")
    return None if order == ascending else order


def write_literal(literal: Literal, shapes: ShapeWriter, classes: Classes, fill: bool = False) -> bytes:
    """Serializes to `LiteralProto`.

    With `fill`, elided values are written as zeros; otherwise they raise ProtoError, as do values of unknown types.
    """
    if literal.shape.is_tuple and not literal.is_elided:
        inner = [write_literal(part, shapes, classes, fill) for part in literal.tuple_literals]
        message = classes.LiteralProto(shape=shapes.shape(_plain(literal.shape)), tuple_literals=inner)
        raw: bytes = message.SerializeToString()
        return raw
    if literal.is_elided and not fill:
        raise ProtoError("the value is elided in the text ({...})")
    if literal.is_elided and literal.shape.is_tuple:
        inner = [
            write_literal(Literal.elided(part), shapes, classes, fill) for part in literal.shape.tuple_shapes
        ]
        filled = classes.LiteralProto(shape=shapes.shape(_plain(literal.shape)), tuple_literals=inner)
        made: bytes = filled.SerializeToString()
        return made
    if not literal.shape.is_array:
        token: bytes = classes.LiteralProto(shape=shapes.shape(literal.shape)).SerializeToString()
        return token
    return _written(literal, shapes, classes)


def _written(literal: Literal, shapes: ShapeWriter, classes: Classes) -> bytes:
    shape = literal.shape
    type_ = shape.element_type
    known = FIELDS.get(type_.name)
    if known is None or literal.unknown_text is not None:
        raise ProtoError(f"literals of {type_} are unknown to this release")
    if (shape.element_count or 0) * np.dtype(type_.dtype).itemsize >= MAX_SIZE:
        raise ProtoError(f"a literal of {shape} is larger than a proto may be")
    array = np.zeros(shape.dimensions, dtype=type_.dtype) if literal.is_elided else literal.array
    order = _major_to_minor(shape, shape.layout)
    flat = (array if order is None else array.transpose(order)).reshape(-1)
    message = classes.LiteralProto(shape=shapes.shape(_plain(shape)))
    if any(shape.dynamic_dimensions):
        message.dynamic_sizes.extend(shape.dimensions)
    number, how = known
    name = message.DESCRIPTOR.fields_by_number[number].name
    if how == "varint":
        wide = np.int64 if type_.kind is not TypeKind.UNSIGNED else np.uint64
        getattr(message, name).extend(
            flat.astype(bool).tolist() if number == 2 else flat.astype(wide).tolist()
        )
    else:
        head: bytes = message.SerializeToString()
        data = np.ascontiguousarray(flat).tobytes()
        return head + field(number, data) if data else head
    raw: bytes = message.SerializeToString()
    return raw


def _plain(shape: Shape) -> Shape:
    """The shape of a literal: its layout is only an order (`Literal` has neither tiles nor memory spaces)."""
    if shape.is_tuple:
        return Shape.tuple(tuple([_plain(part) for part in shape.tuple_shapes]))
    if shape.layout is None or not shape.is_array:
        return shape
    return shape.with_layout(Layout(shape.layout.minor_to_major))


def field(number: int, data: bytes) -> bytes:
    """Serializes a bytes field."""
    return encoded(number << 3 | wire.BYTES) + encoded(len(data)) + data


def encoded(value: int) -> bytes:
    """Encodes a number as a varint; negative ones as 64-bit two's complement."""
    if 0 <= value < 128:
        return _ONE[value]
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE = [bytes([value]) for value in range(128)]
