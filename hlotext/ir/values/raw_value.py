"""Attribute values: the text of any value, and the representation of unknown ones."""

from __future__ import annotations

import math
import struct
from typing import Any

import attrs

from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.text import braced, quote, short_float
from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class RawValue(Value):
    """The value of an attribute, or a word in it, that this release does not know: its text, verbatim."""

    text: str

    def __str__(self) -> str:
        return self.text


_RAW_STRINGS = frozenset({"async_execution_thread", "execution_thread"})
"""Strings that XLA writes without escapes."""


def value_text(value: object, name: str = "") -> str:
    """XLA's text of an attribute's value.

    The name matters only for the few attributes that XLA writes in their own way. References to computations
    and instructions are the printer's: they have no text of their own.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return short_float(_single_precision(value))
    if type(value) is str:
        return f'"{value}"' if name in _RAW_STRINGS else quote(value)
    if isinstance(value, Literal):
        return value.text_with_shape()
    if isinstance(value, tuple):
        texts = [value_text(item) for item in value]
        # Lists of shapes alone are joined with a blank.
        return f"{{{', '.join(texts)}}}" if value and isinstance(value[0], Shape) else braced(texts)
    return str(value)


def canonical_text(value: Any, name: str) -> str:
    """XLA's text of an attribute's value, which may differ from the form that was read."""
    return value_text(value.canonical() if hasattr(value, "canonical") else value, name)


def _single_precision(value: float) -> float:
    """The float as XLA holds epsilon, the only one that stands alone."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded
