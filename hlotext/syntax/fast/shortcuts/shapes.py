"""Shapes in the form in which XLA writes them, read without the grammar: the same objects, a hundred times sooner.

Arrays with static or bounded sizes and a layout of tiles, element size and memory space, and tuples of them. Everything
else, and everything wrong, gives None and goes through the grammar. Tests compare both readers on the corpus.
"""

from __future__ import annotations

import re

from hlotext.ir.caches import text_cache, weighted_cache
from hlotext.ir.values.shape import COMBINE_DIMENSION, ComputationLayout, Layout, Shape, Tile
from hlotext.ir.values.types import ELEMENT_TYPES
from hlotext.syntax.source.limits import MAX_NESTING

_ARRAY = re.compile(
    r"([a-z][a-z0-9]*)\[((?:(?:<=)?[0-9]{1,18}(?:,(?:<=)?[0-9]{1,18}){0,199})?)\]"
    r"(?:\{(?=[0-9:])([0-9]{1,2}(?:,[0-9]{1,2}){0,199})?(?::(?=[TES])(?:T((?:\([0-9*]{1,9}(?:,[0-9*]{1,9}){0,9}\)){1,9}))?(?:E\(([0-9]{1,2})\))?(?:S\(([0-9]{1,2})\))?)?\})?"
)
_SEPARATOR = re.compile(r", (?:/\*index=[0-9]+\*/)?")


@text_cache(1 << 14)
def fast_shape(text: str) -> Shape | None:
    """Parses a shape; None if the grammar must."""
    if text.startswith("("):
        found = _tuple(text, 0)
        return found[0] if found is not None and found[1] == len(text) else None
    match = _ARRAY.fullmatch(text)
    return _array(*match.groups()) if match is not None else None


@weighted_cache(1 << 14)
def _array(
    word: str, sizes: str, order: str | None, tiles: str | None, bits: str | None, space: str | None
) -> Shape | None:
    element_type = ELEMENT_TYPES.get(word)
    if element_type is None or not element_type.is_array_type:
        # A token or an opaque value has nothing inside its brackets; an unknown type is the grammar's to report.
        plain = element_type is not None and not sizes and order is tiles is bits is space is None
        return Shape(element_type) if plain and element_type is not None else None
    dimensions = sizes.split(",") if sizes else []
    layout = None
    if order is not None or tiles or bits or space:
        numbers = tuple(map(int, order.split(","))) if order else ()
        if len(numbers) != len(dimensions):
            return None
        layout = _layout(numbers, tiles, bits, space)
        if layout is None:
            return None
    dynamic = tuple(size.startswith("<=") for size in dimensions)
    return Shape(element_type, tuple(int(size.removeprefix("<=")) for size in dimensions), dynamic, layout)


@weighted_cache(1 << 12)
def _layout(order: tuple[int, ...], tiles: str | None, bits: str | None, space: str | None) -> Layout | None:
    found = []
    for tile in tiles[1:-1].split(")(") if tiles else ():
        sizes = tile.split(",")
        if any("*" in size and size != "*" for size in sizes):
            return None
        found.append(Tile(tuple(COMBINE_DIMENSION if size == "*" else int(size) for size in sizes)))
    return Layout(order, tuple(found), element_size_in_bits=int(bits or 0), memory_space=int(space or 0))


def _tuple(text: str, position: int, depth: int = 0) -> tuple[Shape, int] | None:
    """The tuple that opens at an offset, and the offset behind it."""
    if depth == MAX_NESTING:
        return None
    position += 1
    if text.startswith(")", position):
        return Shape.tuple(()), position + 1
    shapes: list[Shape] = []
    while True:
        if text.startswith("(", position):
            inner = _tuple(text, position, depth + 1)
            if inner is None:
                return None
            shape, position = inner
        else:
            match = _ARRAY.match(text, position)
            array = _array(*match.groups()) if match is not None else None
            if match is None or array is None:
                return None
            shape, position = array, match.end()
        shapes.append(shape)
        if text.startswith(")", position):
            return Shape.tuple(tuple(shapes)), position + 1
        separator = _SEPARATOR.match(text, position)
        if separator is None:
            return None
        position = separator.end()


def fast_computation_layout(text: str) -> ComputationLayout | None:
    """Parses `{(f32[2]{0}, s32[])->f32[2]{0}}`, often the longest line of a module; None if the grammar must."""
    parameters = _tuple(text, 1) if text.startswith("{(") else None
    if parameters is None or not text.startswith("->", parameters[1]) or not text.endswith("}"):
        return None
    result = fast_shape(text[parameters[1] + 2 : -1])
    return ComputationLayout(parameters[0].tuple_shapes, result) if result is not None else None


def shape_list(text: str) -> tuple[Shape, ...] | None:
    """Parses `{f32[6,6]{0,1}, s32[]}`; None if the grammar must."""
    shapes = fast_shape(f"({text[1:-1]})")
    return shapes.tuple_shapes if shapes is not None else None
