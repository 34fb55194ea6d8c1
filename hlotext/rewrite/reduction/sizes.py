"""Smaller arrays: one size becomes another wherever it stands, in shapes, slices and constants alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.window import SliceDimension, SliceDimensions
from hlotext.rewrite.propagation import change_shape

Resize = Callable[[int], int]
"""The new size for an old one."""


def shrink(module: Callable[[], Module], attempt: Callable[[Callable[[Module], None]], bool]) -> None:
    """Shrinks dimension sizes as long as attempts succeed: all together, each alone, with multiples, by parameter."""
    for most in (1, 2):
        attempt(partial(resize, size=_at_most(most)))
    for size in sorted(_sizes(module()), reverse=True):
        for target in dict.fromkeys((1, 2, size // 2)):
            if target < size and any(
                attempt(partial(resize, size=rule(size, target))) for rule in (_exactly, _multiples)
            ):
                break
    for number in range(len(module().entry.parameters)):
        shape = module().entry.parameters[number].shape
        for dimension in range(shape.rank if shape is not None and shape.is_array else 0):
            for target in (1, 2):
                if attempt(partial(_shrink_parameter, number=number, dimension=dimension, target=target)):
                    break


def _sizes(module: Module) -> set[int]:
    return {
        size
        for i in module.instructions()
        if i.shape is not None
        for _, leaf in i.shape.leaves()
        if leaf.is_array
        for size in leaf.dimensions
        if size > 1
    }


def _at_most(target: int) -> Resize:
    return lambda given: min(given, target)


def _exactly(size: int, target: int) -> Resize:
    return lambda given: target if given == size else given


def _multiples(size: int, target: int) -> Resize:
    """The size and its multiples in proportion: products in reshapes stay products."""
    return lambda given: given // size * target if given and given % size == 0 else given


def _shrink_parameter(module: Module, number: int, dimension: int, target: int) -> None:
    parameter = module.entry.parameters[number]
    shape = parameter.shape
    if (
        shape is None
        or not shape.is_array
        or dimension >= shape.rank
        or shape.dimensions[dimension] <= target
    ):
        raise EditError("nothing to shrink")
    sizes = tuple(target if d == dimension else size for d, size in enumerate(shape.dimensions))
    change_shape(parameter, attrs.evolve(shape, dimensions=sizes))


def resize(module: Module, size: Resize) -> None:
    """Changes the sizes of all arrays, with slices and constants. Raises EditError if the result is invalid."""
    with module.transaction():
        for i in module.instructions():
            attributes = {name: _resized(name, value, size) for name, value in i.attributes.items()}
            shape = _shape(i.shape, size) if i.shape is not None else None
            literal = _literal(i.literal, size) if i.literal is not None else None
            if (
                shape != i.shape
                or literal is not i.literal
                or any(attributes[n] is not v for n, v in i.attributes.items())
            ):
                i.change(shape=shape, attributes=attributes, literal=literal, typed=False)


def _shape(shape: Shape, size: Resize) -> Shape:
    if shape.is_tuple:
        return Shape.tuple(tuple(_shape(part, size) for part in shape.tuple_shapes))
    if not shape.is_array:
        return shape
    sizes = tuple(map(size, shape.dimensions))
    return shape if sizes == shape.dimensions else attrs.evolve(shape, dimensions=sizes)


def _literal(literal: Literal, size: Resize) -> Literal:
    """The corner of a constant's value that remains."""
    shape = _shape(literal.shape, size)
    if shape == literal.shape:
        return literal
    array = literal.known_array
    if array is None:
        return Literal.elided(shape)
    return Literal.from_array(array[tuple(slice(0, n) for n in shape.dimensions)], shape)


def _resized(name: str, value: Any, size: Resize) -> Any:
    """An attribute's value with other sizes; the same object where it holds none."""
    if name in ("dynamic_slice_sizes", "slice_sizes", "fft_length") and all(type(n) is int for n in value):
        sizes = tuple(map(size, value))
        return value if sizes == tuple(value) else sizes
    if isinstance(value, SliceDimensions):
        ranges = tuple(_range(d, size) for d in value.dimensions)
        return value if ranges == value.dimensions else SliceDimensions(ranges)
    if isinstance(value, Shape):
        return _shape(value, size)
    if isinstance(value, tuple) and value and all(isinstance(item, Shape) for item in value):
        return tuple(_shape(item, size) for item in value)
    return value


def _range(given: SliceDimension, size: Resize) -> SliceDimension:
    """A slice of an array that became smaller: from the same start where it can be."""
    length = size(given.limit - given.start)
    start = min(given.start, max(size(given.limit) - length, 0))
    return SliceDimension(start, start + length, given.stride)
