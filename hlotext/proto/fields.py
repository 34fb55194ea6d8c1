"""The fields of one instruction's proto, as its attributes ask for them."""

from __future__ import annotations

import math
import struct

from hlotext.proto import wire
from hlotext.proto.errors import ProtoError
from hlotext.proto.metadata import text


class Fields:
    """Values of a message by field number: integers or bytes, with all occurrences."""

    __slots__ = ("_values",)

    def __init__(self, values: dict[int, list[int | bytes]]) -> None:
        self._values = values

    def __contains__(self, number: int) -> bool:
        return number in self._values

    def number(self, number: int, default: int = 0) -> int:
        """Returns the last integer of a field, or `default` if absent. Raises ProtoError for another wire type."""
        values = self._values.get(number)
        if values is None:
            return default
        value = values[-1]
        if type(value) is not int:
            raise ProtoError(f"field {number} has an unexpected wire type")
        return value

    def flag(self, number: int) -> bool:
        """Returns a bool field."""
        return self.number(number) != 0

    def numbers(self, number: int) -> tuple[int, ...]:
        """Returns a repeated integer field, packed or not."""
        values = self._values.get(number)
        if values is None:
            return ()
        found: list[int] = []
        for value in values:
            if type(value) is int:
                found.append(value)
            else:
                assert isinstance(value, bytes)
                found += wire.unpacked(value, 0, len(value))
        return tuple(found)

    def raw(self, number: int) -> bytes | None:
        """Returns a bytes or message field, or None if absent. Occurrences are concatenated, as protobuf merges
        messages.

        Raises ProtoError for another wire type.
        """
        values = self._values.get(number)
        if values is None:
            return None
        if len(values) == 1 and type(values[0]) is bytes:
            return values[0]
        if any(type(value) is int for value in values):
            raise ProtoError(f"field {number} has an unexpected wire type")
        return values[0] if len(values) == 1 else b"".join(values)  # type: ignore[return-value,arg-type]

    def last(self, number: int) -> bytes:
        """Returns the last occurrence of a bytes field; empty if absent. Raises ProtoError for another wire type."""
        values = self._values.get(number)
        if values is None:
            return b""
        value = values[-1]
        if type(value) is int:
            raise ProtoError(f"field {number} has an unexpected wire type")
        assert isinstance(value, bytes)
        return value

    def text(self, number: int) -> str:
        """Returns a string field; empty if absent."""
        return text(self.last(number))

    def raws(self, number: int) -> list[bytes]:
        """Returns a repeated message field; empty if absent. Raises ProtoError for another wire type."""
        values = self._values.get(number, [])
        if any(type(value) is int for value in values):
            raise ProtoError(f"field {number} has an unexpected wire type")
        return values  # type: ignore[return-value]

    def single(self, number: int) -> float:
        """Returns a 4-byte float field, as the decimal number with the fewest digits that rounds to it; 0 if absent.

        Raises ProtoError for another wire type.
        """
        raw = self.last(number)
        if not raw:
            return 0.0
        if len(raw) != 4:
            raise ProtoError(f"field {number} has an unexpected wire type")
        found: float = struct.unpack("<f", raw)[0]
        short = (float(f"{found:.{digits}g}") for digits in range(6, 9)) if math.isfinite(found) else ()
        return next((number for number in short if struct.pack("<f", number) == raw), found)
