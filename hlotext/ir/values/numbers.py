"""Numbers as XLA writes and rounds them: the text of every element type, and doubles narrowed to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotext.ir.caches import weighted_cache
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType, TypeKind

if TYPE_CHECKING:
    import numpy as np

NAN_PAYLOAD_BITS = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7, "f8e5m2": 2, "f8e4m3": 3, "f8e3m4": 4}
"""Types whose NaNs carry a payload that XLA writes and reads, and how many bits it has."""

_SECOND_TRY = {"f32": 9, "f64": 17}
"""Digits that tell any values apart, where XLA tries `ElementType.digits` first (`RoundTripFpToString`)."""

_COMPONENTS = {"c64": "f32", "c128": "f64"}


def component_type(element_type: ElementType) -> ElementType:
    """Returns the type of the real and imaginary parts of a complex type; other types are returned as they are."""
    return ELEMENT_TYPES[_COMPONENTS.get(element_type.name, element_type.name)]


def bits_of(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns a view of an array as unsigned integers of the same width."""
    return values.view(f"u{values.dtype.itemsize}")


# ---- text


def number_texts(values: np.ndarray[Any, Any], element_type: ElementType) -> list[str]:
    """Returns the text of each element of a flat array as XLA prints it inside braces, where `pred` is `1` or `0`."""
    kind = element_type.kind
    if kind is TypeKind.PREDICATE:
        return ["1" if value else "0" for value in values.tolist()]
    if element_type.is_integral:
        return list(map(str, values.astype(f"{'i' if kind is TypeKind.SIGNED else 'u'}8").tolist()))
    if kind is TypeKind.COMPLEX:
        part = component_type(element_type)
        texts = number_texts(values.view(part.dtype), part)
        return [f"({real}, {imaginary})" for real, imaginary in zip(texts[::2], texts[1::2], strict=True)]
    return _float_texts(values, element_type)


def _float_texts(values: np.ndarray[Any, Any], element_type: ElementType) -> list[str]:
    import numpy as np

    bits = bits_of(values)
    if len(bits) <= 16:
        return [float_text(element_type, number) for number in bits.tolist()]
    # Constants repeat their values, so each distinct one is written once; sorting costs less than writing.
    distinct, places = np.unique(bits, return_inverse=True)
    texts = np.array(_texts_of_bits(distinct, element_type), dtype=object)
    return texts[places].tolist()  # type: ignore[no-any-return]


@weighted_cache(1 << 14)
def float_text(element_type: ElementType, bits: int) -> str:
    """Text of one float, from its bits: C's `%g` with the type's digits, `-0`, `inf`, `nan(0x1)`."""
    import numpy as np

    return _texts_of_bits(np.array([bits], dtype=f"u{element_type.byte_width}"), element_type)[0]


def _texts_of_bits(bits: np.ndarray[Any, Any], element_type: ElementType) -> list[str]:
    import numpy as np

    values = bits.view(element_type.dtype)
    with np.errstate(all="ignore"):
        doubles = values.astype(np.float64)
    short = f"%.{element_type.digits}g"
    texts = [short % value for value in doubles.tolist()]
    if longer := _SECOND_TRY.get(element_type.name):
        # XLA reads back as a float straight away, here it goes through a double. All six-digit numbers were
        # tried: the two ways never differ.
        with np.errstate(all="ignore"):
            differs = np.array(texts, dtype=np.float64).astype(values.dtype) != values
        long = f"%.{longer}g"
        for i in np.flatnonzero(differs & np.isfinite(values)).tolist():
            texts[i] = long % doubles[i]
    for i in np.flatnonzero(np.isnan(doubles)).tolist():
        texts[i] = _nan_text(element_type, int(bits[i]))
    return texts


def _nan_text(element_type: ElementType, bits: int) -> str:
    """As XLA's `FormatNaN`-style output: the sign bit, and the payload unless it is the plain quiet one."""
    is_negative = bool(bits >> (element_type.bits - 1)) and element_type.name != "f8e8m0fnu"
    text = "-nan" if is_negative else "nan"
    width = NAN_PAYLOAD_BITS.get(element_type.name)
    if width is None:
        return text
    payload = bits & ((1 << width) - 1)
    return text if payload == 1 << (width - 1) else f"{text}({payload:#x})"


def nan_bits(element_type: ElementType, is_negative: bool, payload: int) -> int:
    """Returns the bits of the NaN with a sign and payload, for an element type in `NAN_PAYLOAD_BITS`."""
    width = NAN_PAYLOAD_BITS[element_type.name]
    exponent = ((1 << (element_type.bits - 1 - width)) - 1) << width
    return int(is_negative) << (element_type.bits - 1) | exponent | payload


# ---- values


def narrow(values: np.ndarray[Any, Any], element_type: ElementType) -> np.ndarray[Any, Any]:
    """Rounds doubles to a float type as XLA's parser does; values out of range become the type's infinity or NaN.

    `f16` and `bf16` are rounded to single precision first (twice in total, as in XLA), all narrower types directly. A
    negative NaN keeps its sign if the type has one; payloads are lost.
    """
    import numpy as np

    dtype = element_type.dtype
    if element_type.name == "f64":
        return values
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        singles = values.astype(np.float32)
        if element_type.name == "f32":
            return singles
        if element_type.bits < 16:
            singles = _round_to_odd(values, singles)
        result = singles.astype(dtype)
    if element_type.name == "f8e8m0fnu":
        # The conversion rounds everything above the smallest value, 2^-127, up to the second smallest one.
        bits_of(result)[(values >= 2.0**-127) & (values < 1.5 * 2.0**-127)] = 0
    return result


def _round_to_odd(values: np.ndarray[Any, Any], singles: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`values` in single precision such that rounding once more gives what rounding once would have given.

    An inexact value takes whichever neighbour has an odd last bit (S. Boldo, G. Melquiond: "Emulation of FMA
    and correctly rounded sums: proved algorithms using rounding to odd").
    """
    import numpy as np

    bits = singles.view(np.int32).copy()
    back = singles.astype(np.float64)
    inexact = (back != values) & np.isfinite(singles)
    bits -= (inexact & (np.abs(back) > np.abs(values))).astype(np.int32)  # towards zero
    bits |= inexact.astype(np.int32)
    return bits.view(np.float32)


def limits(element_type: ElementType) -> tuple[Any, Any]:
    """Returns the least and greatest finite value of an integer or float type, or of each part of a complex type."""
    if element_type.is_integral:
        bits = element_type.bits
        return (
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
            if element_type.kind is TypeKind.SIGNED
            else (0, (1 << bits) - 1)
        )
    import ml_dtypes

    part = component_type(element_type)
    info: Any = ml_dtypes.finfo(part.dtype)  # type: ignore[no-untyped-call]
    return float(info.smallest_normal if part.name == "f8e8m0fnu" else info.min), float(info.max)
