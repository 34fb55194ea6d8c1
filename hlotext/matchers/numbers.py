"""When the elements of a constant are a number: by value and by type."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, TypeAlias

from hlotext.ir.values.literal import Literal
from hlotext.ir.values.types import TypeKind

if TYPE_CHECKING:
    import numpy as np

Number: TypeAlias = "bool | int | float | complex"


def is_all(literal: Literal | None, value: Number) -> bool:
    """Returns True if every element of an array equals a number.

    A bool matches `pred`, an int every type that represents it exactly, a float floating-point and complex types,
    rounded to the type as in XLA (0.1 matches the nearest f32; 1e-60 matches no f32). NaN matches every NaN. Elided
    values and empty arrays never match.
    """
    if literal is None or not literal.shape.is_array or literal.is_elided or literal.unknown_text is not None:
        return False
    if literal.shape.element_count == 0:
        return False
    wanted = in_type(value, literal)
    if wanted is None:
        return False
    array = literal.array
    if wanted != wanted:
        return bool((array != array).all())
    return bool((array == wanted).all())


def in_type(value: Number, literal: Literal) -> Any:
    """Converts a number to a literal's element type, or returns None if the type cannot represent it."""
    type_ = literal.shape.element_type
    if type_.kind is TypeKind.PREDICATE:
        return bool(value) if isinstance(value, int) and value in (0, 1) else None
    if isinstance(value, bool):
        return None
    dtype = type_.dtype
    if type_.is_integral:
        if not isinstance(value, int):
            return None
        low, high = _bounds(dtype)
        return dtype.type(value) if low <= value <= high else None
    if type_.is_complex:
        return _as_complex(value, dtype)
    return None if isinstance(value, complex) else _as_float(value, dtype)


def _bounds(dtype: np.dtype[Any]) -> tuple[int, int]:
    import ml_dtypes

    info = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)


def _as_float(value: float, dtype: np.dtype[Any]) -> Any:
    """The float of that type; None beyond its range, and where a whole number would become another."""
    import numpy as np

    with np.errstate(all="ignore"):
        try:
            found = dtype.type(float(value))
        except OverflowError:  # a whole number beyond every float
            return None
    back = float(found)
    if isinstance(value, int):
        return found if math.isfinite(back) and back == value else None
    if math.isnan(value) or math.isinf(value):
        return (
            found if math.isnan(back) == math.isnan(value) and math.isinf(back) == math.isinf(value) else None
        )
    return found if math.isfinite(back) and (back == 0) == (value == 0) else None


def _as_complex(value: complex, dtype: np.dtype[Any]) -> Any:
    import numpy as np

    part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
    if isinstance(value, int):
        real = _as_float(value, part)
        return None if real is None else dtype.type(real)
    parts = [_as_float(x, part) for x in (complex(value).real, complex(value).imag)]
    return None if None in parts else dtype.type(complex(*map(float, parts)))


def plain(value: Any) -> Number:
    """Converts a numpy number to a Python one. Raises TypeError for anything but a number."""
    if isinstance(value, bool | int | float | complex):
        return value
    item = getattr(value, "item", None)
    found = item() if item is not None and getattr(value, "shape", None) == () else None
    if isinstance(found, bool | int | float | complex):
        return found
    if found is not None and hasattr(found, "__float__"):  # ml_dtypes' scalars
        return float(found)
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"a constant can only be matched with a number, not {value!r}") from None
