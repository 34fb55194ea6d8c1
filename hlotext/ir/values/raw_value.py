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
    """The text of an attribute value, or of a word in it, that is unknown to this release."""

    text: str

    def __str__(self) -> str:
        return self.text


_RAW_STRINGS = frozenset({"async_execution_thread", "execution_thread"})
"""Strings that XLA writes without escapes."""


def value_text(value: object, name: str = "") -> str:
    """Returns XLA's text of an attribute value.

    `name` matters only for the few attributes with a special form. Computations and instructions are not supported: the
    printer writes references to them.
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
    """Returns XLA's text of an attribute value in canonical form, which may differ from the source text."""
    return value_text(value.canonical() if hasattr(value, "canonical") else value, name)


def _single_precision(value: float) -> float:
    """The float as XLA holds epsilon, the only one that stands alone."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded
