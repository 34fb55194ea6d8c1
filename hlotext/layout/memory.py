"""Whole arrays: from a logical numpy array to its buffer in device memory, and back.

Both directions walk the same chain of views (pad, split by the tile, transpose) and copy once at its end.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hlotext.ir.values.shape import Shape
from hlotext.layout.errors import LayoutError
from hlotext.layout.packing import pack, unpack
from hlotext.layout.tiling import Placement, TileStep, placement

Array = npt.NDArray[Any]

_MAX_DIMENSIONS = 64
"""numpy's arrays have at most so many dimensions."""


def to_memory(array: npt.ArrayLike, shape: Shape, fill: Any = 0) -> Array:
    """Converts a logical array to its buffer in device memory: one dimension, exactly `allocated_bytes(shape)` bytes.

    For a shape with dynamic dimensions, `array` has the size of the bounds, and the metadata prefix `M(n)` is not part
    of the buffer.

    Args:
        array: An array with the dimensions of `shape`. Elements of another type are converted (for integer and `pred`
            shapes only if no value changes).
        shape: The array shape.
        fill: Value of the padding elements.

    Returns:
        Elements of the shape's type, or bytes if `E(n)` packs several elements into one; unused bits of the last byte
        are 0.

    Raises:
        LayoutError: The shape is invalid, the array has other dimensions, values do not fit, or the type cannot have
            this element size.
    """
    place = placement(shape)
    width = _stored_width(place)
    dtype = _dtype(place)
    logical = _bits(_converted(array, place, dtype))
    if logical.shape != place.shape.dimensions:
        raise LayoutError("the array", f"has dimensions {list(logical.shape)}", place.shape)
    filling = _bits(np.asarray(fill).astype(dtype))
    # Every part writes the whole of its region, padding included, so that only the tail is left to fill.
    memory = np.empty(place.allocated_elements, logical.dtype)
    memory[place.tiled_elements :] = filling
    if logical.size:
        for part, region in _parts(logical.transpose(place.major_to_minor), place, memory):
            _store(part, region, place.steps, filling)
    return pack(memory, width) if width < 8 else memory.view(dtype)


def from_memory(buffer: Any, shape: Shape) -> Array:
    """Converts a device buffer to a logical array, ignoring padding. Inverse of `to_memory`.

    Args:
        buffer: A numpy array, or any object with the buffer protocol, of exactly `allocated_bytes(shape)` bytes.
        shape: The array shape.

    Returns:
        A new array with the shape's dimensions and element type.

    Raises:
        LayoutError: The shape is invalid, or the buffer has another size.
    """
    place = placement(shape)
    width = _stored_width(place)
    dtype = _dtype(place)
    data = _bytes(buffer)
    if data.size != place.allocated_bytes:
        raise LayoutError("the buffer", f"has {data.size} bytes, not {place.allocated_bytes}", place.shape)
    unsigned = _unsigned(dtype)
    memory = unpack(data, width, place.allocated_elements) if width < 8 else data.view(unsigned)
    result = np.empty(place.shape.dimensions, unsigned)
    if result.size:
        for part, region in _parts(result.transpose(place.major_to_minor), place, memory):
            _load(part, region, place.steps)
    return result.view(dtype)


# ---- elements


def _dtype(place: Placement) -> np.dtype[Any]:
    try:
        return place.shape.element_type.dtype
    except (TypeError, AttributeError):
        # AttributeError: a release of ml_dtypes that does not have the type yet.
        type_ = place.shape.element_type
        raise LayoutError("element type", f"{type_} has no numpy counterpart here", place.shape) from None


def _stored_width(place: Placement) -> int:
    """Bits of one stored element: the whole type's, or fewer than 8 for narrow types.

    Raises LayoutError for other widths.
    """
    bits, type_ = place.element_bits, place.shape.element_type
    if bits == 8 * type_.byte_width or type_.bits <= bits < 8:
        return bits
    problem = f"E({bits}) cannot hold a value of {type_}, which has {type_.bits} bits"
    if bits > type_.bits:
        problem = f"the representation of {type_} in E({bits}) is undefined"
    raise LayoutError("element size", problem, place.shape)


def _unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """An unsigned integer type as wide as `dtype` (numpy copies those fastest); `dtype` itself if there is
    none.
    """
    return np.dtype(f"u{dtype.itemsize}") if dtype.itemsize <= 8 else dtype


def _bits(array: Array) -> Array:
    return array.view(_unsigned(array.dtype))


def _bytes(buffer: Any) -> npt.NDArray[np.uint8]:
    """The bytes of whatever was given, in its memory's order, without a copy where that is possible."""
    if isinstance(buffer, np.ndarray):
        return np.ascontiguousarray(buffer).reshape(-1).view(np.uint8)
    try:
        return np.frombuffer(buffer, np.uint8)
    except (TypeError, ValueError, BufferError):
        raise LayoutError("the buffer", f"{type(buffer).__name__} does not expose its bytes") from None


def _converted(array: npt.ArrayLike, place: Placement, dtype: np.dtype[Any]) -> Array:
    """The array with the shape's element type.

    Raises LayoutError if an integer or `pred` type would change a value.
    """
    source = np.asarray(array)
    if source.dtype == dtype:
        return source
    with np.errstate(invalid="ignore"):
        result = source.astype(dtype)
        type_ = place.shape.element_type
        exact = type_.is_integral or dtype == np.bool_
        if exact and not np.array_equal(result.astype(source.dtype), source):
            raise LayoutError(
                "the array", f"contains values of {source.dtype} that {type_} cannot represent", place.shape
            )
    return result


# ---- the chain of views


def _parts(physical: Array, place: Placement, memory: Array) -> Iterator[tuple[Array, Array]]:
    """The physical array and the memory, cut alike into pairs (part of the array, its region of the memory).

    One pair as a rule. Where the first tile pads and the later ones stay inside of it, up to two for each
    tiled dimension: then the elements in whole tiles, nearly all of them, are copied once, and only the rims
    go through padded copies (`f32[8190,8190]{1,0:T(8,128)}`: 36 ms instead of 75).
    """
    sizes = place.tiled_dimensions
    if len(sizes) > _MAX_DIMENSIONS:
        raise LayoutError(
            "the layout",
            f"has {len(sizes)} dimensions after tiling; numpy has {_MAX_DIMENSIONS}",
            place.shape,
        )
    tiled = memory[: place.tiled_elements].reshape(sizes)
    step = place.steps[0] if place.steps else None
    if step is None or not step.pads or step.merges:
        yield physical, tiled
        return
    inside = step.lead + len(step.groups)
    if any(later.lead < inside for later in place.steps[1:]):
        yield physical, tiled
        return
    source = physical.reshape((1,) * step.added + physical.shape)
    lead = (slice(None),) * step.lead
    cuts = [_cuts(size, tile) for size, tile in zip(step.merged, step.tile, strict=True)]
    for cut in itertools.product(*cuts):
        part = source[(*lead, *(numbers for numbers, _ in cut))]
        yield part, tiled[(*lead, *(tiles for _, tiles in cut))]


def _cuts(size: int, tile: int) -> list[tuple[slice, slice]]:
    """(elements, tiles) of the whole tiles in a dimension, and of the padded tile at its end, where there are
    any.
    """
    whole = size // tile
    cuts = [(slice(0, whole * tile), slice(0, whole))] if whole else []
    if size % tile:
        cuts.append((slice(whole * tile, size), slice(whole, whole + 1)))
    return cuts


def _store(source: Array, memory: Array, steps: tuple[TileStep, ...], filling: Array) -> None:
    """Writes `source`, an array by the dimensions before `steps`, to its region of the memory."""
    if not steps:
        _copy(memory, source)
        return
    step = steps[0]
    sizes, padded = _sizes(source, step)
    merged = source.reshape(sizes)
    if padded != sizes:
        merged = np.full(padded, filling)
        merged[tuple(map(slice, sizes))] = source.reshape(sizes)
    _store(_split(merged, step), memory, steps[1:], filling)


def _load(target: Array, memory: Array, steps: tuple[TileStep, ...]) -> None:
    """Reads what `_store` writes, by way of a padded copy where no view of `target` has the step's
    dimensions.
    """
    if not steps:
        _copy(target, memory)
        return
    step = steps[0]
    sizes, padded = _sizes(target, step)
    if padded == sizes and not step.merges:
        _load(_split(target.reshape(sizes), step), memory, steps[1:])
        return
    scratch = np.empty(padded, target.dtype)
    _load(_split(scratch, step), memory, steps[1:])
    target[...] = scratch[tuple(map(slice, sizes))].reshape(target.shape)


def _sizes(array: Array, step: TileStep) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The array's sizes with the step's dimensions added and merged, and the same padded to whole tiles."""
    rank = step.lead + sum(map(len, step.groups))
    sizes = (1,) * (rank - array.ndim) + array.shape
    merged = list(sizes[: step.lead])
    position = step.lead
    for group in step.groups:
        merged.append(math.prod(sizes[position : position + len(group)]))
        position += len(group)
    padded = [-(-size // tile) * tile for size, tile in zip(merged[step.lead :], step.tile, strict=True)]
    return tuple(merged), (*merged[: step.lead], *padded)


def _split(padded: Array, step: TileStep) -> Array:
    """A view by the dimensions after the step: those in front, the grid, the insides of the tiles."""
    lead, count = step.lead, len(step.tile)
    pairs = [
        part
        for size, tile in zip(padded.shape[lead:], step.tile, strict=True)
        for part in (size // tile, tile)
    ]
    order = (*range(lead), *range(lead, lead + 2 * count, 2), *range(lead + 1, lead + 2 * count, 2))
    return padded.reshape(*padded.shape[:lead], *pairs).transpose(order)


# ---- the one copy

_SHORT = 32
"""Runs of fewer elements than this are not worth an inner loop of numpy's."""
_BLOCK = 1 << 20
"""Bytes that are copied in several passes at a time; they have to stay in the processor's cache."""


def _copy(target: Array, source: Array) -> None:
    """`target[...] = source`, with long inner loops where the minor dimensions are short and lie differently.

    numpy's inner loop runs over the minor dimension of the target, and for the (2,1) of 16-bit tiles that is
    2 elements. One copy for each of the few elements of the minor dimensions loops over the next dimension
    instead, and up to four narrow elements are put together to a word on the way
    (`bf16[8192,8192]{1,0:T(8,128)(2,1)}`: 88 ms plainly, 24 ms by elements, 19 ms by words).
    """
    target, source = np.squeeze(target), np.squeeze(source)
    minor = _short_dimensions(target, source)
    if not minor:
        target[...] = source
        return
    lanes = list(np.ndindex(*target.shape[target.ndim - minor :]))
    word = target.itemsize * len(lanes)
    is_dense = target.strides[-1] == target.itemsize and sys.byteorder == "little"
    by_words = minor == 1 and len(lanes) <= 4 and word in (2, 4, 8) and is_dense
    for part, values in _blocks(target, source):
        if by_words:
            _copy_words(part.view(f"u{word}")[..., 0], values)
        else:
            for lane in lanes:
                part[(..., *lane)] = values[(..., *lane)]


def _copy_words(words: Array, elements: Array) -> None:
    """Each word from the elements along the last dimension, the first in the low bits."""
    words[...] = elements[..., -1]
    for lane in range(elements.shape[-1] - 2, -1, -1):
        np.left_shift(words, 8 * elements.itemsize, out=words)
        np.bitwise_or(words, elements[..., lane], out=words)


def _blocks(target: Array, source: Array) -> Iterator[tuple[Array, Array]]:
    """Both arrays cut alike along their first dimensions, in blocks of at most `_BLOCK` bytes where that is
    possible.
    """
    rows = _BLOCK * len(target) // target.nbytes
    if rows >= len(target) or target.ndim < 3:
        yield target, source
    elif rows:
        for start in range(0, len(target), rows):
            yield target[start : start + rows], source[start : start + rows]
    else:
        for part, values in zip(target, source, strict=True):
            yield from _blocks(part, values)


def _short_dimensions(target: Array, source: Array) -> int:
    """Number of minor dimensions to take out of the inner loop; 0 where the plain copy has long runs
    already.
    """
    run = 1
    for size, a, b in zip(target.shape[::-1], target.strides[::-1], source.strides[::-1], strict=True):
        if not a == b == run * target.itemsize:
            break
        run *= size
    if run >= _SHORT or run == target.size:
        return 0
    count, total = 0, 1
    for size in target.shape[:0:-1]:
        total *= size
        if total > _SHORT:
            break
        count += 1
    return count
