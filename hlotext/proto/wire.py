"""Protobuf's wire format read by columns: one field of many messages at a time, with the place of everything.

The events of a trace are many, small and alike, so each step is taken for all of them at once with numpy: a tenth of the
time that asking an object for each field takes, no object for what is not asked for, and offsets for every error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import numpy as np

from hlotext.proto.errors import ProtoError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types."""

PADDING = 16
"""Zeros behind the data, so that a step of a cut number stays inside of the array."""

_MAX_STEPS = 48
"""Fields of one message that are read by columns; of a message with more of them the rest is read one by one."""

MAX_FIELDS = 1 << 20
"""Fields of one message, where they are read one by one: more than any instruction has, and few enough to be held."""

_SIZES = {FIXED64: 8, FIXED32: 4}


@attrs.define
class Column:
    """The occurrences of one field in many messages, in the order of the messages."""

    wire_type: Ints
    rows: Ints
    """The number of the message."""
    start: Ints
    """Where the value lies (bytes and fixed sizes), or the number itself (varints, as a signed 64-bit number)."""
    end: Ints
    """Behind the value."""
    at: Ints
    """Where the field begins."""


@attrs.define
class Buffer:
    """The bytes of a file, also as a padded numpy array."""

    data: bytes
    array: Any
    """`data` and `PADDING` zeros, as uint8."""
    name: str = ""

    @classmethod
    def of(cls, data: bytes, name: str = "") -> Buffer:
        array = np.zeros(len(data) + PADDING, dtype=np.uint8)
        array[: len(data)] = np.frombuffer(data, dtype=np.uint8)
        return cls(data, array, name)

    def error(self, message: str, offset: int | None = None, path: str = "") -> ProtoError:
        """Returns a ProtoError at an offset of this file; `path` is the path of fields to it."""
        return ProtoError(message, path, None if offset is None else int(offset), self.name)


def scan(data: bytes, start: int, end: int, name: str = "") -> Iterator[tuple[int, int, int, int]]:
    """Yields each field of one message: number, wire type, start (or the value of a varint), and end.

    Raises ProtoError with the offset at which a field is malformed.
    """
    position = start
    while position < end:
        at = position
        tag = data[position]
        position += 1
        if tag >= 128:
            tag, position = varint(data, at, end, name)
        kind = tag & 7
        number = tag >> 3
        if kind == BYTES:
            if position >= end:
                raise ProtoError("the message ends inside of a field", offset=at, name=name)
            size = data[position]
            if size >= 128:
                size, position = varint(data, position, end, name)
            else:
                position += 1
            if size > end - position:
                rest = f"{end - position:,}"
                is_cut = end == len(data)
                where = (
                    f"only {rest} are left; the file is truncated"
                    if is_cut
                    else f"its message ends after {rest}"
                )
                raise ProtoError(
                    f"field {number} has {size:,} bytes, but {where}",
                    offset=at,
                    name=name,
                )
            yield number, kind, position, position + size
            position += size
        elif kind == VARINT:
            value, position = varint(data, position, end, name)
            yield number, kind, value, position
        elif kind in _SIZES:
            if _SIZES[kind] > end - position:
                raise ProtoError("the message ends inside of a number", offset=at, name=name)
            yield number, kind, position, position + _SIZES[kind]
            position += _SIZES[kind]
        else:
            raise ProtoError(f"unknown wire type {kind}", offset=at, name=name)
        if not number:
            raise ProtoError("field number 0 is invalid", offset=at, name=name)


def fields(data: bytes) -> list[tuple[int, int, int, int]]:
    """Returns the fields of a short message as `scan` yields them, faster. Raises ProtoError for a malformed field."""
    found = []
    position, end = 0, len(data)
    try:
        while position < end:
            tag = data[position]
            position += 1
            if tag >= 128:
                high = data[position]
                position += 1
                if high >= 128 or not high:
                    return list(scan(data, 0, end))
                tag = tag & 127 | high << 7
            value = data[position]
            position += 1
            if value >= 128:
                high = data[position]
                position += 1
                if high >= 128:
                    return list(scan(data, 0, end))
                value = value & 127 | high << 7
            if tag & 7 == BYTES:
                start, position = position, position + value
                found.append((tag >> 3, BYTES, start, position))
            elif tag & 7 == VARINT:
                found.append((tag >> 3, VARINT, value, position))
            else:
                return list(scan(data, 0, end))
            if tag < 8:
                return list(scan(data, 0, end))
    except IndexError:
        position = end + 1
    return found if position == end else list(scan(data, 0, end))


def varint(data: bytes, position: int, end: int, name: str = "") -> tuple[int, int]:
    """Returns the varint at an offset, as a signed 64-bit number, and the offset after it. Raises ProtoError if it does
    not end.
    """
    value = shift = 0
    at = position
    while position < end and shift < 70:
        byte = data[position]
        value |= (byte & 127) << shift
        position += 1
        shift += 7
        if byte < 128:
            value &= (1 << 64) - 1
            return value - (1 << 64) if value >> 63 else value, position
    raise ProtoError("a number does not end", offset=at, name=name)


def columns(buffer: Buffer, starts: Ints, ends: Ints, last: int = 1 << 29) -> tuple[dict[int, Column], Ints]:
    """Returns the fields of many messages by field number, each message up to its first field numbered above `last`.

    The second result is the offset at which the unread rest of each message begins, or its end. Raises ProtoError with
    the offset of a malformed field.
    """
    rests = ends.copy()
    rows = np.flatnonzero(starts < ends)
    position = starts[rows]
    pieces: list[tuple[Ints, ...]] = []
    steps = 0
    while len(rows) and steps < _MAX_STEPS:
        steps += 1
        limit = ends[rows]
        at = position
        tag, position = _varints(buffer, position, limit)
        number = tag >> 3
        is_behind = number > last
        if is_behind.any():
            rests[rows[is_behind]] = at[is_behind]
            kept = ~is_behind
            rows, limit, at, tag, number, position = (
                part[kept] for part in (rows, limit, at, tag, number, position)
            )
            if not len(rows):
                break
        kind = tag & 7
        value, behind = _varints(buffer, position, limit, (kind == VARINT) | (kind == BYTES))
        is_bytes = kind == BYTES
        size = np.where(is_bytes, value, _SIZE_OF[kind])
        start = np.where(is_bytes, behind, np.where(kind == VARINT, value, position))
        room = limit - behind
        wrong = (size < 0) | (size > room) | (number <= 0)
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            list(scan(buffer.data, int(at[first]), int(limit[first]), buffer.name))  # raises the right error
            raise buffer.error("this is not a field", at[first])
        position = behind + size
        pieces.append((number, rows, kind, start, position, at))
        left = position < limit
        if not left.all():
            rows, position = rows[left], position[left]
    if len(rows):
        pieces.append(_one_by_one(buffer, rows, position, ends, rests, last))
    if not pieces:
        return {}, rests
    number, row, kind, start, end, at = (np.concatenate(part) for part in zip(*pieces, strict=True))
    order = np.lexsort((row, number))  # stable, so repeated fields keep their order
    number, row, kind, start, end, at = (part[order] for part in (number, row, kind, start, end, at))
    numbers, firsts = np.unique(number, return_index=True)
    bounds = [*firsts.tolist(), len(number)]
    found = {
        int(n): Column(kind[a:b], row[a:b], start[a:b], end[a:b], at[a:b])
        for n, a, b in zip(numbers, bounds, bounds[1:], strict=False)
    }
    return found, rests


_SIZE_OF = np.array([0, 8, 0, 1 << 62, 1 << 62, 4, 1 << 62, 1 << 62], dtype=np.int64)
"""Bytes of a value by its wire type; more than any message has for those that there are not."""


def _one_by_one(
    buffer: Buffer, rows: Ints, position: Ints, ends: Ints, rests: Ints, last: int
) -> tuple[Ints, ...]:
    found: list[tuple[int, ...]] = []
    for row, at in zip(rows.tolist(), position.tolist(), strict=True):
        end = int(ends[row])
        for number, kind, start, behind in scan(buffer.data, at, end, buffer.name):
            if number > last:
                rests[row] = at
                break
            found.append((number, row, kind, start, behind, at))
            at = behind
            if len(found) > MAX_FIELDS:
                raise buffer.error(f"a message has more than {MAX_FIELDS:,} fields", at)
    parts = np.array(found, dtype=np.int64).reshape(-1, 6).T
    return tuple(parts)


def _varints(buffer: Buffer, position: Ints, limit: Ints, wanted: Any = None) -> tuple[Ints, Ints]:
    """The numbers at these positions, and the positions behind them; 0 and the position itself where none is `wanted`."""
    array = buffer.array
    byte = array[position]
    if wanted is not None:
        byte = np.where(wanted, byte, 0)
    value = (byte & 127).astype(np.int64)
    behind = position + (1 if wanted is None else wanted)
    more = np.flatnonzero(byte >= 128)
    shift = 7
    while len(more):
        if shift > 63:
            raise buffer.error("a number does not end", position[more][0])
        # A number that is cut runs into the zeros behind the data, and is found out below.
        byte = array[np.minimum(behind[more], len(buffer.data))]
        value[more] |= (byte & 127).astype(np.int64) << shift
        behind[more] += 1
        more = more[byte >= 128]
        shift += 7
    wrong = behind > limit
    if wrong.any():
        raise buffer.error("the message ends inside of a number", position[wrong][0])
    return value, behind


def packed(buffer: Buffer, column: Column, count: int) -> tuple[Ints, Ints]:
    """Returns the numbers of a repeated varint field, packed or not, and the index at which those of each message
    begin.

    The second array has `count` + 1 entries, where `count` is the number of messages.
    """
    is_packed = column.wire_type == BYTES
    if is_packed.all():
        numbers, sizes = _numbers(buffer, column.start, column.end)
        rows = np.repeat(column.rows, sizes)
    else:
        found: list[int] = []
        owners: list[int] = []
        rows_of = zip(
            column.wire_type.tolist(),
            column.rows.tolist(),
            column.start.tolist(),
            column.end.tolist(),
            strict=True,
        )
        for kind, row, start, end in rows_of:
            if kind == BYTES:
                values = list(unpacked(buffer.data, start, end, buffer.name))
            elif kind == VARINT:
                values = [start]
            else:
                raise buffer.error("a list of numbers has an unexpected wire type", start)
            found += values
            owners += [row] * len(values)
        numbers, rows = np.array(found, dtype=np.int64), np.array(owners, dtype=np.int64)
    bounds = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=bounds[1:])
    return numbers, bounds


def unpacked(data: bytes, start: int, end: int, name: str = "") -> Iterator[int]:
    """Yields the numbers of a packed repeated field. Raises ProtoError if one does not end."""
    while start < end:
        value, start = varint(data, start, end, name)
        yield value


def _numbers(buffer: Buffer, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """All varints between these places, and how many there are in each."""
    sizes = ends - starts
    total = int(sizes.sum())
    if not total:
        return np.zeros(0, dtype=np.int64), np.zeros(len(starts), dtype=np.int64)
    offsets = np.cumsum(sizes) - sizes
    places = np.arange(total, dtype=np.int64) + np.repeat(starts - offsets, sizes)
    data = buffer.array[places]
    is_last = data < 128
    cut = (sizes > 0) & (buffer.array[np.maximum(ends - 1, 0)] >= 128)
    if cut.any():
        raise buffer.error("a list of numbers is truncated", starts[cut][0])
    stops = np.flatnonzero(is_last)
    begins = np.concatenate(([0], stops[:-1] + 1))
    lengths = stops - begins + 1
    if int(lengths.max()) > 10:
        raise buffer.error("a number does not end", places[begins[lengths > 10][0]])
    values = np.zeros(len(stops), dtype=np.int64)
    for step in range(int(lengths.max())):
        has = lengths > step
        values[has] |= (data[begins[has] + step] & 127).astype(np.int64) << (7 * step)
    counts = np.add.reduceat(np.append(is_last, False).astype(np.int64), np.minimum(offsets, total))
    counts[sizes == 0] = 0
    return values, counts
