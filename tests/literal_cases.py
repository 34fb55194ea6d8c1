"""What the tests of literals share: the cases in tests/data/literals, and literals made of bits."""

from __future__ import annotations

import tomllib
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hlotext.ir.values import numbers
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape, default_layout
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType
from hlotext.syntax.literals.tokens import literal_from_tokens
from hlotext.syntax.reading import terms
from tests.support import DATA

FOLDER = DATA / "literals"
UNKNOWN = {"s1", "u1"} if not hasattr(ml_dtypes, "int1") else set()
"""Element types that the oldest releases of ml_dtypes lack."""
TYPES = [row for row in ELEMENT_TYPES.values() if row.dtype_name and row.name not in UNKNOWN]
"""Every element type that has elements."""


def cases(kind: str) -> list[Any]:
    """Every `[[kind]]` of the data files, as pytest parameters named by file, shape and text."""
    return [
        pytest.param(case, id=f"{path.stem}:{case['shape']}:{case['text'][:40]}")
        for path in sorted(FOLDER.glob("*.toml"))
        for case in tomllib.loads(path.read_text(encoding="utf-8")).get(kind, ())
        if case["shape"].partition("[")[0] not in UNKNOWN
    ]


def shape_of(text: str) -> Shape:
    shape: Shape = terms.read("shape", text)
    return shape


def by_grammar(text: str, shape: Shape) -> Literal:
    """What the grammar's rule makes of the text."""
    return literal_from_tokens(terms.read("literal", text), shape)


def array_shape(type_: ElementType, dimensions: tuple[int, ...]) -> Shape:
    return Shape(type_, dimensions, layout=default_layout(len(dimensions)))


def from_bits(type_: ElementType, bits: Any, dimensions: tuple[int, ...] | None = None) -> Literal:
    """The literal of these bit patterns (of a complex type, of its parts)."""
    part = numbers.component_type(type_)
    array = np.array(bits, dtype=f"u{part.dtype.itemsize}").view(type_.dtype)
    if dimensions is not None:
        array = array.reshape(dimensions)
    return Literal.from_array(array, array_shape(type_, array.shape))
