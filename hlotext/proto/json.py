"""Protos as JSON, in the form that protobuf itself defines for every message."""

from __future__ import annotations

import re
from typing import Any

from hlotext.proto import pool
from hlotext.proto.errors import MissingProtobuf, ProtoError
from hlotext.proto.files import MODULE, PROTO, WITH_CONFIG

_KINDS = (MODULE, PROTO, WITH_CONFIG)


def to_json(data: bytes, kind: str = MODULE) -> str:
    """Converts a serialized message to JSON, with XLA's field names.

    Unknown fields are dropped, since JSON cannot represent them.

    Args:
        data: The serialized message.
        kind: Its type, one of those that `kind_of` returns.

    Raises:
        ProtoError: The message is invalid.
        MissingProtobuf: The extra `proto` is not installed.
    """
    json_format = _json_format()
    try:
        message = getattr(pool.full(), kind).FromString(data)
    except pool.full().DecodeError:
        raise ProtoError(f"this is not a {kind}") from None
    text: str = json_format.MessageToJson(message, preserving_proto_field_name=True)
    return text


def from_json(text: str) -> bytes:
    """Parses protobuf's JSON of a module, or of a message that contains one, to the serialized message.

    Raises ProtoError if the JSON is invalid, and MissingProtobuf without the extra `proto`.
    """
    json_format = _json_format()
    reason = ""
    for kind in _KINDS:
        message = getattr(pool.full(), kind)()
        try:
            json_format.Parse(text, message, max_recursion_depth=100)
        except (json_format.ParseError, RecursionError, ValueError) as error:
            reason = reason or (
                str(error) if not isinstance(error, RecursionError) else "it is nested too deeply"
            )
            continue
        raw: bytes = message.SerializeToString(deterministic=True)
        return raw
    reason = _CLASS.sub("", reason)
    raise ProtoError(f"this is not a module in JSON: {reason.splitlines()[0] if reason else 'it is empty'}")


_CLASS = re.compile(
    r"(?:Message type )?\"?hlotext\.xla\.\w+\"? (?:has )?|(?: at \"hlotext\.xla\.\w+\.?\w*\")"
)
"""Names of protobuf's classes in its messages, which say nothing to those who wrote the JSON."""


def _json_format() -> Any:
    try:
        from google.protobuf import json_format
    except ImportError:
        raise MissingProtobuf from None
    return json_format
