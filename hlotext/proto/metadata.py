"""Metadata to and from `OpMetadata`; what the text has no word for is kept as bytes."""

from __future__ import annotations

from typing import Any

from hlotext.ir.values.metadata import Metadata
from hlotext.proto import wire
from hlotext.proto.errors import ProtoError
from hlotext.proto.literals import encoded, field
from hlotext.proto.pool import Classes
from hlotext.proto.shapes import decoded

_TEXTS = {1: "op_type", 2: "op_name", 3: "source_file", 12: "deduplicated_name", 16: "scheduling_name"}
_NUMBERS = {
    4: "source_line",
    15: "stack_frame_id",
    17: "source_end_line",
    18: "source_column",
    19: "source_end_column",
}
_PROFILE_TYPE, _PAYLOAD = 5, 20
_BY_NAME = {name: number for number, name in (_TEXTS | _NUMBERS).items()}


def text(raw: bytes) -> str:
    """Decodes a proto string. Raises ProtoError for invalid UTF-8, as protobuf's own parsers do."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ProtoError(f"this string is not UTF-8: {raw[:40]!r}") from None


def read_metadata(raw: bytes, classes: Classes, payloads: list[bytes]) -> Metadata | None:
    """Parses an `OpMetadata`; returns None if text would not show it.

    `payloads` are those of the module, which a payload may refer to by number. Raises ProtoError if it is invalid.
    """
    fields: dict[str, Any] = {}
    kinds: list[int] = []
    for number, kind, start, end in wire.scan(raw, 0, len(raw)):
        if kind == wire.BYTES:
            if number in _TEXTS:
                if start < end:
                    fields[_TEXTS[number]] = text(raw[start:end])
            elif number == _PROFILE_TYPE:
                kinds += wire.unpacked(raw, start, end)
            elif number == _PAYLOAD:
                payload = payload_of(raw[start:end], classes, payloads)
                fields["metadata_payload"] = text(payload)
        elif kind == wire.VARINT:
            if number in _NUMBERS:
                if start:
                    fields[_NUMBERS[number]] = start
            elif number == _PROFILE_TYPE:
                kinds.append(start)
    if kinds:
        fields["profile_type"] = tuple(kinds)
    if not fields:
        return None
    if len(fields) == 2 and "op_name" in fields and "stack_frame_id" in fields:
        return Metadata.of_source(fields["op_name"], fields["stack_frame_id"])
    return Metadata(**fields)


def payload_of(raw: bytes, classes: Classes, payloads: list[bytes]) -> bytes:
    """Returns the bytes that a `Payload` contains or refers to. Raises ProtoError for an unknown id."""
    message = decoded(classes, "Payload", raw)
    if message.WhichOneof("payload_source") != "id":
        return bytes(message.value)
    if not 0 <= message.id < len(payloads):
        raise ProtoError(f"the module has no payload {message.id}")
    return payloads[int(message.id)]


def write_metadata(metadata: Metadata, classes: Classes) -> bytes:
    """Serializes to `OpMetadata`. Raises ProtoError for text that is not UTF-8."""
    if (
        metadata.op_name
        and metadata.stack_frame_id
        and metadata == Metadata.of_source(metadata.op_name, metadata.stack_frame_id)
    ):
        return b"\x12" + _sized(metadata.op_name) + b"\x78" + encoded(metadata.stack_frame_id)
    try:
        message = classes.OpMetadata(
            **{name: value for name in _BY_NAME if (value := getattr(metadata, name))},
            profile_type=metadata.profile_type,
        )
        if metadata.metadata_payload is not None:
            message.metadata_payload = classes.Payload(
                value=metadata.metadata_payload.encode()
            ).SerializeToString()
    except (ValueError, UnicodeError) as error:
        raise ProtoError(f"metadata cannot be written: {error}") from None
    raw: bytes = message.SerializeToString()
    return raw


def _sized(value: str) -> bytes:
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        raise ProtoError("a string is not UTF-8, so no proto can hold it") from None
    return encoded(len(raw)) + raw


def string_field(number: int, value: str) -> bytes:
    """Serializes a string field. Raises ProtoError for text that is not UTF-8."""
    try:
        return field(number, value.encode())
    except UnicodeEncodeError:
        raise ProtoError("a string is not UTF-8, so no proto can hold it") from None
