"""Codec of attribute values: message classes, shapes, words, and fields of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from hlotext.ir.values import enums
from hlotext.ir.values.raw_value import RawValue
from hlotext.proto import pool
from hlotext.proto.errors import ProtoError
from hlotext.proto.fields import Fields
from hlotext.proto.literals import encoded, field
from hlotext.proto.pool import Classes
from hlotext.proto.shapes import ShapeReader, ShapeWriter


class Tools:
    """State shared by the readers or writers of a module."""

    def __init__(self, fill: bool = False) -> None:
        self.classes: Classes = pool.shallow()
        self.shapes = ShapeReader(self.classes)
        self.shape_bytes = ShapeWriter(self.classes)
        self.exact_shape_bytes = ShapeWriter(self.classes, is_filled=False)
        """Shapes without a layout stay so, as in the entry's signature where the compiler is to choose."""
        self.groups: dict[tuple[int, bytes], Any] = {}
        """Replica groups by their bytes: many collectives differ in nothing but their channel."""
        self.fill = fill
        """Write elided literals as zeros."""
        self.inner_module_text: Callable[[bytes], str] = _no_module
        """A module inside of another's header as text, as XLA prints it between quotes; who reads and writes sets it."""
        self.inner_module_bytes: Callable[[str], bytes] = _no_module
        """The proto of such a text."""


def _no_module(_: Any) -> Any:
    raise ProtoError("a module contains nested modules, which are not supported here")


Read: TypeAlias = Callable[[Fields, Tools], Any]
"""Gives the value, or None if there is none."""
Write: TypeAlias = Callable[[Any, Tools], bytes]
"""Gives the fields of a value."""

_WORDS: dict[type, tuple[str, Callable[[str], str]]] = {
    enums.CustomCallApiVersion: ("CustomCallApiVersion", str),
    enums.CustomCallSchedule: ("CustomCallSchedule", str),
    enums.FftType: ("FftType", str),
    enums.PaddingType: ("PaddingType", str),
    enums.TransposeA: ("Transpose", str),
    enums.ConvolutionKind: ("ConvolutionKind", lambda word: f"CONVOLUTION_KIND_{word.upper()}"),
    enums.Precision: ("Precision", str.upper),
    enums.PrecisionAlgorithm: ("Algorithm", lambda word: f"ALG_{word.upper()}"),
    enums.RandomAlgorithm: ("RandomAlgorithm", str.upper),
    enums.RandomDistribution: ("RandomDistribution", str.upper),
    enums.ResultAccuracyMode: ("ResultAccuracyMode", str.upper),
    enums.DebugLogMode: ("DebugLogModeProto", str.upper),
}
"""For each enumeration the schema's, and how a word of the text is spelt there."""
_MEMBERS = {
    kind: {pool.enum_numbers(name).get(spelling(str(member)), -1): member for member in kind}  # type: ignore[attr-defined]
    for kind, (name, spelling) in _WORDS.items()
}


def word(kind: type, number: int) -> Any:
    """Returns the enumerator with a number, or a `RawValue` if it is unknown to this release."""
    return _MEMBERS[kind].get(number) or RawValue(str(number))


def number_of(value: Any) -> int:
    """Returns the number of an enumerator. Raises ProtoError for a word without a number."""
    if isinstance(value, RawValue):
        if value.text.isdigit():
            return int(value.text)
        raise ProtoError(f"a proto cannot represent the value {value}")
    name, spelling = _WORDS[type(value)]
    return pool.enum_numbers(name)[spelling(str(value))]


def varint(number: int, value: int) -> bytes:
    """Serializes a number field; empty for 0, as in proto3."""
    return encoded(number << 3) + encoded(value) if value else b""


def packed(number: int, values: tuple[int, ...]) -> bytes:
    """Serializes a packed number list; empty for an empty list."""
    return field(number, b"".join(map(encoded, values))) if values else b""
