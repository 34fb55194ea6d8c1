"""The thunks inside a serialized CPU executable, read from protobuf's wire format without a schema.

`client.serialize_executable` and `jax.experimental.serialize_executable` return a length-prefixed header followed by
`CompilationResultProto`. Field numbers: `xla/backends/cpu/runtime/thunk.proto`, `xla/service/cpu/executable.proto`. XLA
does not guarantee the format, so the sequence of thunks is searched where it stood last, then by its form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from hlotext.thunks.emission import branches
from hlotext.thunks.sequence import Thunks
from hlotext.thunks.thunk import CALLED, Thunk, ThunkError

MAX_DEPTH = 100
"""Levels of nested thunks that are followed; loops nest a handful of levels."""
MAX_HUNT = 4
"""Maximum nesting of messages searched for a sequence of thunks."""
_THUNK_SEQUENCE = 6
"""`CompilationResultProto.thunk_sequence`."""
_KIND, _INFO, _CALL, _CONDITIONAL, _WHILE, _KERNEL, _CUSTOM_CALL = 1, 2, 3, 4, 10, 11, 16
"""Fields of `ThunkProto`."""

Field: TypeAlias = "tuple[int, int | bytes]"


class _WireError(ValueError):
    """Bytes that are no message."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise _WireError


def fields(data: bytes) -> Iterator[Field]:
    """Yields number and value of each field of a message; varints as int, others as bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise _WireError
        if number == 0 or at + size > len(data):
            raise _WireError
        yield number, data[at : at + size]
        at += size


def _all(data: bytes, wanted: int) -> list[bytes]:
    return [value for number, value in fields(data) if number == wanted and isinstance(value, bytes)]


def _first(data: bytes, wanted: int) -> bytes:
    return next(iter(_all(data, wanted)), b"")


def _text(data: bytes, wanted: int) -> str:
    return _first(data, wanted).decode("utf-8", "surrogateescape")


def read_executable(data: bytes, name: str) -> Thunks:
    """Returns the thunks of a serialized CPU executable.

    Raises ThunkError if it has none or nests too deep.
    """
    sequence = _find(data)
    if sequence is None:
        raise ThunkError(
            f"{name} has no thunks: it is not a thunk_sequence, thunk_metadata or a CPU executable"
        )
    return Thunks(thunks=tuple(_sequence(sequence, 0)), platform="cpu", is_predicted=False)


def _find(data: bytes) -> bytes | None:
    """The bytes of the outermost ThunkSequenceProto."""
    for start in _starts(data):
        body = data[start:]
        try:
            for candidate in _all(body, _THUNK_SEQUENCE):
                if _is_sequence(candidate):
                    return candidate
            found = _hunt(body)
        except _WireError:
            continue
        if found is not None:
            return found
    return None


def _starts(data: bytes) -> Iterator[int]:
    """Where the message may begin: at once, or behind a header that says its length."""
    yield 0
    try:
        size, at = _varint(data, 0)
    except _WireError:
        return
    if at + size < len(data):
        yield at + size
    yield from range(1, min(12, len(data)))


def _hunt(data: bytes) -> bytes | None:
    level = [data]
    for _ in range(MAX_HUNT):
        inner: list[bytes] = []
        for message in level:
            try:
                inner += [
                    value for _, value in fields(message) if isinstance(value, bytes) and len(value) > 16
                ]
            except _WireError:
                continue
        for value in inner:
            if _is_sequence(value):
                return value
        level = inner
    return None


def _is_sequence(data: bytes) -> bool:
    """True if bytes are a message of thunks: each with a kind in plain letters and an info that names an operation."""
    try:
        thunks = _all(data, 1)
        return bool(thunks) and all(
            _text(thunk, _KIND).replace("-", "").isalpha() and bool(_first(thunk, _INFO)) for thunk in thunks
        )
    except (_WireError, UnicodeError):
        return False


def _sequence(data: bytes, depth: int) -> list[Thunk]:
    if depth > MAX_DEPTH:
        raise ThunkError(f"thunks nest more than {MAX_DEPTH} levels deep")
    try:
        return [_thunk(thunk, depth) for thunk in _all(data, 1)]
    except _WireError:
        raise ThunkError("the executable is damaged: it contains a thunk that is not a message") from None


def _thunk(data: bytes, depth: int) -> Thunk:
    thunk = Thunk(kind=_text(data, _KIND), name=_text(_first(data, _INFO), 1))
    facts: dict[str, object] = {}
    for number, value in fields(data):
        if not isinstance(value, bytes):
            continue
        if number == _CALL:
            thunk.children = ((CALLED, tuple(_sequence(_first(value, 1), depth + 1))),)
        elif number == _CONDITIONAL:
            thunk.children = branches([_sequence(branch, depth + 1) for branch in _all(value, 1)])
        elif number == _WHILE:
            inside = [tuple(_sequence(_first(value, part), depth + 1)) for part in (1, 2)]
            thunk.children = (("condition", inside[0]), ("body", inside[1]))
            trips = _trip_count(_first(value, 3))
            if trips is not None:
                facts["trip_count"] = trips
        elif number == _KERNEL:
            facts["kernel"] = _text(value, 1)
        elif number == _CUSTOM_CALL:
            facts["target"] = _text(value, 2)
    thunk.facts = facts
    return thunk


def _trip_count(data: bytes) -> int | None:
    """`known_trip_count`: 0 is not written, and field 2 says that there is one."""
    numbers = {number: value for number, value in fields(data) if isinstance(value, int)}
    return int(numbers.get(1, 0)) if numbers.get(2) else None
