"""The words of numbers to numpy arrays, with XLA's rules for the rounding and range of each element type."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from hlotext.findings.errors import TermError
from hlotext.ir.values import numbers
from hlotext.ir.values.types import ElementType, TypeKind
from hlotext.syntax.language.words import integer

if TYPE_CHECKING:
    import numpy as np

_INTEGER = re.compile(r"-?[0-9]+")
_NAN = re.compile(r"(-?)nan(?:\((0x[0-9a-fA-F]+)\))?")
_TRUTH = {"true": 1, "false": 0}


class BadValueError(Exception):
    """Raised for a word that is not a value of the type. `number` is its index among the words."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number
        self.message = message


def convert(words: list[str], element_type: ElementType) -> np.ndarray[Any, Any]:
    """Converts the words of a literal to values; complex values have two words, for real and imaginary part.

    Raises BadValueError for a word that is not a number, of the wrong kind, or out of range.
    """
    import numpy as np

    if element_type.is_floating:
        return _floats(words, element_type)
    if element_type.is_complex:
        part = numbers.component_type(element_type)
        return _floats(words, part).view(element_type.dtype)
    return narrow_integers(np.array(_integers(words, element_type), dtype=np.int64), element_type)


# ---- integers and truth values


def _integers(words: list[str], element_type: ElementType) -> list[int]:
    """The numbers as XLA holds them in between: signed 64 bits, larger unsigned ones wrapped."""
    is_predicate = element_type.kind is TypeKind.PREDICATE
    values = []
    for number, word in enumerate(words):
        if is_predicate and word in _TRUTH:
            values.append(_TRUTH[word])
        elif not _INTEGER.fullmatch(word):
            raise BadValueError(number, f"{element_type} needs an integer, not {_shown(word)}")
        else:
            values.append(_integer(word, number))
    return values


def _integer(word: str, number: int) -> int:
    try:
        return integer(word)
    except TermError as error:
        raise BadValueError(number, error.message) from None


def narrow_integers(values: np.ndarray[Any, Any], element_type: ElementType) -> np.ndarray[Any, Any]:
    """Converts 64-bit integers to `pred` or an integer type. Raises BadValueError if one is out of range.

    As in XLA's parser, a negative number wraps around as `u64`, and is out of range for a narrower unsigned type.
    """
    import numpy as np

    if element_type.kind is TypeKind.PREDICATE:
        return values.astype(np.bool_)
    if element_type.bits == 64:
        wide: np.ndarray[Any, Any] = values.view(element_type.dtype)
        return wide
    least, greatest = numbers.limits(element_type)
    bad = (values < least) | (values > greatest)
    if bad.any():
        number = int(bad.argmax())
        raise BadValueError(number, _out_of_range(str(values[number]), element_type))
    # Narrow types convert from bytes: from 64 bits some of them would go through a float.
    return (
        values.astype(np.int8).astype(element_type.dtype)
        if element_type.bits < 8
        else values.astype(element_type.dtype)
    )


# ---- floats


def _floats(words: list[str], element_type: ElementType) -> np.ndarray[Any, Any]:
    import numpy as np

    doubles = np.array([_double(word, number) for number, word in enumerate(words)], dtype=np.float64)
    values = narrow_doubles(doubles, element_type)
    nans = np.flatnonzero(np.isnan(doubles)).tolist()
    if nans and element_type.name in numbers.NAN_PAYLOAD_BITS:
        bits = numbers.bits_of(values)
        for number in nans:
            bits[number] = _nan(words[number], number, element_type)
    elif nans:
        for number in nans:
            if words[number].endswith(")"):
                raise BadValueError(number, f"a NaN of {element_type} has no payload")
    return values


def _double(word: str, number: int) -> float:
    if match := _NAN.fullmatch(word):
        return -math.nan if match[1] else math.nan
    if len(word) > 18 and _INTEGER.fullmatch(word):
        return float(_integer(word, number))
    try:
        value = float(word)
    except ValueError:
        raise BadValueError(number, f"{_shown(word)} is not a number") from None
    if math.isinf(value) and not word.endswith("inf"):
        raise BadValueError(number, f"{_shown(word)} is out of range for 64 bits (about 1.8e+308)")
    return value


def _nan(word: str, number: int, element_type: ElementType) -> int:
    match = _NAN.fullmatch(word)
    assert match is not None
    width = numbers.NAN_PAYLOAD_BITS[element_type.name]
    payload = int(match[2], 16) if match[2] else 1 << (width - 1)
    if not 0 < payload < 1 << width:
        limit = f"{(1 << width) - 1:#x}"
        raise BadValueError(
            number, f"a NaN of {element_type} has a payload of 0x1 to {limit}, not {_shown(word)}"
        )
    return numbers.nan_bits(element_type, bool(match[1]), payload)


def narrow_doubles(values: np.ndarray[Any, Any], element_type: ElementType) -> np.ndarray[Any, Any]:
    """Converts doubles to a floating-point type. Raises BadValueError if a finite one is out of range even when
    rounded.
    """
    import numpy as np

    result = numbers.narrow(values, element_type)
    if element_type.name != "f64":
        lost = np.isfinite(values) & ~np.isfinite(result.astype(np.float64))
        if lost.any():
            number = int(lost.argmax())
            raise BadValueError(number, _out_of_range(f"{values[number]:g}", element_type))
    return result


def _shown(word: str) -> str:
    """A word of the text for a message, cut if it is long."""
    return word if len(word) <= 40 else f"{word[:40]}..."


def _out_of_range(text: str, element_type: ElementType) -> str:
    least, greatest = numbers.limits(element_type)
    limits = f"{least} to {greatest}" if element_type.is_integral else f"{least:g} to {greatest:g}"
    return f"{text} is out of the range of {element_type}, {limits}"
