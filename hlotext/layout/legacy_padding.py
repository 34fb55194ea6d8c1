"""The padding fields of old layouts, `padded_dimensions` and `padding_value`, which HLO text no longer has.

An array with them is stored like an array of the padded sizes with the same minor_to_major, with the value in every
position that is not an element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from hlotext.ir.values.shape import Shape
from hlotext.layout.checks import array_of, checked_index
from hlotext.layout.errors import LayoutError
from hlotext.layout.memory import Array, from_memory, to_memory
from hlotext.layout.tiling import index_at, linear_index


def padded_shape(shape: Shape, padded_dimensions: Sequence[int]) -> Shape:
    """Returns the array shape with padded sizes, one per logical dimension.

    Raises LayoutError for the wrong number of sizes, and for a size that is smaller than the dimension.
    """
    shape = array_of(shape)
    if len(padded_dimensions) != shape.rank:
        raise LayoutError(
            "padded_dimensions", f"has length {len(padded_dimensions)}, not {shape.rank}", shape
        )
    for number, (size, padded) in enumerate(zip(shape.dimensions, padded_dimensions, strict=True)):
        if padded < size:
            raise LayoutError(
                "padded_dimensions", f"dimension {number} has size {size}, more than {padded}", shape
            )
    return attrs.evolve(shape, dimensions=tuple(padded_dimensions))


def padded_linear_index(shape: Shape, padded_dimensions: Sequence[int], index: Sequence[int]) -> int:
    """Returns the position of an element, in elements, with legacy padding fields.

    For example, in `f32[2,3]{0,1}` padded to [3,5], the element (i, j) is at position i + 3*j. Raises LayoutError as
    `padded_shape` and `linear_index` do.
    """
    checked_index(array_of(shape), index)
    return linear_index(padded_shape(shape, padded_dimensions), index)


def padded_index_at(shape: Shape, padded_dimensions: Sequence[int], position: int) -> tuple[int, ...] | None:
    """Returns the logical index at a position, with legacy padding fields, or None for padding.

    Raises LayoutError as `padded_shape` and `index_at` do.
    """
    index = index_at(padded_shape(shape, padded_dimensions), position)
    if index is None or any(number >= size for number, size in zip(index, shape.dimensions, strict=True)):
        return None
    return index


def padded_to_memory(
    array: npt.ArrayLike, shape: Shape, padded_dimensions: Sequence[int], padding_value: Any = 0
) -> Array:
    """Lays out an array in memory as described by XLA's legacy padding fields (`padded_dimensions`, `padding_value`).

    For example, `[[a,b,c],[d,e,f]]` with layout {0,1}, padded to [3,5], becomes `a d 0 b e 0 c f 0 0 0 0 0 0 0`.

    Args:
        array: An array with the dimensions of `shape`.
        shape: The array shape.
        padded_dimensions: The padded size of each logical dimension.
        padding_value: Value of the padding elements.

    Returns:
        The buffer, as from `to_memory`.

    Raises:
        LayoutError: As for `padded_shape` and `to_memory`.
    """
    larger = padded_shape(shape, padded_dimensions)
    values = np.asarray(array)
    if values.shape != array_of(shape).dimensions:
        raise LayoutError("the array", f"has dimensions {list(values.shape)}", shape)
    padded = np.full(larger.dimensions, np.asarray(padding_value).astype(values.dtype))
    padded[tuple(map(slice, values.shape))] = values
    return to_memory(padded, larger, fill=padding_value)


def padded_from_memory(buffer: Any, shape: Shape, padded_dimensions: Sequence[int]) -> Array:
    """Converts a buffer with legacy padding fields to a logical array. Inverse of `padded_to_memory`.

    Raises LayoutError as `padded_shape` and `from_memory` do.
    """
    padded = from_memory(buffer, padded_shape(shape, padded_dimensions))
    return padded[tuple(map(slice, array_of(shape).dimensions))]
