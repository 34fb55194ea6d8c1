"""Element types of HLO: what one element of an array is, and how it is stored and printed."""

from __future__ import annotations

import enum
import functools
import re
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.short_names import Abbreviated
from hlotext.ir.spelling import UnknownNameError, did_you_mean, suggestion

if TYPE_CHECKING:
    import numpy as np


class TypeKind(enum.Enum):
    """Kind of an element type."""

    PREDICATE = "predicate"
    SIGNED = "signed integer"
    UNSIGNED = "unsigned integer"
    FLOAT = "float"
    COMPLEX = "complex"
    TUPLE = "tuple"
    TOKEN = "token"
    OPAQUE = "opaque"
    BUFFER = "buffer"
    UNKNOWN = "unknown"


_WITHOUT_ARRAYS = (TypeKind.TUPLE, TypeKind.TOKEN, TypeKind.OPAQUE, TypeKind.BUFFER)


@with_foreign_names
@attrs.frozen(eq=False, repr=False)
class ElementType(Abbreviated):
    """An element type (XLA's `PrimitiveType`). Interned: equal types are the same object. `str()` is its name in HLO
    text.
    """

    name: str
    """The word in HLO text, such as `bf16`; for tuples and buffers XLA's own lower-case name."""
    number: int
    """The value in XLA's `PrimitiveType` proto; 0 for a type that this release does not know."""
    kind: TypeKind
    bits: int
    """Width of the value in bits (1 for `pred`, 64 for `c64`); 0 if there is none (token, tuple, unknown)."""
    dtype_name: str = ""
    """Name of the numpy or ml_dtypes type of one element; empty if there is none."""
    digits: int = 0
    """Significant decimal digits that XLA prints for a float (for `f32` and `f64`: tried first)."""

    def __eq__(self, other: object) -> bool:
        """Also equal to its own word, as opcodes are texts too: `shape.element_type == "f32"`."""
        return self is other or (isinstance(other, str) and self.name == other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"ElementType({self.name})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied by name: there is one object of each type in a process."""
        return _interned, (self.name, self.number)

    @property
    def byte_width(self) -> int:
        """Bytes per element unless a layout has `E(bits)`, in whole bytes: 1 for `s4` and `pred`; 0 if the width is
        unknown.
        """
        return (self.bits + 7) // 8

    @property
    def is_integral(self) -> bool:
        """True for signed and unsigned integers (not for `pred`), as XLA's `IsIntegralType`."""
        return self.kind in (TypeKind.SIGNED, TypeKind.UNSIGNED)

    @property
    def is_floating(self) -> bool:
        """True for real floating-point types of any width."""
        return self.kind is TypeKind.FLOAT

    @property
    def is_complex(self) -> bool:
        """True for `c64` and `c128`."""
        return self.kind is TypeKind.COMPLEX

    @property
    def is_array_type(self) -> bool:
        """True if arrays may have this element type. Unknown types count, since only arrays have brackets."""
        return self.kind not in _WITHOUT_ARRAYS

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype of an element, from ml_dtypes for narrow types.

        Raises TypeError for types without elements (token, opaque, tuple) and for unknown types.
        """
        return _dtype(self)


@functools.cache
def _dtype(element_type: ElementType) -> np.dtype[Any]:
    import numpy as np

    if not element_type.dtype_name:
        raise TypeError(f"element type {element_type} has no numpy counterpart")
    try:
        return np.dtype(element_type.dtype_name)
    except TypeError:
        import ml_dtypes

    narrow: Any = getattr(ml_dtypes, element_type.dtype_name, None)
    if narrow is None:
        raise TypeError(f"element type {element_type} needs a later release of ml_dtypes")
    found: np.dtype[Any] = np.dtype(narrow)
    return found


_K = TypeKind
_ROWS: tuple[tuple[str, int, TypeKind, int, str, int], ...] = (
    ("pred", 1, _K.PREDICATE, 1, "bool", 0),
    ("s1", 30, _K.SIGNED, 1, "int1", 0),
    ("s2", 26, _K.SIGNED, 2, "int2", 0),
    ("s4", 21, _K.SIGNED, 4, "int4", 0),
    ("s8", 2, _K.SIGNED, 8, "int8", 0),
    ("s16", 3, _K.SIGNED, 16, "int16", 0),
    ("s32", 4, _K.SIGNED, 32, "int32", 0),
    ("s64", 5, _K.SIGNED, 64, "int64", 0),
    ("u1", 31, _K.UNSIGNED, 1, "uint1", 0),
    ("u2", 27, _K.UNSIGNED, 2, "uint2", 0),
    ("u4", 22, _K.UNSIGNED, 4, "uint4", 0),
    ("u8", 6, _K.UNSIGNED, 8, "uint8", 0),
    ("u16", 7, _K.UNSIGNED, 16, "uint16", 0),
    ("u32", 8, _K.UNSIGNED, 32, "uint32", 0),
    ("u64", 9, _K.UNSIGNED, 64, "uint64", 0),
    ("f16", 10, _K.FLOAT, 16, "float16", 5),
    ("bf16", 16, _K.FLOAT, 16, "bfloat16", 4),
    ("f32", 11, _K.FLOAT, 32, "float32", 6),
    ("f64", 12, _K.FLOAT, 64, "float64", 15),
    ("f8e5m2", 19, _K.FLOAT, 8, "float8_e5m2", 2),
    ("f8e4m3", 28, _K.FLOAT, 8, "float8_e4m3", 3),
    ("f8e4m3fn", 20, _K.FLOAT, 8, "float8_e4m3fn", 3),
    ("f8e4m3b11fnuz", 23, _K.FLOAT, 8, "float8_e4m3b11fnuz", 3),
    ("f8e5m2fnuz", 24, _K.FLOAT, 8, "float8_e5m2fnuz", 2),
    ("f8e4m3fnuz", 25, _K.FLOAT, 8, "float8_e4m3fnuz", 3),
    ("f8e3m4", 29, _K.FLOAT, 8, "float8_e3m4", 3),
    ("f8e8m0fnu", 33, _K.FLOAT, 8, "float8_e8m0fnu", 2),
    ("f4e2m1fn", 32, _K.FLOAT, 4, "float4_e2m1fn", 2),
    ("f6e3m2fn", 35, _K.FLOAT, 6, "float6_e3m2fn", 2),
    ("f6e2m3fn", 36, _K.FLOAT, 6, "float6_e2m3fn", 3),
    ("c64", 15, _K.COMPLEX, 64, "complex64", 6),
    ("c128", 18, _K.COMPLEX, 128, "complex128", 15),
    ("token", 17, _K.TOKEN, 0, "", 0),
    ("opaque", 14, _K.OPAQUE, 0, "", 0),
)

ELEMENT_TYPES: dict[str, ElementType] = {row[0]: ElementType(*row) for row in _ROWS}
"""Every element type name before `[` in a shape, and its type."""

TUPLE = ElementType("tuple", 13, TypeKind.TUPLE, 0)
BUFFER = ElementType("buffer", 34, TypeKind.BUFFER, 0)
TOKEN = ELEMENT_TYPES["token"]
OPAQUE = ELEMENT_TYPES["opaque"]


_BY_NUMBER = {type_.number: type_ for type_ in (*ELEMENT_TYPES.values(), TUPLE, BUFFER)}

_UNKNOWN: weakref.WeakValueDictionary[str, ElementType] = weakref.WeakValueDictionary()
"""Types that this release does not know. Types are compared by identity, so while one is in use there is no second."""


def _unknown(name: str) -> ElementType:
    return _UNKNOWN.setdefault(name, ElementType(name, 0, TypeKind.UNKNOWN, 0))


def _interned(name: str, number: int) -> ElementType:
    """The one object of a type."""
    known = _BY_NUMBER.get(number)
    return known if known is not None and known.name == name else element_type(name)


def element_type(name: str) -> ElementType:
    """Returns the element type with this name; an unknown name yields a type of kind `UNKNOWN` with that name."""
    return ELEMENT_TYPES.get(name) or _unknown(name)


_BY_DTYPE = {type_.dtype_name: type_ for type_ in ELEMENT_TYPES.values() if type_.dtype_name}


class UnknownTypeError(UnknownNameError):
    """Raised if no element type has a name (a KeyError). The message suggests HLO's name of a numpy type, or a similar
    name.
    """

    def __init__(self, name: str) -> None:
        super().__init__("element type", name, lambda: ELEMENT_TYPES)

    def _meant(self) -> str:
        name, bracket, _ = self._name.partition("[")
        if bracket and name in ELEMENT_TYPES:
            return f"`{name}` is one; hlotext.parse_shape(text) reads a whole shape"
        return types_meant(self._name)


def type_meant(given: Any) -> ElementType:
    """Converts an element type, its name, or a dtype of numpy or JAX (`numpy.float16`, an array's dtype) to an
    ElementType.

    Raises UnknownTypeError (a KeyError) for an unknown name, and TypeError for anything else.
    """
    if isinstance(given, ElementType):
        return given
    if isinstance(given, str):
        if (found := ELEMENT_TYPES.get(given)) is None:
            raise UnknownTypeError(given)
        return found
    dtype = getattr(given, "dtype", given)  # JAX's types have one, numpy's a descriptor of one
    name = str(getattr(dtype, "name", None) or getattr(given, "__name__", ""))
    if (known := _BY_DTYPE.get(name)) is None:
        shown = f"the class {name}" if isinstance(given, type) else type(given).__name__
        raise TypeError(
            f"an element type is an ElementType, its name such as 'f32', or a numpy dtype, not {shown}"
        )
    return known


_LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "float": ("f32", "f64"),
    "double": ("f64",),
    "half": ("f16",),
    "bfloat": ("bf16",),
    "int": ("s32",),
    "integer": ("s32",),
    "uint": ("u32",),
    "long": ("s64",),
    "short": ("s16",),
    "char": ("s8",),
    "byte": ("u8",),
    "boolean": ("pred",),
    "i1": ("pred",),
    "index": ("s64",),
    "i8": ("s8",),
    "i16": ("s16",),
    "i32": ("s32",),
    "i64": ("s64",),
}
"""Element types by the names of C, torch and MLIR."""


def named_elsewhere(name: str) -> str:
    """Returns a suggestion for the name of an element type in numpy or a language; empty for other words."""
    return dtype_meant(name) or suggestion(_LANGUAGES.get(name, ()))


def dtype_meant(name: str) -> str:
    """Returns a suggestion for a numpy or JAX name of an element type that HLO names differently; empty for other
    words.
    """
    known = _BY_DTYPE.get(name) if name not in ELEMENT_TYPES else None
    return suggestion([known.name]) if known is not None else ""


_MLIR_TYPES = {"i1": "pred", "ui1": "pred"}


def shape_meant(text: str) -> str:
    """The suggestion for a shape as MLIR writes it, `tensor<8x128xf32>` or `8x128xf32`; empty for other texts."""
    match = re.fullmatch(r"(?s)(?:tensor<|memref<)?((?:\d+x)*)([a-z]+\d\w*)(?:[,>].*)?", text.strip())
    if match is None or not (match[1] or "<" in text):
        return ""
    name = match[2].lower()
    name = _MLIR_TYPES.get(name) or re.sub(r"^s?i(?=\d)", "s", re.sub(r"^ui(?=\d)", "u", name))
    name = name.removesuffix("fn") if name.removesuffix("fn") in ELEMENT_TYPES else name
    sizes = ",".join(match[1].removesuffix("x").split("x"))
    return suggestion([f"{name}[{sizes}]"]) if name in ELEMENT_TYPES else ""


def types_meant(name: str) -> str:
    """Returns a suggestion for a word that is not an element type: HLO's name of a numpy type, or similar names; may be
    empty.
    """
    bits = re.fullmatch(r"fp?(\d+)", name.lower())  # `fp8`, of which there are many
    known = [one for one in ELEMENT_TYPES if bits and re.match(rf"f{bits[1]}(?!\d)", one)][:3]
    if known:
        return suggestion(known)
    return named_elsewhere(name) or did_you_mean(name, ELEMENT_TYPES)
